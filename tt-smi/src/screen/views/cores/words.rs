//! What is said beside the grid.

use ratatui::text::{Line, Span};
use tt_shm_reader::Class;

use super::{grid, taken};
use crate::escape::fit;
use crate::lists::cores::text::{describe_occupant, first_line, kib, kib_or_unknown, percent, remarks};
use crate::lists::cores::{Core, DeviceCores};
use crate::screen::theme::{Part, Theme};

/// At the right of the headline.
pub(super) fn note(device: &DeviceCores) -> String {
    let total = device.l1_core_bytes.map_or_else(String::new, |bytes| format!("{} of L1 each", kib(bytes)));
    let grid = device
        .grid_columns
        .zip(device.grid_rows)
        .map(|(columns, rows)| format!("{columns} x {rows} cores, "));
    format!("{}{total}", grid.unwrap_or_default())
}

pub(super) fn fact_count(device: &DeviceCores) -> u16 {
    (1 + remarks(device).len()).min(usize::from(u16::MAX)) as u16
}

/// The core that runs out first, then what concerns all of them.
pub(super) fn facts<'a>(device: &DeviceCores, width: usize, theme: &Theme) -> Vec<Line<'a>> {
    let line = |text: &str| fit(&format!(" {text}"), width);
    let first = device.runs_out_first.as_ref().zip(device.l1_core_bytes);
    let level = first.map(|(core, total)| theme.level(total.saturating_sub(core.free_bytes), Some(total)));
    let style = level.unwrap_or_default().patch(theme.heading());
    let mut lines = vec![Line::styled(line(&first_line(device)), style)];
    lines.extend(remarks(device).iter().map(|remark| Line::raw(line(remark))));
    lines
}

/// What fills the cells, and what the marks mean.
pub(super) fn legend(width: usize, theme: &Theme) -> Line<'static> {
    let mut spans = vec![Span::raw(" ")];
    let mut used = 1;
    let mut add = |sign: char, style, name: &str| {
        let text = format!(" {name}  ");
        used += 1 + text.chars().count();
        if used <= width {
            spans.extend([Span::styled(sign.to_string(), style), Span::styled(text, theme.dim())]);
        }
    };
    add(grid::FIRST, theme.heading(), "runs out first");
    for (part, name) in
        [(Part::Of(Class::L1), "buffers"), (Part::Of(Class::Cb), "programs"), (Part::Free, "free")]
    {
        let (sign, style) = theme.part(part);
        add(sign, style, name);
    }
    if theme.is_colored() {
        add('█', theme.warn(), "from 75 %");
        add('█', theme.alarm(), "from 90 %");
    }
    Line::from(spans)
}

/// A core: its figures, what takes most of it, and where the largest gap is.
pub(super) fn readout<'a>(core: &Core, device: &DeviceCores, width: usize, theme: &Theme) -> Vec<Line<'a>> {
    let held = &core.held;
    let name = core.x.zip(core.y).map_or_else(|| "each core".to_owned(), |(x, y)| format!("core {x},{y}"));
    let level = taken(core, device).map(|(used, total)| theme.level(used, Some(total))).unwrap_or_default();
    let figures = format!(
        " {name}: {}% used: buffers {}, programs {}, small {}",
        percent(held, device.l1_core_bytes),
        kib(held.l1_bytes),
        kib(held.program_bytes),
        kib(held.l1_small_bytes),
    );
    let at = held.largest_gap_address.map_or_else(String::new, |address| format!(" at {address:#x}"));
    let overlap = match held.overlap_bytes {
        Some(0) => String::new(),
        overlap => format!("; claimed twice: {}", kib_or_unknown(overlap)),
    };
    let gap = kib_or_unknown(held.largest_gap_bytes);
    let free = format!(" free {}, largest gap {gap}{at}{overlap}", kib_or_unknown(held.free_bytes));
    let there: Vec<String> = core.occupants.iter().map(describe_occupant).collect();
    let there =
        if there.is_empty() { " nothing there".to_owned() } else { format!(" held: {}", there.join(", ")) };
    let overlaps = if held.overlap_bytes.is_some_and(|bytes| bytes > 0) { theme.warn() } else { theme.dim() };
    vec![
        Line::styled(fit(&figures, width), level.patch(theme.heading())),
        Line::raw(fit(&there, width)),
        Line::styled(fit(&free, width), overlaps),
    ]
}

/// In place of the grid: why there is none, and what all cores have in common.
pub(super) fn no_grid<'a>(device: &DeviceCores, width: usize, theme: &Theme) -> Vec<Line<'a>> {
    let why = [
        " The grid of its cores is not known: no process reports it, or they differ.",
        " `tt-smi run` reports it for tt-metal, other hosts do by DeviceInfo::grid.",
    ];
    let mut lines: Vec<Line<'a>> =
        why.iter().map(|text| Line::styled(fit(*text, width), theme.dim())).collect();
    lines.extend(device.cores.first().map(|core| readout(core, device, width, theme)).unwrap_or_default());
    lines
}

/// For a device of which no process says anything.
pub(super) fn unreported(doubts: &[String]) -> Vec<String> {
    let why = " No process reports the L1 of this device: start the job with `tt-smi run`.".to_owned();
    [why].into_iter().chain(doubts.iter().map(|doubt| format!(" {doubt}"))).collect()
}
