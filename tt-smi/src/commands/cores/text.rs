//! The L1 of cores as text: what runs out first, a grid, and the cores that are alike.

use std::io::{self, Write};

use crate::escape::{Foreign, fit};
use crate::lists::cores::{Core, DeviceCores, Fullest, Held, Occupant, Unplaced, describe};
use crate::output::columns::{Align, Columns};
use crate::output::paint::Paint;
use crate::segments::pid_text;
use crate::units::{UNKNOWN, plural};

/// Widest list of core ranges in the table; JSON has every core.
const RANGES: usize = 40;
/// Longest name of an occupant.
const NAME: usize = 32;

pub(super) fn write(out: &mut dyn Write, devices: &[DeviceCores], paint: Paint) -> io::Result<()> {
    for (number, device) in devices.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}", paint.bold(&format!("Device {}: {}", device.device, first_line(device))))?;
        write_occupants(out, device)?;
        for line in remarks(device) {
            writeln!(out, "  {line}")?;
        }
        // One number in every cell says no more than the line below.
        let differ = device.cores.windows(2).any(|pair| pair[0].held != pair[1].held);
        if let Some(columns) = device.grid_columns.filter(|_| differ) {
            writeln!(out)?;
            write_grid(out, device, columns as usize, paint)?;
        }
        writeln!(out)?;
        write_alike(out, device, paint)?;
    }
    Ok(())
}

/// Always in KiB: the L1 of a core has a little more than one MiB, of which a tenth is a lot.
fn kib(bytes: u64) -> String {
    format!("{:.1} KiB", bytes as f64 / 1024.0)
}

fn kib_or_unknown(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| UNKNOWN.to_owned(), kib)
}

/// The core that runs out first.
fn first_line(device: &DeviceCores) -> String {
    let Some(core) = &device.runs_out_first else {
        return "free L1 of its cores unknown: no process reports the L1 pool of its allocator".to_owned();
    };
    let total = kib_or_unknown(device.l1_core_bytes);
    let most = if device.exact { "" } else { "at most " };
    let gap = match core.largest_gap_bytes {
        Some(gap) => format!("largest gap {most}{}", kib(gap)),
        None => format!("largest gap {UNKNOWN}"),
    };
    format!("{}: {most}{} of {total} free, {gap}", who(core, device), kib(core.free_bytes))
}

fn who(core: &Fullest, device: &DeviceCores) -> String {
    let count = core.count.map_or_else(|| UNKNOWN.to_owned(), |count| count.to_string());
    let is_all = core.count.is_some() && core.count == device.core_count;
    match (core.x.zip(core.y), core.count) {
        _ if is_all => format!("all {count} cores alike"),
        (Some((x, y)), Some(1)) => format!("core {x},{y} runs out first"),
        (Some((x, y)), _) => format!("core {x},{y} and {} more run out first", core.count.unwrap_or(1) - 1),
        (None, _) => format!("each of {count} cores"),
    }
}

fn write_occupants(out: &mut dyn Write, device: &DeviceCores) -> io::Result<()> {
    let Some(core) = device.runs_out_first.as_ref().filter(|core| !core.occupants.is_empty()) else {
        return Ok(());
    };
    let occupant = |Occupant { pid, claimed, class, program, program_name, name, bytes }: &Occupant| {
        let named = |name: &Option<Foreign>| {
            name.as_ref().map_or_else(String::new, |name| format!(" {}", fit(name, NAME)))
        };
        let program =
            program.map_or_else(String::new, |id| format!(" of program {id:#x}{}", named(program_name)));
        format!("{} {}{}{program} (pid {})", kib(*bytes), class.name(), named(name), pid_text(*pid, *claimed))
    };
    let occupants: Vec<String> = core.occupants.iter().map(occupant).collect();
    writeln!(out, "  held there: {}", occupants.join(", "))
}

