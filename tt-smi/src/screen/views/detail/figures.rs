//! The figures of a device: its memory, its activity, the composition of its peaks, and warnings.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use tt_shm_reader::{Class, Told};

use crate::driver::{DriverDevice, MEASURES, Measure};
use crate::escape::fit;
use crate::model::{
    Cause, Clock, Device, FIGURES, Failure, Figure, Held, Interval, Makeup, Memory, Model, Moment, Peak,
};
use crate::output::detail::INCOMPLETE;
use crate::screen::page::Scene;
use crate::screen::theme::{Part, Theme, parts};
use crate::screen::widgets::bar;
use crate::screen::widgets::text::or_unknown;
use crate::units::{self, UNKNOWN, age, bytes, bytes_short, count, percent, plural, share};

/// From this width on there is room for the number of allocations.
const WITH_COUNTS: u16 = 70;
/// From this width on there is room for the time of a peak besides its age.
const WITH_CLOCK: u16 = 76;
/// Least width of a bar.
const LEAST_BAR: usize = 3;

/// A line of the table.
struct MemoryRow {
    name: String,
    is_part: bool,
    memory: Memory,
    /// The capacity that it is a share of.
    total: Option<Option<u64>>,
    parts: Vec<(Part, u64)>,
    /// `None`: there is no count.
    peak: Option<Peak>,
}

/// A table of the memory of the scene's device.
pub(super) fn memory_lines(scene: &Scene<'_>, width: u16) -> Vec<Line<'static>> {
    let Some(device) = scene.device() else { return Vec::new() };
    let rows = rows(device);
    let peaks = rows.iter().map(|row| peak_text(row.peak.as_ref()).chars().count());
    let columns =
        TableColumns { width, peak: peaks.max().unwrap_or(0).max(9), clock: scene.data.model.clock };
    let heading = columns.heading(&scene.data.model, scene.theme);
    let warnings =
        warnings(device, &scene.data.model).into_iter().map(|text| Line::styled(text, scene.theme.warn()));
    let rows = rows.iter().map(|row| columns.line(row, scene.theme));
    warnings.chain([heading]).chain(rows).collect()
}

fn rows(device: &Device) -> Vec<MemoryRow> {
    let shown = FIGURES.iter().filter(|figure| figure.class() != Some(Class::SystemMemory));
    shown.filter_map(|figure| Some(row(figure, figure.of(&device.held)?, &device.held))).collect()
}

fn row(figure: &Figure, memory: &Memory, held: &Held) -> MemoryRow {
    let parts = match figure.sum_of {
        Some(place) => parts(held, place),
        None => vec![(Part::Of(figure.look), memory.used)],
    };
    let is_part = figure.is_part();
    MemoryRow {
        name: format!("{}{}", if is_part { "  " } else { "" }, figure.label),
        is_part,
        memory: *memory,
        total: figure.capacity(held),
        parts,
        peak: figure.has_peak().then_some(memory.peak),
    }
}

/// Widths of the columns.
struct TableColumns {
    width: u16,
    peak: usize,
    clock: Clock,
}

impl TableColumns {
    fn heading(&self, model: &Model, theme: &Theme) -> Line<'static> {
        let head = self.head("MEMORY", "N");
        // Peaks since a reset are marked as such.
        let peak = model.window_since.map_or_else(|| "PEAK".to_owned(), |_| "PEAK IN WINDOW".to_owned());
        let tail = self.tail("USED", "", &peak, "AGO", "AT (UTC)");
        let gap = " ".repeat(self.bar(&head, &tail).map_or(0, |bar| bar + 2));
        Line::styled(format!("{head}{gap}{tail}"), theme.heading())
    }

    fn line(&self, row: &MemoryRow, theme: &Theme) -> Line<'static> {
        let count = row.memory.count.map_or_else(String::new, |count| count.to_string());
        let head = self.head(&row.name, &count);
        let tail = self.tail_of(row);
        let mut spans = vec![Span::styled(head, if row.is_part { Style::new() } else { theme.heading() })];
        if let Some(width) = self.bar(&spans[0].content, &tail) {
            spans.extend(bar_spans(row, width, theme));
        }
        spans.push(Span::raw(tail));
        Line::from(spans)
    }

    fn head(&self, name: &str, count: &str) -> String {
        let with_counts = self.width >= WITH_COUNTS;
        if with_counts { format!(" {name:<14} {count:>5} ") } else { format!(" {name:<14} ") }
    }

    fn tail_of(&self, row: &MemoryRow) -> String {
        let memory = &row.memory;
        let share = row.total.map_or_else(String::new, |total| percent(memory.used, total));
        let used = match row.total {
            Some(_) if !row.is_part => memory.used_share(),
            _ => memory.used_range().short(),
        };
        let time = row.peak.and_then(|peak| peak.time);
        let or_unknown = |text: Option<String>| match (text, &row.peak) {
            (Some(text), _) => text,
            (None, Some(_)) => UNKNOWN.to_owned(),
            (None, None) => String::new(),
        };
        let ago = or_unknown(time.map(|time| age(self.clock.age_ns(time.monotonic_ns))));
        let at = or_unknown(time.map(time_of_day));
        self.tail(&used, &share, &peak_text(row.peak.as_ref()), &ago, &at)
    }

    fn tail(&self, used: &str, percent: &str, peak: &str, ago: &str, at: &str) -> String {
        let width = self.peak;
        let tail = format!(" {used:>15} {percent:>4} {:>width$} {ago:>6}", fit(peak, width));
        if self.width >= WITH_CLOCK { format!("{tail} {at:>8}") } else { tail }
    }

    /// Width of a bar between its brackets.
    fn bar(&self, head: &str, tail: &str) -> Option<usize> {
        let used = head.chars().count() + tail.chars().count() + 3;
        usize::from(self.width).checked_sub(used).filter(|width| *width >= LEAST_BAR)
    }
}

