//! Programs: size, devices, dispatches; one of them can be opened for its kernels.

mod kernels;
mod rows;

use std::sync::Arc;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::text::Line;

use crate::escape::{escape, fit};
use crate::lists::programs::{Listing, Sharing};
use crate::query::{Field, PROGRAM_FIELDS, Query};
use crate::screen::action::Action;
use crate::screen::data::{Data, More, Needs};
use crate::screen::page::{Page, Reply, Scene};
use crate::screen::views::drill_down::{DrillDown, HasDetail};
use crate::screen::widgets::list::{Hit, List, RowStyle, draw_empty};
use crate::screen::widgets::process;
use crate::screen::widgets::text::draw_lines;
use crate::units::bytes_short;
use kernels::Kernels;
use rows::{COLUMNS, DispatchRates, ProgramRow, SORTED_BY, program_rows};

/// Most problems shown.
const ERRORS: usize = 3;

/// All programs, or the kernels of one.
pub(crate) type Programs = DrillDown<ProgramList>;

#[derive(Debug)]
pub(crate) struct ProgramList {
    /// `None` until the list has been read.
    listing: Option<Arc<Listing>>,
    rates: DispatchRates,
    /// Whether a program that is the same on several devices is one line.
    is_folded: bool,
    rows: Vec<ProgramRow>,
    list: List<ProgramRow>,
    query: Query,
}

impl Default for ProgramList {
    fn default() -> ProgramList {
        ProgramList {
            listing: None,
            rates: DispatchRates::default(),
            is_folded: true,
            rows: Vec::new(),
            list: List::new(COLUMNS, SORTED_BY, ProgramRow::number),
            query: Query::default(),
        }
    }
}

struct ListLayout {
    errors: Rect,
    list: Rect,
    sharing: Rect,
}

impl ProgramList {
    fn take_rows(&mut self) {
        let Some(listing) = &self.listing else { return };
        let places = 0..listing.entries.len();
        let rows = places.flat_map(|place| program_rows(listing, place, self.is_folded, &self.rates));
        self.rows = rows.collect();
        self.arrange();
    }

    fn arrange(&mut self) {
        let query = &self.query;
        self.list.arrange(&self.rows, |row| query.is_empty() || query.matches(row));
    }

    fn layout(&self, area: Rect) -> ListLayout {
        let errors = self.listing.as_ref().map_or(0, |listing| listing.errors.len());
        let errors = errors.min(ERRORS).min(usize::from(area.height / 5)) as u16;
        let sharing = u16::from(area.height > 5 && self.sharing_text().is_some());
        let rows = [Constraint::Length(errors), Constraint::Min(0), Constraint::Length(sharing)];
        let [errors, list, sharing] = area.layout(&Layout::vertical(rows));
        ListLayout { errors, list, sharing }
    }

    /// How much of the kernels are copies; devices with the same figures share one.
    fn sharing_text(&self) -> Option<String> {
        let sharing = &self.listing.as_ref()?.sharing;
        let mut told: Vec<(String, Vec<usize>)> = Vec::new();
        for one in sharing {
            let text = sharing_of(one);
            match told.iter_mut().find(|(known, _)| *known == text) {
                Some((_, devices)) => devices.push(one.device),
                None => told.push((text, vec![one.device])),
            }
        }
        let line =
            |(text, devices): (String, Vec<usize>)| format!("{}: {text}", crate::model::ranges(devices));
        let told: Vec<String> = told.into_iter().map(line).collect();
        (!told.is_empty()).then(|| format!(" kernels on {}", told.join("; on ")))
    }

    fn draw_list(&self, frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
        let theme = scene.theme;
        self.list.draw(frame, area, &self.rows, theme, |row| {
            let holder = process::by_identity(&scene.data.model, row.entry().identity);
            let state = holder.and_then(|holder| process::state_style(holder, theme));
            let mark = row.entry().program.late.then_some('~');
            state.unwrap_or(RowStyle { style: Default::default(), mark })
        });
        if self.list.len() == 0 {
            let text = match (&self.listing, self.query.is_empty()) {
                (None, _) => &scene.unread("programs"),
                (Some(_), true) => " No programs loaded: nothing has run on a device yet.",
                (Some(_), false) => " No matching programs. Press Esc to show all.",
            };
            draw_empty(frame, area, text, theme);
        }
    }
}

fn sharing_of(one: &Sharing) -> String {
    let mut text = format!("{} loaded", bytes_short(one.kernel_loaded_bytes));
    if one.kernel_unique_bytes > 0 || one.kernel_shared_bytes > 0 {
        let (unique, shared) = (bytes_short(one.kernel_unique_bytes), bytes_short(one.kernel_shared_bytes));
        text += &format!(", {unique} unique, {shared} copies");
    }
    if one.kernel_unhashed_bytes > 0 {
        text += &format!(", {} unhashed", bytes_short(one.kernel_unhashed_bytes));
    }
    text
}

impl HasDetail for ProgramList {
    type Detail = Kernels;

    fn open(&self) -> Option<Kernels> {
        self.list.selected(&self.rows).map(Kernels::new)
    }
}

impl Page for ProgramList {
    fn needs(&self) -> Needs {
        Needs::Programs
    }

    fn refresh(&mut self, data: &Data) {
        let More::Programs(listing) = &data.more else { return };
        let is_same = self.listing.as_ref().is_some_and(|known| Arc::ptr_eq(known, listing));
        if !is_same {
            self.rates.take(&listing.entries, data.model.clock.monotonic_ns);
            self.listing = Some(listing.clone());
            self.take_rows();
        }
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Reply {
        match action {
            Action::Move(motion) => self.list.go(motion, &self.rows, self.layout(scene.area).list),
            Action::Open => return Reply::OpenRow,
            Action::Fold => {
                self.is_folded = !self.is_folded;
                self.take_rows();
            }
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
        match self.list.click(at, &self.rows, self.layout(scene.area).list) {
            Hit::Heading => self.arrange(),
            Hit::Row { again: true } => return Reply::OpenRow,
            Hit::Row { again: false } => {}
            Hit::Nothing => return Reply::Ignored,
        }
        Reply::Done
    }

    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>) {
        let (layout, theme) = (self.layout(scene.area), scene.theme);
        let errors = self.listing.as_ref().map_or(&[][..], |listing| &listing.errors);
        let errors = errors.iter().map(|error| Line::styled(format!(" {}", escape(error)), theme.warn()));
        draw_lines(frame, layout.errors, errors);
        self.draw_list(frame, layout.list, scene);
        if let Some(sharing) = self.sharing_text() {
            let sharing = fit(&sharing, usize::from(layout.sharing.width));
            frame.render_widget(Line::styled(sharing, theme.dim()), layout.sharing);
        }
    }

    fn sorts(&self) -> (Vec<&'static str>, Option<usize>) {
        self.list.sorts()
    }

    fn sort_by(&mut self, choice: usize, _data: &Data) {
        self.list.sort_by(choice);
        self.arrange();
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

    fn fields(&self) -> &'static [Field] {
        PROGRAM_FIELDS
    }

    fn query(&self) -> Query {
        self.query.clone()
    }

    fn filter(&mut self, query: Query, _data: &Data) {
        self.query = query;
        self.arrange();
    }

    fn summary(&self) -> Option<String> {
        (!self.query.is_empty()).then(|| {
            format!("{} of {}, {}", self.list.len(), self.rows.len(), escape(&self.query.to_string()))
        })
    }
}
