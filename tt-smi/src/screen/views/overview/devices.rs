//! Devices as rows: bars, percentages, peaks, and the last minute. What no source gives takes no room.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use tt_shm_reader::Told;

use super::fold::Group;
use crate::driver::Measure;
use crate::escape::{fit, pad};
use crate::model::{Device, Memory, Model};
use crate::screen::theme::{Part, Theme, parts};
use crate::screen::widgets::bar;
use crate::screen::widgets::text::or_unknown;
use crate::units::{bytes, count, percent};

/// What the driver measures, and the width of its column.
const MEASURED: [(Told, &str, usize); 2] = [(Told::Temperature, "°C", 5), (Told::Power, "W", 6)];
/// Width of a percentage, and of bytes, each with a gap.
const PERCENT: usize = 5;
const BYTES: usize = 10;
/// Least width of a bar: less shows nothing.
const LEAST_BAR: usize = 4;

/// Which columns there are, and how wide.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    name: usize,
    board: usize,
    measured: Vec<(Told, &'static str, usize)>,
    /// Width of each bar, without brackets.
    bar: usize,
    has_used: bool,
    has_peak: bool,
    has_processes: bool,
    has_rate: bool,
    pub trend: usize,
}

impl Columns {
    /// Those that fit; bars take what is left over.
    pub(super) fn of(width: usize, groups: &[Group], model: &Model) -> Columns {
        let longest = |texts: &mut dyn Iterator<Item = String>, least: usize| {
            texts.map(|text| text.chars().count()).max().unwrap_or(0).max(least) + 1
        };
        let name = longest(&mut groups.iter().map(|group| group.name(&model.devices)), 3);
        let board = longest(&mut model.devices.iter().map(Device::kind), 5).min(13);
        let is_told = |told: &Told| model.devices.iter().any(|device| device.measured(*told).is_some());
        let measured: Vec<_> = MEASURED.into_iter().filter(|(told, ..)| is_told(told)).collect();
        let mut columns = Columns {
            name,
            board: 0,
            measured: Vec::new(),
            bar: 0,
            has_used: false,
            has_peak: false,
            has_processes: false,
            has_rate: false,
            trend: 0,
        };
        // In the order of importance, each only if bars stay as wide as they should be then.
        type Add = fn(&mut Columns, usize);
        let board_and_more: [(usize, Add); 6] = [
            (6, |columns, _| columns.has_used = true),
            (6, |columns, _| columns.trend = 10),
            (7, |columns, board| columns.board = board),
            (14, |columns, _| columns.has_peak = true),
            (14, |columns, _| columns.has_processes = true),
            (18, |columns, _| columns.has_rate = true),
        ];
        for (bar, add) in board_and_more {
            let mut wider = columns.clone();
            add(&mut wider, board);
            if wider.bar_of(width) >= bar {
                columns = wider;
            }
        }
        let wider = Columns { measured, ..columns.clone() };
        if wider.bar_of(width) >= 10 {
            columns = wider;
        }
        let wider = Columns { trend: 30, ..columns.clone() };
        if columns.trend > 0 && wider.bar_of(width) >= 24 {
            columns = wider;
        }
        columns.bar = columns.bar_of(width);
        columns
    }

    /// The width of each bar if all other columns are as they are.
    fn bar_of(&self, width: usize) -> usize {
        let measured: usize = self.measured.iter().map(|(_, _, width)| width).sum();
        let memory =
            2 + PERCENT + if self.has_used { BYTES } else { 0 } + if self.has_peak { BYTES + 1 } else { 0 };
        let trend = if self.trend > 0 { self.trend + 2 } else { 0 };
        let fixed = 1
            + self.name
            + self.board
            + measured
            + 2 * memory
            + 1
            + trend
            + if self.has_processes { 6 } else { 0 }
            + if self.has_rate { 7 } else { 0 };
        width.saturating_sub(fixed) / 2
    }

