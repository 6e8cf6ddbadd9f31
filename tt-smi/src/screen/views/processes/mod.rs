//! All processes: identity, memory, state. One of them can be opened.

mod process_detail;
mod rows;

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;

use crate::escape::{escape, fit};
use crate::model::{Model, Process, Reclaimed};
use crate::query::{Field, PROCESS_FIELDS, Query};
use crate::screen::action::Action;
use crate::screen::data::Data;
use crate::screen::page::{Page, ProcessKey, Reply, Scene};
use crate::screen::views::drill_down::{DrillDown, HasDetail};
use crate::screen::widgets::list::{Hit, List, RowStyle, draw_empty};
use crate::screen::widgets::text::{draw_lines, split_bottom};
use crate::units::age;
use process_detail::ProcessDetail;
pub(crate) use rows::held_text;
use rows::{COLUMNS, ProcessRow, SORTED_BY};

/// Most ended processes noted below the list.
const ENDS: usize = 3;

/// All processes, or one of them.
pub(crate) type Processes = DrillDown<ProcessList>;

impl Processes {
    /// Opens a process.
    pub(crate) fn open(&mut self, key: ProcessKey) {
        self.show(ProcessDetail::new(key));
    }
}

#[derive(Debug)]
pub(crate) struct ProcessList {
    rows: Vec<ProcessRow>,
    list: List<ProcessRow>,
    query: Query,
    is_tree: bool,
    /// Number of processes before filtering.
    all: usize,
    /// Whether ended processes are noted below the list.
    with_ends: bool,
}

impl Default for ProcessList {
    fn default() -> ProcessList {
        let list = List::new(COLUMNS, SORTED_BY, ProcessRow::number);
        ProcessList {
            rows: Vec::new(),
            list,
            query: Query::default(),
            is_tree: false,
            all: 0,
            with_ends: true,
        }
    }
}

impl ProcessList {
    /// A list that notes no ended processes, and has no focus.
    pub(super) fn plain() -> ProcessList {
        let mut list = ProcessList { with_ends: false, ..ProcessList::default() };
        list.focus(false);
        list
    }

    /// Sets whether the list has the focus.
    pub(super) fn focus(&mut self, has_focus: bool) {
        self.list.focus(has_focus);
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The selected process.
    pub(super) fn selected(&self) -> Option<ProcessKey> {
        self.list.selected(&self.rows).map(|row| row.key)
    }

    fn take_rows(&mut self, data: &Data) {
        let model = &data.model;
        let wanted = |process: &&Process| self.query.matches(*process);
        let row = |process: &Process| {
            let trend = data.trends.get(&process.identity).map_or(&[][..], Vec::as_slice);
            ProcessRow::new(process, model, trend)
        };
        self.rows = model.processes.iter().filter(wanted).map(row).collect();
        self.all = model.processes.len();
        self.arrange();
    }

    fn arrange(&mut self) {
        self.rows.iter_mut().for_each(|row| row.depth = 0);
        self.list.arrange(&self.rows, |_| true);
        if self.is_tree {
            let mut depths = Vec::new();
            self.list.reorder(&self.rows, |places| {
                depths = rows::tree(&places, &self.rows);
                depths.iter().map(|(place, _)| *place).collect()
            });
            for (place, depth) in depths {
                self.rows[place as usize].depth = depth;
            }
        }
    }

    /// The list, and the notes on ended processes below it.
    fn parts(&self, area: Rect, model: &Model) -> (Rect, Rect) {
        let ends = model.reclaimed.len().min(ENDS).min(usize::from(area.height / 4));
        split_bottom(area, if self.with_ends { ends as u16 } else { 0 })
    }

    fn draw_ends(frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
        let line = |gone: &Reclaimed| {
            let text = format!(" pid {} ended {} ago, {}", gone.pid, age(gone.age_ns), rows::held_text(gone));
            Line::styled(fit(&text, area.width.into()), scene.theme.dim())
        };
        draw_lines(frame, area, scene.data.model.reclaimed.iter().map(line));
    }
}

impl HasDetail for ProcessList {
    type Detail = ProcessDetail;

