//! One device in full: every class, the kernels by type, the peaks.

use std::io::{self, Write};

use tt_shm_reader::Class;

use super::paint::Paint;
use crate::model::{Device, FIGURES, Figure, Memory, Model, Peak, Rank};
use crate::units::{UNKNOWN, age, bytes, bytes_short, percent, plural};

/// What is said of a device of which somebody could not be read.
pub(crate) const INCOMPLETE: &str =
    "incomplete: a process that could not be read may have more: what is used is at least what is shown";

/// Writes a device.
pub fn write(out: &mut dyn Write, device: &Device, model: &Model, paint: Paint) -> io::Result<()> {
    writeln!(out)?;
    let logical = device.id.logical.map_or_else(|| UNKNOWN.to_owned(), |id| id.to_string());
    let head = format!("Device {}", device.index);
    let arch = device.arch.unwrap_or(UNKNOWN);
    let about = format!("{} ({arch}), chip {:#018x}, logical id {logical}", device.kind(), device.id.chip_id);
    writeln!(out, "{}  {}", paint.bold(&head), paint.dim(&about))?;
    if device.incomplete {
        writeln!(out, "  {}", paint.warn(INCOMPLETE))?;
    }
    for figure in FIGURES.iter() {
        if let Some(memory) = figure.of(&device.held) {
            writeln!(out, "{}", line(figure, memory, model))?;
        }
    }
    write_activity(out, device, model, paint)
}

/// A figure: what is used of how much, the peak, and what else is known.
fn line(figure: &Figure, memory: &Memory, model: &Model) -> String {
    let (indent, used, percent) = match figure.rank {
        Rank::Whole => ("", memory.used_share(), percent(memory.used, memory.total)),
        Rank::Part(_) | Rank::PartApart => ("  ", memory.used_range().short(), String::new()),
        Rank::Apart => ("", memory.used_range().short(), String::new()),
    };
    let mut more = Vec::new();
    if figure.has_peak() {
        more.push(format!("peak {}{}", memory.peak.range.text(), when(&memory.peak, model)));
    }
    if let Some(count) = memory.count {
        more.push(plural(count, figure.item));
    }
    if memory.padding() > 0 {
        more.push(format!(
            "requested {}, padding {}",
            bytes_short(memory.requested),
            bytes_short(memory.padding())
        ));
    }
    if let Some(reserved) = memory.reserved {
        more.push(format!("reserved {}", bytes_short(reserved)));
    }
    let name = format!("{indent}{}", figure.label);
    format!("  {name:<14} {used:>16} {percent:>5}   {}", more.join(", ")).trim_end().to_owned()
}

fn write_activity(out: &mut dyn Write, device: &Device, model: &Model, paint: Paint) -> io::Result<()> {
    let cached = percent(device.held.cached_dispatches, Some(device.held.dispatches));
    let failed = match device.held.failed_allocs {
        0 => String::new(),
        failed => paint.warn(&format!(", {}", plural(failed, "failed allocation"))),
    };
    writeln!(out, "  Dispatches: {}, {cached} cached{failed}", device.held.dispatches)?;
    let Some(failure) = device.failure else { return Ok(()) };
    let class = failure.class.map_or(UNKNOWN, Class::name);
    let text = format!(
        "last failure {} ago: pid {} requested {} of {class}, {} free, largest block {}",
        age(model.clock.age_ns(failure.time.monotonic_ns)),
        failure.pid,
        bytes(failure.shortage.request_bytes),
        failure.shortage.free_text(),
        failure.shortage.largest_text(),
    );
    writeln!(out, "  {}", paint.warn(&text))
}

fn when(peak: &Peak, model: &Model) -> String {
    match peak.time {
        Some(time) => format!(", {} ago", age(model.clock.age_ns(time.monotonic_ns))),
        None if peak.range.is_nothing() => String::new(),
        None => ", time unknown".to_owned(),
    }
}
