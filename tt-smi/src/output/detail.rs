//! One device in full: every class, the kernels by type, the peaks.

use std::io::{self, Write};

use tt_shm_reader::Class;

use super::paint::Paint;
use super::units::{UNKNOWN, age, bytes, bytes_short, percent, plural, share, used_share};
use crate::model::{Device, KERNEL_CLASSES, Memory, Model, Peak};

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
    let live = |class: Class| {
        let figure = device.class(class);
        format!("{} in {}", bytes_short(figure.bytes), figure.count)
    };
    if device.incomplete {
        writeln!(out, "  {}", paint.warn(INCOMPLETE))?;
    }
    writeln!(out, "{}", memory_line("DRAM", &device.dram, model))?;
    writeln!(out, "    {}", asked_for(&device.dram))?;
    writeln!(out, "    buffers {}, traces {}", live(Class::Dram), live(Class::Trace))?;
    writeln!(out, "{}", memory_line("L1", &device.l1, model))?;
    writeln!(out, "    {}", asked_for(&device.l1))?;
    writeln!(out, "    buffers {}, L1_SMALL {}", live(Class::L1), live(Class::L1Small))?;
    writeln!(out, "    CBs {} resident, {} allocated", bytes_short(device.cb_resident), live(Class::Cb))?;
    writeln!(out, "{}", memory_line("Ethernet L1", &device.eth_l1, model))?;
    write_kernels(out, device)?;
    write_activity(out, device, model, paint)
}

fn memory_line(name: &str, memory: &Memory, model: &Model) -> String {
    let (share, percent) = (used_share(memory), percent(memory.used, memory.total));
    format!(
        "  {name:<12} {share:>16} {percent:>5}   peak {}{}",
        memory.peak.range.text(),
        when(&memory.peak, model)
    )
}

/// What was asked for of what is used, the padding, and what the allocator does not give.
fn asked_for(memory: &Memory) -> String {
    let padding = memory.used.saturating_sub(memory.requested);
    let reserved = memory.reserved.map_or_else(|| UNKNOWN.to_owned(), bytes_short);
    format!(
        "requested {}, padding {}, reserved {reserved}",
        bytes_short(memory.requested),
        bytes_short(padding)
    )
}

fn write_kernels(out: &mut dyn Write, device: &Device) -> io::Result<()> {
    let (loaded, _) = device.kernel_loaded();
    let resident = bytes_short(device.kernel_resident);
    writeln!(out, "  Kernels: {} loaded, {resident} resident on Tensix cores", bytes(loaded))?;
    for class in KERNEL_CLASSES {
        let figure = device.class(class);
        let label = class.kernel_type().map_or("", |kernel| kernel.label());
        writeln!(out, "    - {label}: {} ({})", bytes_short(figure.bytes), plural(figure.count, "kernel"))?;
    }
    if let Some(ring) = device.kernel_ring {
        let share = share(ring.used, Some(ring.total));
        writeln!(out, "    ring buffer {share}, {}", plural(ring.programs, "program"))?;
    }
    Ok(())
}

fn write_activity(out: &mut dyn Write, device: &Device, model: &Model, paint: Paint) -> io::Result<()> {
    let cached = percent(device.cached_dispatches, Some(device.dispatches));
    let failed = match device.failed_allocs {
        0 => String::new(),
        failed => paint.warn(&format!(", {}", plural(failed, "failed allocation"))),
    };
    writeln!(out, "  Dispatches: {}, {cached} cached{failed}", device.dispatches)?;
    let Some(failure) = device.failure else { return Ok(()) };
    let class = failure.class.map_or(UNKNOWN, Class::name);
    let text = format!(
        "last failure {} ago: pid {} asked {} of {class}, {} free, largest block {}",
        age(model.clock.age_ns(failure.time)),
        failure.pid,
        bytes(failure.shortage.request),
        failure.shortage.free_text(),
        failure.shortage.largest_text(),
    );
    writeln!(out, "  {}", paint.warn(&text))
}

fn when(peak: &Peak, model: &Model) -> String {
    match peak.time {
        Some(time) => format!(", {} ago", age(model.clock.age_ns(time))),
        None if peak.range.is_nothing() => String::new(),
        None => ", time unknown".to_owned(),
    }
}