/// What concerns all cores.
fn remarks(device: &DeviceCores) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(block) = device.largest_free_block_bytes {
        lines.push(format!("largest L1 buffer that fits: {} on each core", kib(block)));
    }
    for Unplaced { pid, class, core_count, live_count, core_bytes } in &device.unplaced {
        lines.push(format!(
            "not counted, since its cores are unknown: {live_count} x {}, up to {} on {core_count} cores (pid {pid})",
            class.name(),
            kib(*core_bytes),
        ));
    }
    if let (Some(least), false) = (device.free_at_least_bytes, device.exact) {
        lines.push(format!("at least {} free on every core", kib(least)));
    }
    for ring in &device.kernel_rings {
        lines.push(format!(
            "kernel-config ring: {} of {} used by {} (pid {})",
            kib(ring.used_bytes),
            kib(ring.total_bytes),
            plural(ring.programs, "program"),
            ring.pid,
        ));
    }
    if !device.exact {
        lines.push("not exact: used is at least, free at most what is shown".to_owned());
    }
    lines
}

/// The share of each core's L1 that is taken, in percent.
fn write_grid(out: &mut dyn Write, device: &DeviceCores, columns: usize, paint: Paint) -> io::Result<()> {
    let heads = (0..columns).map(|x| format!("{x:>4}")).collect::<String>();
    writeln!(out, "{}", paint.dim(&format!("  % used{heads}")))?;
    for (y, row) in device.cores.chunks(columns).enumerate() {
        let cells = row.iter().map(|core| format!("{:>4}", percent(&core.held, device.l1_core_bytes)));
        writeln!(out, "{}{}", paint.dim(&format!("  {y:>6}")), cells.collect::<String>())?;
    }
    Ok(())
}

/// What is not empty is not 0, and what is not full is not 100.
fn percent(held: &Held, total: Option<u64>) -> String {
    let (Some(free), Some(total)) = (held.free_bytes, total.filter(|total| *total > 0)) else {
        return UNKNOWN.to_owned();
    };
    let used = total.saturating_sub(free);
    let percent = (used as f64 / total as f64 * 100.0).ceil() as u64;
    (if free > 0 { percent.min(99) } else { percent }).to_string()
}

/// A line for all cores that hold the same, the fullest first.
fn write_alike(out: &mut dyn Write, device: &DeviceCores, paint: Paint) -> io::Result<()> {
    use Align::{Left, Right};
    let mut groups: Vec<(&Held, Vec<&Core>)> = Vec::new();
    for core in &device.cores {
        match groups.iter_mut().find(|(held, _)| *held == &core.held) {
            Some((_, cores)) => cores.push(core),
            None => groups.push((&core.held, vec![core])),
        }
    }
    groups.sort_by_key(|(held, _)| (held.free_bytes.is_none(), held.free_bytes, held.largest_gap_bytes));
    let mut columns = Columns::new(&[
        ("  CORES", Left),
        ("COUNT", Right),
        ("L1", Right),
        ("L1_SMALL", Right),
        ("PROGRAMS", Right),
        ("FREE", Right),
        ("LARGEST GAP", Right),
        ("OVERLAP", Right),
    ]);
    for (held, cores) in groups {
        let count: Option<u64> = cores.iter().map(|core| core.count).sum();
        let places: Vec<(u32, u32)> = cores.iter().filter_map(|core| core.x.zip(core.y)).collect();
        let name = if places.is_empty() { "all alike".to_owned() } else { describe(&places) };
        columns.push(vec![
            format!("  {}", fit(&name, RANGES)),
            count.map_or_else(|| UNKNOWN.to_owned(), |count| count.to_string()),
            kib(held.l1_bytes),
            kib(held.l1_small_bytes),
            kib(held.program_bytes),
            kib_or_unknown(held.free_bytes),
            kib_or_unknown(held.largest_gap_bytes),
            kib_or_unknown(held.overlap_bytes),
        ]);
    }
    columns.write(out, paint)
}
