//! One line per kind of memory: bar, used and total, peak and when it was reached.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use tt_shm_reader::Class;

use super::facts;
use super::plan::Lines;
use crate::escape::fit;
use crate::model::{Clock, Device, FIGURES, Figure, Held, Interval, Memory, Model, Peak, Rank};
use crate::output::units::{self, UNKNOWN, age, bytes, percent, share, used_share};
use crate::screen::page::Scene;
use crate::screen::theme::{Part, Theme, parts};
use crate::screen::widgets::bar;

/// From this width on there is room for the number of allocations.
const WITH_COUNTS: u16 = 70;
/// From this width on there is room for the time of a peak besides its age.
const WITH_CLOCK: u16 = 76;
/// Least width of a bar.
const LEAST_BAR: usize = 3;

/// A line.
struct Row {
    name: String,
    is_part: bool,
    memory: Memory,
    /// The capacity that it is a share of.
    total: Option<Option<u64>>,
    parts: Vec<(Part, u64)>,
    /// `None`: there is no count.
    peak: Option<Peak>,
}

/// The lines of the scene's device.
pub(super) fn lines(scene: &Scene<'_>, width: u16) -> Lines {
    let Some(device) = scene.device() else { return Vec::new() };
    let rows = rows(device);
    let peaks = rows.iter().map(|row| peak_text(row.peak.as_ref()).chars().count());
    let columns = Columns { width, peak: peaks.max().unwrap_or(0).max(9), clock: scene.data.model.clock };
    let heading = columns.heading(&scene.data.model, scene.theme);
    let warnings = facts::warnings(device, &scene.data.model)
        .into_iter()
        .map(|text| Line::styled(text, scene.theme.warn()));
    let rows = rows.iter().map(|row| columns.line(row, scene.theme));
    warnings.chain([heading]).chain(rows).collect()
}

fn rows(device: &Device) -> Vec<Row> {
    let shown = FIGURES.iter().filter(|figure| figure.class() != Some(Class::SystemMemory));
    shown.filter_map(|figure| Some(row(figure, figure.of(&device.held)?, &device.held))).collect()
}

fn row(figure: &Figure, memory: &Memory, held: &Held) -> Row {
    use tt_shm_reader::Memory as Place;
    let total = match figure.rank {
        Rank::Whole => Some(memory.total),
        Rank::Part(Place::Dram) => Some(held.dram.total),
        Rank::Part(_) => Some(held.l1.total),
        Rank::Apart | Rank::PartApart => None,
    };
    let parts = match figure.stem {
        "dram" => parts(held, Place::Dram),
        "l1" => parts(held, Place::L1),
        "cb_resident" => vec![(Part::Of(Class::Cb), memory.used)],
        _ => vec![(Part::Of(figure.class().unwrap_or(Class::KernelApplication)), memory.used)],
    };
    let is_part = matches!(figure.rank, Rank::Part(_) | Rank::PartApart);
    Row {
        name: format!("{}{}", if is_part { "  " } else { "" }, figure.label),
        is_part,
        memory: *memory,
        total,
        parts,
        peak: figure.has_peak().then_some(memory.peak),
    }
}

/// Widths of the columns.
struct Columns {
    width: u16,
    peak: usize,
    clock: Clock,
}

impl Columns {
    fn heading(&self, model: &Model, theme: &Theme) -> Line<'static> {
        let head = self.head("MEMORY", "N");
        // Peaks since a reset are marked as such.
        let peak = model.window_since.map_or_else(|| "PEAK".to_owned(), |_| "PEAK IN WINDOW".to_owned());
        let tail = self.tail("USED", "", &peak, "AGO", "AT (UTC)");
        let gap = " ".repeat(self.bar(&head, &tail).map_or(0, |bar| bar + 2));
        Line::styled(format!("{head}{gap}{tail}"), theme.heading())
    }

    fn line(&self, row: &Row, theme: &Theme) -> Line<'static> {
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

    fn tail_of(&self, row: &Row) -> String {
        let memory = &row.memory;
        let share = row.total.map_or_else(String::new, |total| percent(memory.used, total));
        let used = match row.total {
            Some(_) if !row.is_part => used_share(memory),
            _ => memory.used_range().short(),
        };
        let time = row.peak.and_then(|peak| peak.time);
        let or_unknown = |text: Option<String>| match (text, &row.peak) {
            (Some(text), _) => text,
            (None, Some(_)) => UNKNOWN.to_owned(),
            (None, None) => String::new(),
        };
        let ago = or_unknown(time.map(|time| age(self.clock.age_ns(time))));
        let at = or_unknown(time.map(|time| time_of_day(self.clock, time)));
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

fn bar_spans(row: &Row, width: usize, theme: &Theme) -> Vec<Span<'static>> {
    let Some(total) = row.total else { return vec![Span::raw(" ".repeat(width + 2))] };
    let mut spans = vec![Span::styled("▕", theme.dim())];
    match total {
        Some(total) => {
            let peak = row.peak.map_or(0, |peak| peak.range.low);
            spans.extend(bar::spans(&bar::cells(&row.parts, total, width), peak, total, theme));
        }
        None => spans.push(Span::styled(format!("{:^width$}", no_capacity(width)), theme.dim())),
    }
    spans.push(Span::styled("▏", theme.dim()));
    spans
}

fn no_capacity(width: usize) -> &'static str {
    const TEXT: &str = "capacity unknown";
    if width >= TEXT.len() { TEXT } else { UNKNOWN }
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
pub(super) fn time_of_day(clock: Clock, time: u64) -> String {
    let wall = clock.rfc3339(time);
    units::time_of_day(wall.as_deref()).chars().take("14:13:10".len()).collect()
}
