//! What the command and the screen both say of cores.

use super::{DeviceCores, Fullest, Held, Occupant, Ring, Unplaced};
use crate::escape::{Foreign, fit};
use crate::segments::pid_text;
use crate::units::{UNKNOWN, plural};

/// Longest name of an occupant.
const NAME: usize = 32;

/// Always in KiB: the L1 of a core has a little more than one MiB, of which a tenth is a lot.
pub(crate) fn kib(bytes: u64) -> String {
    format!("{:.1} KiB", bytes as f64 / 1024.0)
}

pub(crate) fn kib_or_unknown(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| UNKNOWN.to_owned(), kib)
}

/// The core that runs out first.
pub(crate) fn first_line(device: &DeviceCores) -> String {
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

/// What takes memory on a core, and how much.
pub(crate) fn describe_occupant(occupant: &Occupant) -> String {
    let Occupant { pid, claimed, class, program, program_name, name, bytes } = occupant;
    let named = |name: &Option<Foreign>| {
        name.as_ref().map_or_else(String::new, |name| format!(" {}", fit(name, NAME)))
    };
    let program =
        program.map_or_else(String::new, |id| format!(" of program {id:#x}{}", named(program_name)));
    format!("{} {}{}{program} (pid {})", kib(*bytes), class.name(), named(name), pid_text(*pid, *claimed))
}

/// What concerns all cores.
pub(crate) fn remarks(device: &DeviceCores) -> Vec<String> {
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
    lines.extend(
        device.kernel_rings.iter().map(|ring| format!("kernel-config ring: {}", describe_ring(ring))),
    );
    if !device.exact {
        lines.push("not exact: used is at least, free at most what is shown".to_owned());
    }
    lines
}

/// What a process has in its kernel-config ring.
pub(crate) fn describe_ring(ring: &Ring) -> String {
    let Ring { pid, total_bytes, used_bytes, programs } = ring;
    let programs = plural(*programs, "program");
    format!("{} of {} used by {programs} (pid {pid})", kib(*used_bytes), kib(*total_bytes))
}

/// What is not empty is not 0, and what is not full is not 100.
pub(crate) fn percent(held: &Held, total: Option<u64>) -> String {
    let (Some(free), Some(total)) = (held.free_bytes, total.filter(|total| *total > 0)) else {
        return UNKNOWN.to_owned();
    };
    let used = total.saturating_sub(free);
    let percent = (used as f64 / total as f64 * 100.0).ceil() as u64;
    (if free > 0 { percent.min(99) } else { percent }).to_string()
}
