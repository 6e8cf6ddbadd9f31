//! The grid of cores as a heat map.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use tt_shm_reader::Class;

use super::taken;
use crate::lists::cores::text::percent;
use crate::lists::cores::{Core, DeviceCores};
use crate::screen::theme::{Part, Theme};
use crate::screen::widgets::bar;

/// Mark of the cores that run out first.
pub(super) const FIRST: char = '▲';
/// Eighths of how full a core is.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// ` 12 ` at the side.
const SIDE: u16 = 4;
/// `100▲ ` without and with a level.
const NARROW: u16 = 4;
const WITH_LEVEL: u16 = 6;
/// Least width with a bar in the same line, or below the number.
const WITH_BAR: u16 = 11;
const WIDEST: u16 = 20;

/// Where the cores are on the screen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cells {
    area: Rect,
    columns: u32,
    rows: u32,
    width: u16,
    /// Lines of a row of cores: the second one is a bar.
    height: u16,
}

impl Cells {
    /// `None` if the grid is not known.
    pub(super) fn new(device: &DeviceCores, area: Rect) -> Option<Cells> {
        let (columns, rows) = device.grid_columns.zip(device.grid_rows)?;
        let room = u32::from(area.width.saturating_sub(SIDE)) / columns.max(1);
        let width = (room as u16).clamp(NARROW, WIDEST);
        let lines = u32::from(area.height.saturating_sub(1));
        let height = if width >= WITH_LEVEL && lines >= 3 * rows { 3 } else { 1 };
        Some(Cells { area, columns, rows, width, height })
    }

    pub(super) fn core_at(&self, at: Position) -> Option<(u32, u32)> {
        let x = at.x.checked_sub(self.area.x + SIDE)? / self.width;
        let y = at.y.checked_sub(self.area.y + 1)? / self.height;
        let core = (u32::from(x), u32::from(y));
        (self.area.contains(at) && core.0 < self.columns && core.1 < self.rows).then_some(core)
    }

    /// A line of the screen, unless it is below the area.
    fn line(&self, y: u32) -> Option<Rect> {
        let y = self.area.y.saturating_add(u16::try_from(y).ok()?);
        (y < self.area.bottom()).then_some(Rect { y, height: 1, ..self.area })
    }

    pub(super) fn draw(
        &self,
        frame: &mut Frame<'_>,
        device: &DeviceCores,
        cursor: Option<(u32, u32)>,
        theme: &Theme,
    ) {
        let width = usize::from(self.width);
        let heads = (0..self.columns).map(|x| format!("{x:<width$}")).collect::<String>();
        if let Some(line) = self.line(0) {
            frame.render_widget(Line::styled(format!("    {heads}"), theme.dim()), line);
        }
        for (y, row) in (0_u32..).zip(device.cores.chunks(self.columns.max(1) as usize)) {
            let top = 1 + y * u32::from(self.height);
            let side = |text: String| vec![Span::styled(text, theme.dim())];
            let (mut first, mut second) = (side(format!("{y:>3} ")), side("    ".to_owned()));
            for core in row {
                let is_cursor = cursor.is_some() && core.x.zip(core.y) == cursor;
                first.extend(self.cell(core, device, is_cursor, theme));
                second.extend(stacked(core, device, width - 1, theme));
                second.push(Span::raw(" "));
            }
            if let Some(line) = self.line(top) {
                frame.render_widget(Line::from(first), line);
            }
            if let Some(line) = self.line(top + 1).filter(|_| self.height > 1) {
                frame.render_widget(Line::from(second), line);
            }
        }
    }

    /// How full the core is, and whether it runs out first.
    fn cell(&self, core: &Core, device: &DeviceCores, is_cursor: bool, theme: &Theme) -> Vec<Span<'static>> {
        let level = taken(core, device).map_or_else(Style::new, |(used, total)| heat(used, total, theme));
        let style = if is_cursor { level.patch(theme.selected()) } else { level };
        let mark = if is_first(core, device) { FIRST } else { ' ' };
        let text = format!("{:>2}", percent(&core.held, device.l1_core_bytes));
        let rest = usize::from(self.width).saturating_sub(text.len() + 1);
        // The first of many cores with room is nothing to be alarmed of.
        let mut spans = vec![Span::styled(text, style), Span::styled(mark.to_string(), level)];
        match self.width {
            _ if self.height > 1 => spans.push(Span::raw(" ".repeat(rest))),
            WITH_BAR.. => {
                spans.extend(stacked(core, device, rest - 1, theme));
                spans.push(Span::raw(" "));
            }
            WITH_LEVEL.. => {
                spans.push(Span::styled(eighth(core, device).to_string().repeat(rest - 1), level));
                spans.push(Span::raw(" "));
            }
            _ => spans.push(Span::raw(" ".repeat(rest))),
        }
        spans
    }
}

/// Green below 75 %, then as everywhere.
fn heat(used: u64, total: u64, theme: &Theme) -> Style {
    let style = theme.level(used, Some(total));
    if style == Style::new() { theme.good() } else { style.add_modifier(Modifier::BOLD) }
}

/// Whether no other core has less room.
pub(super) fn is_first(core: &Core, device: &DeviceCores) -> bool {
    let Some(first) = &device.runs_out_first else { return false };
    let is_all = first.count == device.core_count;
    let same = (core.held.free_bytes, core.held.largest_gap_bytes);
    !is_all && same == (Some(first.free_bytes), first.largest_gap_bytes)
}

fn eighth(core: &Core, device: &DeviceCores) -> char {
    let Some((used, total)) = taken(core, device).filter(|(_, total)| *total > 0) else { return ' ' };
    EIGHTHS[((used as f64 / total as f64 * 8.0).ceil() as usize).min(8)]
}

/// Buffers, programs and what is free.
fn stacked(core: &Core, device: &DeviceCores, width: usize, theme: &Theme) -> Vec<Span<'static>> {
    let Some((_, total)) = taken(core, device) else { return vec![Span::raw(" ".repeat(width))] };
    let parts = [(Part::Of(Class::L1), core.held.l1_bytes), (Part::Of(Class::Cb), core.held.program_bytes)];
    bar::spans(&bar::cells(&parts, total, width), 0, total, theme)
}