fn bar_spans(row: &MemoryRow, width: usize, theme: &Theme) -> Vec<Span<'static>> {
    let Some(total) = row.total else { return vec![Span::raw(" ".repeat(width + 2))] };
    let peak = row.peak.map_or(0, |peak| peak.range.low);
    bar::bracketed(&row.parts, peak, total, width, theme)
}

/// `4.1 GiB`; `4.1 to 5.0 GiB` or `≥4.1 GiB` for a range; empty if it is not counted.
fn peak_text(peak: Option<&Peak>) -> String {
    match peak {
        None => String::new(),
        Some(peak) if peak.range.is_nothing() => UNKNOWN.to_owned(),
        Some(peak) if peak.is_exact() => bytes(peak.range.low),
        Some(Peak { range: Interval { low, high: None }, .. }) => format!("≥{}", bytes(*low)),
        Some(Peak { range: Interval { low, high }, .. }) => share(*low, *high).replace(" / ", " to "),
    }
}

/// `14:13:10`. The age beside it makes a date unnecessary.
fn time_of_day(time: Moment) -> String {
    units::time_of_day(time.rfc3339().as_deref()).chars().take("14:13:10".len()).collect()
}

/// Activity and composition of the peaks of the scene's device.
pub(super) fn activity_lines(scene: &Scene<'_>, width: u16) -> Vec<Line<'static>> {
    let Some(device) = scene.device() else { return Vec::new() };
    let (model, theme) = (&scene.data.model, scene.theme);
    let mut lines = vec![Line::default()];
    if let Some(driver) = &device.driver {
        lines.push(heading("TELEMETRY", theme));
        lines.extend(telemetry_lines(driver, usize::from(width), theme));
    }
    lines.push(heading("ACTIVITY", theme));
    lines.extend(activity(device).into_iter().map(Line::raw));
    for (name, makeup) in [("DRAM PEAK", &device.dram_makeup), ("L1 PEAK", &device.l1_makeup)] {
        lines.push(heading(name, theme));
        lines.extend(makeup_lines(makeup, model, usize::from(width)).into_iter().map(Line::raw));
    }
    let failures = failures(device, model, usize::from(width)).into_iter();
    lines.extend(failures.map(|text| Line::styled(text, theme.warn())));
    lines
}

fn heading(text: &'static str, theme: &Theme) -> Line<'static> {
    Line::from(Span::styled(format!(" {text}"), theme.heading()))
}

/// What the driver measures, as far as it is known, with limits that are reached; the rest is in the view of its own.
fn telemetry_lines(driver: &DriverDevice, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let of = |measure: &Measure| {
        let value = measure.value(&driver.stats)?;
        let is_over = measure.is_at_limit(&driver.stats);
        let limit = measure.limit(&driver.stats).filter(|_| is_over);
        let over = limit.map_or_else(String::new, |limit| format!(", limit {}", measure.text(limit)));
        let text = format!("{} {} {}", measure.label, measure.text(value), measure.unit);
        Some((format!("{}{over}", text.trim_end()), is_over))
    };
    let known: Vec<(String, bool)> =
        MEASURES.iter().filter(|measure| measure.told != Told::Heartbeat).filter_map(of).collect();
    let stands = (driver.heartbeat_moves == Some(false))
        .then(|| Line::styled("   heartbeat stands still: the firmware hangs", theme.warn()));
    if known.is_empty() {
        return [Line::styled("   nothing is published: key 3 says why", theme.dim())]
            .into_iter()
            .chain(stands)
            .collect();
    }
    let mut lines: Vec<(String, bool)> = Vec::new();
    for (text, is_over) in known {
        match lines.last_mut() {
            Some((line, over)) if line.chars().count() + 3 + text.chars().count() <= width => {
                *line = format!("{line} · {text}");
                *over |= is_over;
            }
            _ => lines.push((format!("   {text}"), is_over)),
        }
    }
    let style = |is_over| if is_over { theme.warn() } else { Style::new() };
    lines.into_iter().map(|(text, is_over)| Line::styled(text, style(is_over))).chain(stands).collect()
}

fn activity(device: &Device) -> [String; 2] {
    let rate = |rate: Option<f64>| or_unknown(rate, count);
    let cached = percent(device.held.cached_dispatches, Some(device.held.dispatches));
    [
        format!(
            "   {} dispatches/s, {} events/s",
            rate(device.dispatches_per_second),
            rate(device.events_per_second)
        ),
        format!("   {}, {cached} with a cached binary", plural(device.held.dispatches, "dispatch")),
    ]
}

/// Classes on one line, holders on as many as needed.
fn makeup_lines(makeup: &Makeup, model: &Model, width: usize) -> Vec<String> {
    if makeup.classes.is_empty() && makeup.holders.is_empty() {
        return vec!["   composition unknown".to_owned()];
    }
    let classes =
        makeup.classes.iter().map(|(class, bytes)| format!("{} {}", class.name(), bytes_short(*bytes)));
    let mut holders: Vec<String> = makeup
        .holders
        .iter()
        .map(|holder| {
            format!("pid {}{} {}", holder.pid, name_of(holder.pid, model), bytes_short(holder.bytes))
        })
        .collect();
    if makeup.others > 0 {
        holders.push(format!("others {}", bytes_short(makeup.others)));
    }
    let mut lines = wrapped("of ", classes.collect(), width);
    lines.extend(wrapped("by ", holders, width));
    if !makeup.exact {
        lines.push("   may be incomplete".to_owned());
    }
    lines
}

/// ` (llama)`; empty if the process is gone.
fn name_of(pid: u64, model: &Model) -> String {
    let process = model.processes.iter().find(|process| process.namespace_pid == pid);
    process.map_or_else(String::new, |process| format!(" ({})", fit(&process.name, 16)))
}

/// Comma-separated items, wrapped.
fn wrapped(head: &str, items: Vec<String>, width: usize) -> Vec<String> {
    let mut lines = vec![format!("   {head}")];
    let last = items.len().saturating_sub(1);
    for (place, item) in items.into_iter().enumerate() {
        let item = if place == last { item } else { format!("{item}, ") };
        let line = lines.last_mut().filter(|line| line.chars().count() + item.chars().count() <= width);
        match line {
            Some(line) => line.push_str(&item),
            None => lines.push(format!("      {item}")),
        }
    }
    lines
}

/// Warnings about the device, shown above everything else.
fn warnings(device: &Device, model: &Model) -> Vec<String> {
    let explained = [
        (device.over_capacity, "over capacity: a process misreports"),
        (device.conflict, "conflict: processes disagree about the device"),
        (device.incomplete, INCOMPLETE),
    ];
    let explained = explained.into_iter().filter(|(set, _)| *set).map(|(_, text)| format!(" {text}"));
    let claims =
        model.processes.iter().flat_map(|process| process.claims().map(move |claim| (process, claim)));
    let claims = claims.filter(|(_, (index, _))| *index == device.index);
    let claims =
        claims.map(|(process, (_, claim))| format!(" pid {} says: {}", process.pid_text(), claim.text()));
    explained.chain(claims).collect()
}

/// The number of failed allocations, then the recorded ones, newest first.
fn failures(device: &Device, model: &Model, width: usize) -> Vec<String> {
    let failed = device.held.failed_allocs;
    let count =
        (failed > 0).then(|| format!(" {} by running processes", plural(failed, "failed allocation")));
    let kept = model.failures.iter().filter(|failure| failure.chip_id == device.id.chip_id);
    count.into_iter().chain(kept.flat_map(|failure| failure_lines(failure, model, width))).collect()
}

fn failure_lines(failure: &Failure, model: &Model, width: usize) -> Vec<String> {
    let why = match failure.cause {
        Some(Cause::Exhausted) => ": exhausted",
        Some(Cause::Fragmented) => ": fragmented",
        // Neither: banks that differ, or an alignment.
        None => "",
    };
    let class = failure.class.map_or(UNKNOWN, Class::name);
    let pid = failure.who.pid_text();
    let parts = vec![
        format!("{} ago", age(model.clock.age_ns(failure.time.monotonic_ns))),
        format!(
            "pid {pid} ({}) requested {} of {class}",
            fit(&failure.who.name, 16),
            bytes(failure.shortage.request_bytes)
        ),
        format!("{} free", failure.shortage.free_text()),
        format!("largest block {}{why}", failure.shortage.largest_text()),
    ];
    wrapped(&format!("{} ", time_of_day(failure.time)), parts, width)
}
