//! The processes, as many as fit.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Position, Rect};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Row, Table};
use tt_shm_reader::Class;

use crate::escape::fit;
use crate::model::{Model, Process};
use crate::screen::theme::Theme;
use crate::screen::widgets::text::{or_unknown, split_top};
use crate::units::{age, bytes_or_unknown, count};

/// A column: heading, width, whether right-aligned, and its text.
type Column = (&'static str, u16, bool, fn(&Process) -> String);

const COLUMNS: [Column; 11] = [
    ("PID", 7, true, Process::pid_short),
    ("USER", 8, false, |process| fit(&process.owner(), 8)),
    ("NAME", 15, false, |process| fit(&process.name, 15)),
    ("DEV", 5, false, |process| fit(&process.device_set(), 5)),
    ("DRAM", 9, true, |process| bytes_or_unknown(process.total(|held| held.dram.used))),
    ("L1", 9, true, |process| bytes_or_unknown(process.total(|held| held.l1.used))),
    ("KERNELS", 9, true, |process| bytes_or_unknown(process.total(|held| held.kernel_loaded.used))),
    ("EV/S", 5, true, |process| or_unknown(process.events_per_second, count)),
    ("CB ALLOC", 9, true, |process| bytes_or_unknown(process.total(|held| held.class(Class::Cb).used))),
    ("DISPATCHES", 10, true, |process| {
        or_unknown(process.total(|held| held.dispatches), |count| count.to_string())
    }),
    ("AGE", 6, true, |process| age(process.age_ns)),
];

/// Draws them below a gap.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, theme: &Theme) {
    let (_, area) = split_top(area, 1);
    frame.render_widget(table(model, area.width, theme), area);
}

/// The process under the mouse.
pub(super) fn at(at: Position, area: Rect, model: &Model) -> Option<&Process> {
    // The gap and the headings.
    let (_, rows) = split_top(area, 2);
    rows.contains(at).then(|| model.processes.get(usize::from(at.y - rows.y)))?
}

/// The table; columns that do not fit are dropped from the right.
fn table<'a>(model: &'a Model, width: u16, theme: &Theme) -> Table<'a> {
    // Five for the word at the end.
    let mut used = 5;
    let fits = |column: &&Column| {
        used += column.1 + 1;
        used <= width
    };
    let columns: Vec<&Column> = COLUMNS.iter().take_while(fits).collect();
    let cell = |text: String, numbers: bool| {
        let side = if numbers { Alignment::Right } else { Alignment::Left };
        Cell::from(Text::from(Line::from(text).alignment(side)))
    };
    let heads = columns.iter().map(|(head, _, numbers, _)| cell((*head).to_owned(), *numbers));
    let rows = model.processes.iter().map(|process| {
        let cells = columns.iter().map(|(_, _, numbers, text)| cell(text(process), *numbers));
        let (remark, style) = match process.is_alive() {
            false => ("ended", theme.dim()),
            // The notes below the table say more.
            true if !process.flags().is_empty() => ("!", theme.warn()),
            true => ("", Default::default()),
        };
        Row::new(cells.chain([cell(remark.to_owned(), false)]).collect::<Vec<_>>()).style(style)
    });
    let widths =
        columns.iter().map(|(_, width, _, _)| Constraint::Length(*width)).chain([Constraint::Min(0)]);
    let heads =
        Row::new(heads.chain([cell(String::new(), false)]).collect::<Vec<_>>()).style(theme.heading());
    Table::new(rows.collect::<Vec<_>>(), widths.collect::<Vec<_>>()).header(heads).column_spacing(1)
}
