//! The L1 of cores as text: what runs out first, a grid, and the cores that are alike.

use std::io::{self, Write};

use crate::escape::fit;
use crate::lists::cores::text::{describe_occupant, first_line, kib, kib_or_unknown, percent, remarks};
use crate::lists::cores::{Core, DeviceCores, Held, describe};
use crate::output::columns::{Align, Columns};
use crate::output::paint::Paint;
use crate::units::UNKNOWN;

/// Widest list of core ranges in the table; JSON has every core.
const RANGES: usize = 40;

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

fn write_occupants(out: &mut dyn Write, device: &DeviceCores) -> io::Result<()> {
    let Some(core) = device.runs_out_first.as_ref().filter(|core| !core.occupants.is_empty()) else {
        return Ok(());
    };
    let occupants: Vec<String> = core.occupants.iter().map(describe_occupant).collect();
    writeln!(out, "  held there: {}", occupants.join(", "))
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