    /// The headings.
    pub(super) fn heading(&self, theme: &Theme) -> Line<'static> {
        let mut text = format!(" {}", pad("DEV", self.name, false));
        text += &pad(if self.board > 0 { "BOARD" } else { "" }, self.board, false);
        for (_, unit, width) in &self.measured {
            text += &pad(unit, *width, true);
        }
        for name in [" DRAM", " L1"] {
            let used = self.bar + 2 + PERCENT + if self.has_used { BYTES } else { 0 };
            text += &pad(name, used, false);
            text += &pad("PEAK", if self.has_peak { BYTES + 1 } else { 0 }, true);
        }
        text += " ";
        if self.trend > 0 {
            text += &pad(" 1 MIN", self.trend + 2, false);
        }
        text += &pad("PROCS", if self.has_processes { 6 } else { 0 }, true);
        text += &pad("EV/S", if self.has_rate { 7 } else { 0 }, true);
        Line::styled(text, theme.heading())
    }

    /// A row. `trend` is what was used over the last minute, of the width of its column.
    pub(super) fn row(
        &self,
        group: &Group,
        model: &Model,
        trend: &str,
        selected: Option<Style>,
        theme: &Theme,
    ) -> Line<'static> {
        let Some(device) = model.devices.get(group.first()) else { return Line::default() };
        let is_flagged = !device.flags().is_empty();
        let sign = if is_flagged { "!" } else { " " };
        // Texts are part of the selection; bars and curves keep their colours.
        let plain = selected.unwrap_or_default();
        let style = if is_flagged { theme.warn().patch(plain) } else { plain };
        let head = format!("{sign}{}", pad(&group.name(&model.devices), self.name, false));
        let mut spans = vec![Span::styled(head, style)];
        spans.push(Span::styled(pad(&fit(&device.kind(), self.board), self.board, false), plain));
        for (told, _, width) in &self.measured {
            spans.push(Span::styled(pad(&measured(group, model, *told), *width, true), plain));
        }
        for (memory, kind) in
            [(&device.held.dram, tt_shm_reader::Memory::Dram), (&device.held.l1, tt_shm_reader::Memory::L1)]
        {
            self.memory(&mut spans, memory, &parts(&device.held, kind), plain, theme);
        }
        spans.push(Span::raw(" "));
        if self.trend > 0 {
            let level = theme.level(device.held.dram.used, device.held.dram.total);
            let style = if level == Style::new() {
                theme.part(Part::Of(tt_shm_reader::Class::Dram)).1
            } else {
                level
            };
            spans.push(Span::styled(format!(" {trend} "), style));
        }
        if self.has_processes {
            spans.push(Span::styled(format!("{:>6}", device.processes), plain));
        }
        if self.has_rate {
            let rate = or_unknown(device.events_per_second, count);
            spans.push(Span::styled(format!("{rate:>7}"), plain));
        }
        Line::from(spans)
    }

    /// The bar, how full it is, what is used, and the peak.
    fn memory(
        &self,
        spans: &mut Vec<Span<'static>>,
        memory: &Memory,
        parts: &[(Part, u64)],
        plain: Style,
        theme: &Theme,
    ) {
        let peak = memory.peak.range;
        if self.bar >= LEAST_BAR {
            spans.extend(bar::bracketed(parts, peak.low, memory.total, self.bar, theme));
        } else {
            spans.push(Span::raw(" ".repeat(self.bar + 2)));
        }
        let level = theme.level(memory.used, memory.total);
        let full = format!("{:>PERCENT$}", percent(memory.used, memory.total));
        spans.push(Span::styled(full, level.patch(plain)));
        if self.has_used {
            let text = format!("{}{}", memory.used_range().mark().trim(), bytes(memory.used));
            spans.push(Span::styled(format!("{text:>BYTES$}"), plain));
        }
        if self.has_peak {
            let text = format!("{}{}", peak.mark().trim(), bytes(peak.low));
            spans.push(Span::styled(format!("{text:>width$}", width = BYTES + 1), theme.dim().patch(plain)));
        }
    }
}

/// Of several devices, the most.
fn measured(group: &Group, model: &Model, told: Told) -> String {
    let devices = group.members.iter().filter_map(|place| model.devices.get(*place));
    let value = |device: &Device| Measure::of(told)?.value(&device.driver.as_ref()?.stats);
    let most = devices.filter_map(value).reduce(f64::max);
    or_unknown(most.zip(Measure::of(told)), |(most, measure)| measure.text(most))
}

/// Which device it is, and what is known of it besides; what there is no room for is left out from the right.
pub(super) fn about(device: &Device, width: u16, theme: &Theme) -> Line<'static> {
    let driver = |told: Told| {
        let text = device.measured(told)?;
        Some(format!("{text} {}", Measure::of(told)?.unit))
    };
    let peak =
        |memory: &Memory| format!("{}{}", memory.peak.range.mark().trim(), bytes(memory.peak.range.low));
    let (dram, l1) = (&device.held.dram, &device.held.l1);
    let parts = [
        Some(format!("{} {}", device.index, device.kind())),
        device.arch.filter(|_| device.board.is_some()).map(str::to_owned),
        device.id.pci.clone(),
        driver(Told::Temperature),
        driver(Told::Power),
        driver(Told::Aiclk),
        Some(format!("peak {}, {}", peak(dram), peak(l1))),
    ];
    let mut text = String::from(" ");
    for part in parts.into_iter().flatten() {
        if text.chars().count() + part.chars().count() < usize::from(width) {
            text += &format!("{part}  ");
        }
    }
    Line::styled(text, theme.dim())
}

/// The legend of the bars.
pub(super) fn legend(model: &Model, width: u16, theme: &Theme) -> Line<'static> {
    let mut parts: Vec<Vec<Span<'static>>> = Part::legend()
        .map(|info| {
            let (sign, style) = theme.part(Part::Of(info.class));
            vec![
                Span::styled(format!(" {sign}"), style),
                Span::styled(format!(" {} ", info.legend), theme.dim()),
            ]
        })
        .collect();
    parts.push(vec![Span::styled(" │", theme.peak()), Span::styled(" peak ", theme.dim())]);
    let exact = |device: &Device| {
        !device.incomplete && device.held.dram.peak.is_exact() && device.held.l1.peak.is_exact()
    };
    if !model.devices.iter().all(exact) {
        parts.push(vec![Span::styled(" ≥ at least", theme.dim())]);
    }
    let mut room = usize::from(width);
    let fits = |part: &Vec<Span<'static>>| {
        let needed: usize = part.iter().map(|span| span.content.chars().count()).sum();
        room = room.saturating_sub(needed);
        room > 0
    };
    Line::from_iter(parts.into_iter().take_while(fits).flatten())
}