    fn open(&self) -> Option<ProcessDetail> {
        self.list.selected(&self.rows).map(|row| ProcessDetail::new(row.key))
    }

    fn returned_from(&mut self, detail: &ProcessDetail) {
        self.list.select_key(rows::number(detail.key), &self.rows);
    }
}

impl Page for ProcessList {
    fn refresh(&mut self, data: &Data) {
        self.take_rows(data);
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Reply {
        match action {
            Action::Move(motion) => {
                let (area, _) = self.parts(scene.area, &scene.data.model);
                self.list.go(motion, &self.rows, area);
            }
            Action::Open => return Reply::OpenRow,
            Action::Tree => {
                self.is_tree = !self.is_tree;
                self.arrange();
                // A tree of processes that are nobody's children looks like the list.
                let shown =
                    if self.is_tree { "shown as a tree: t shows the list" } else { "shown as a list" };
                return Reply::Say(shown.to_owned());
            }
            Action::NextPane => return Reply::Say("Enter opens a process, which has two panes".to_owned()),
            Action::Reverse => {
                self.list.reverse();
                self.arrange();
            }
            Action::Back if !self.query.is_empty() => self.filter(Query::default(), scene.data),
            _ => return Reply::Ignored,
        }
        Reply::Done
    }

    fn click(&mut self, at: Position, scene: &Scene<'_>) -> Reply {
        let (area, _) = self.parts(scene.area, &scene.data.model);
        match self.list.click(at, &self.rows, area) {
            Hit::Heading => self.arrange(),
            Hit::Row { again: true } => return Reply::OpenRow,
            Hit::Row { again: false } => {}
            Hit::Nothing => return Reply::Ignored,
        }
        Reply::Done
    }

    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>) {
        let (theme, (area, ends)) = (scene.theme, self.parts(scene.area, &scene.data.model));
        self.list.draw(frame, area, &self.rows, theme, |row| match row.state {
            _ if row.is_flagged => RowStyle::warn(theme),
            "alive" => RowStyle::default(),
            "stopped" => RowStyle { style: theme.warn(), mark: Some('=') },
            _ => theme.dim().into(),
        });
        if self.rows.is_empty() {
            let text = match self.all {
                0 => " No process reports here. Try `tt-smi demo`.",
                _ => " No matching processes. Press Esc to show all.",
            };
            draw_empty(frame, area, text, theme);
        }
        ProcessList::draw_ends(frame, ends, scene);
    }

    fn sorts(&self) -> (Vec<&'static str>, Option<usize>) {
        self.list.sorts()
    }

    fn sort_by(&mut self, choice: usize, _data: &Data) {
        self.list.sort_by(choice);
        self.arrange();
    }

    fn fields(&self) -> &'static [Field] {
        &PROCESS_FIELDS
    }

    fn query(&self) -> Query {
        self.query.clone()
    }

    fn filter(&mut self, query: Query, data: &Data) {
        self.query = query;
        self.take_rows(data);
    }

    fn columns(&self) -> Vec<(&'static str, bool)> {
        self.list.columns()
    }

    fn toggle_column(&mut self, place: usize) {
        self.list.toggle_column(place);
    }

    fn search(&mut self, text: &str, after: bool) -> Option<bool> {
        Some(self.list.find(text, after, &self.rows))
    }

    fn target(&self, _scene: &Scene<'_>) -> Option<ProcessKey> {
        self.list.selected(&self.rows).filter(|row| row.state != "ended").map(|row| row.key)
    }

    fn summary(&self) -> Option<String> {
        (!self.query.is_empty())
            .then(|| format!("{} of {}, {}", self.rows.len(), self.all, escape(&self.query.to_string())))
    }
}
