//! Events as rows: in columns, or in the words of the log that users of the proof of concept know.

use tt_shm_reader::{Class, EventKind};

use super::log::LogEntry;
use crate::lists::events::Happened;
use crate::lists::fold::devices_text;
use crate::model::Word;
use crate::screen::theme::{Part, Theme};
use crate::screen::widgets::in_full::Fact;
use crate::screen::widgets::list::{Column, RowStyle};
use crate::screen::widgets::text::{hex, or_unknown};
use crate::segments::pid_text;
use crate::units::{UNKNOWN, bytes, time_of_day};

/// Formatted only when visible. With little room: kind, time, size, and what it is about.
pub(super) const COLUMNS: &[Column<LogEntry>] = &[
    Column::new("TIME", 15, 1, time),
    Column { right: true, ..Column::new("PID", 7, 5, |entry| pid_text(entry.seen.pid, entry.seen.claimed)) },
    Column::new("PROCESS", 14, 8, |entry| entry.seen.process.to_string()),
    Column { right: true, ..Column::new("DEV", 8, 4, devices) },
    Column::new("KIND", 15, 0, kind_text),
    Column { right: true, ..Column::new("SIZE/DEV", 11, 2, size) },
    Column::new("CLASS", 12, 6, class),
    Column { right: true, ..Column::new("ADDRESS", 12, 7, |entry| or_unknown(happened(entry).address, hex)) },
    Column { right: true, ..Column::new("ID", 10, 9, id) },
    Column::new("WHAT", 0, 3, |entry| happened(entry).what()),
];

/// The proof of concept's lines. The time stays in place when scrolling sideways.
pub(super) const LOG_COLUMNS: &[Column<LogEntry>] =
    &[Column::new("TIME", 15, 1, time), Column::new("EVENT", 0, 0, log_line)];

fn happened(entry: &LogEntry) -> Happened {
    entry.seen.happened()
}

fn time(entry: &LogEntry) -> String {
    time_of_day(entry.seen.time.rfc3339().as_deref()).to_owned()
}

/// The line without its time.
fn log_line(entry: &LogEntry) -> String {
    let line = happened(entry).to_string();
    line.split_once(' ').map_or_else(|| line.clone(), |(_, what)| what.to_owned())
}

/// The kind as a filter takes it.
fn kind_text(entry: &LogEntry) -> String {
    entry.seen.kind_name().to_ascii_lowercase()
}

/// `2`, `0-3 x4`.
fn devices(entry: &LogEntry) -> String {
    match (entry.devices, entry.seen.device) {
        (0, device) => or_unknown(device, |device| device.to_string()),
        (devices, _) => devices_text((0..64).filter(|device| devices >> device & 1 == 1).collect()),
    }
}

/// What is allocated or loaded has a plus, what is freed or unloaded a minus.
fn size(entry: &LogEntry) -> String {
    use EventKind::*;
    let sign = match entry.seen.event.kind() {
        Some(Alloc | CbAlloc | KernelLoad) => "+",
        Some(Free | CbFree | KernelUnload) => "-",
        _ => "",
    };
    or_unknown(happened(entry).size_bytes, |size| format!("{sign}{}", bytes(size)))
}

fn class(entry: &LogEntry) -> String {
    happened(entry).class.map_or(UNKNOWN, Class::name).to_owned()
}

/// The id, unless the kind has none.
fn id(entry: &LogEntry) -> String {
    match entry.seen.event.kind() {
        Some(EventKind::AllocFailed | EventKind::Gauge | EventKind::DeviceOpen | EventKind::DeviceClose) => {
            UNKNOWN.to_owned()
        }
        Some(EventKind::Marker) => entry.seen.event.id.to_string(),
        _ => hex(entry.seen.event.id),
    }
}

/// The colour of a kind. What is most frequent has none.
pub(super) fn style(entry: &LogEntry, theme: &Theme) -> RowStyle {
    use EventKind::*;
    let of = |class| theme.part(Part::Of(class)).1;
    match entry.seen.event.kind() {
        Some(AllocFailed) => return RowStyle::warn(theme),
        Some(Alloc) => theme.good(),
        Some(Free) => of(Class::L1),
        Some(CbAlloc | CbFree) => of(Class::Cb),
        Some(KernelLoad | KernelUnload | ProgramEnd) => of(Class::KernelApplication),
        Some(Marker) => theme.heading(),
        Some(KernelDispatch) => Default::default(),
        _ => theme.dim(),
    }
    .into()
}

/// Everything that is known of an event.
pub(super) fn facts(entry: &LogEntry, process: String) -> Vec<Fact> {
    let event = happened(entry);
    let exact = |size: u64| format!("{} ({size} B)", bytes(size));
    let total = event.total_bytes.map(|total| {
        let device = event.device.map_or_else(String::new, |device| format!(" on device {device}"));
        format!("{}{device}", exact(total))
    });
    let facts = [
        ("event", Some(kind_text(entry))),
        ("what", Some(event.what())),
        ("time", Some(time(entry))),
        ("process", Some(process)),
        ("device", Some(devices(entry))),
        ("class", event.class.map(|class| class.name().to_owned())),
        ("size", event.size_bytes.map(exact)),
        ("live after it", total),
        ("address", event.address.map(hex)),
        ("id", Some(id(entry)).filter(|id| id != UNKNOWN)),
        ("program", event.program.map(hex)),
        ("cores", event.cores.map(|cores| cores.to_string())),
        ("core", event.core_type.map(|core| core.word().to_owned())),
        ("lane", event.lane.map(|lane| lane.to_string())),
        ("queue", event.queue.map(|queue| queue.to_string())),
    ];
    facts.into_iter().filter_map(|(what, value)| Some((what, value?))).collect()
}
