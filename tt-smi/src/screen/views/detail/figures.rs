//! One line per kind of memory: bar, used and total, peak and when it was reached.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use tt_shm_reader::Class;

use super::facts;
use super::plan::Lines;
use crate::escape::fit;
use crate::model::{Clock, Device, Interval, KERNEL_CLASSES, Memory, Model, Peak};
use crate::output::units::{self, UNKNOWN, age, bytes, percent, share};
use crate::screen::page::Scene;
use crate::screen::theme::{Part, Theme};
use crate::screen::widgets::bar;

/// From this width on there is room for the number of allocations.
const WITH_COUNTS: u16 = 70;
/// From this width on there is room for the time of a peak besides its age.
const WITH_CLOCK: u16 = 76;
/// Least width of a bar.
const LEAST_BAR: usize = 3;

/// What a figure is a share of.
enum Of {
    /// A memory of its own, with its capacity.
    Own(Option<u64>),
    /// The memory above it, which shows the capacity.
    Above(Option<u64>),
    /// Nothing: what is allocated or loaded need not be resident, so it can exceed the capacity.
    Nothing,
}

/// A line.
struct Row {
    name: &'static str,
    count: Option<u64>,
    used: u64,
    of: Of,
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
    let (dram, l1) = (device.dram.total, device.l1.total);
    let mut rows = vec![
        whole("DRAM", &device.dram, dram_parts(device)),
        class(device, Class::Dram, "  buffers", Of::Above(dram), Part::Dram),
        class(device, Class::Trace, "  TRACE", Of::Above(dram), Part::Trace),
        whole("L1", &device.l1, l1_parts(device)),
        class(device, Class::L1, "  buffers", Of::Above(l1), Part::L1),
        class(device, Class::L1Small, "  L1_SMALL", Of::Above(l1), Part::L1Small),
        resident("  CBs resident", device.cb_resident, device.cb_resident_peak, Of::Above(l1), Part::Cb),
        whole("ethernet L1", &device.eth_l1, vec![(Part::Kernels, device.eth_l1.used)]),
        class(device, Class::Cb, "CBs allocated", Of::Nothing, Part::Cb),
        resident(
            "kernels res.",
            device.kernel_resident,
            device.kernel_resident_peak,
            Of::Nothing,
            Part::Kernels,
        ),
    ];
    let (used, count) = device.kernel_loaded();
    let all = Row {
        name: "kernels loaded",
        count: Some(count),
        used,
        of: Of::Nothing,
        parts: Vec::new(),
        peak: None,
    };
    rows.push(all);
    let names = ["  Fabric", "  Dispatch", "  Application"];
    let kernels = KERNEL_CLASSES.into_iter().zip(names);
    rows.extend(kernels.map(|(kind, name)| class(device, kind, name, Of::Nothing, Part::Kernels)));
    rows.extend(device.kernel_ring.map(|ring| Row {
        name: "kernel ring",
        count: Some(ring.programs),
        used: ring.used,
        of: Of::Own(Some(ring.total)),
        parts: vec![(Part::Kernels, ring.used)],
        peak: None,
    }));
    rows
}

fn dram_parts(device: &Device) -> Vec<(Part, u64)> {
    vec![(Part::Dram, device.class(Class::Dram).bytes), (Part::Trace, device.class(Class::Trace).bytes)]
}

fn l1_parts(device: &Device) -> Vec<(Part, u64)> {
    vec![
        (Part::L1, device.class(Class::L1).bytes),
        (Part::L1Small, device.class(Class::L1Small).bytes),
        (Part::Cb, device.cb_resident),
    ]
}

fn whole(name: &'static str, memory: &Memory, parts: Vec<(Part, u64)>) -> Row {
    let Memory { used, total, peak, .. } = *memory;
    Row { name, count: None, used, of: Of::Own(total), parts, peak: Some(peak) }
}

fn class(device: &Device, class: Class, name: &'static str, of: Of, part: Part) -> Row {
    let figure = device.class(class);
    let parts = vec![(part, figure.bytes)];
    Row { name, count: Some(figure.count), used: figure.bytes, of, parts, peak: Some(figure.peak) }
}

fn resident(name: &'static str, used: u64, peak: Peak, of: Of, part: Part) -> Row {
    Row { name, count: None, used, of, parts: vec![(part, used)], peak: Some(peak) }
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
        let count = row.count.map_or_else(String::new, |count| count.to_string());
        let head = self.head(row.name, &count);
        let tail = self.tail_of(row);
        let is_whole = !row.name.starts_with(' ');
        let mut spans = vec![Span::styled(head, if is_whole { theme.heading() } else { Style::new() })];
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
        let (used, share) = match row.of {
            Of::Own(total) => (share(row.used, total), percent(row.used, total)),
            Of::Above(total) => (bytes(row.used), percent(row.used, total)),
            Of::Nothing => (bytes(row.used), String::new()),
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
    let total = match row.of {
        Of::Own(total) | Of::Above(total) => total,
        Of::Nothing => return vec![Span::raw(" ".repeat(width + 2))],
    };
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
