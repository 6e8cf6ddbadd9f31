//! Live allocations, one by one or in groups; their sizes, and leak suspects.

mod draw;
mod rows;

pub(crate) use rows::{ItemRow, item_list, item_rows};

use std::sync::Arc;

use ratatui::Frame;
use ratatui::layout::Position;

use crate::lists::allocations::Listing;
use crate::lists::groups::{Group, GroupBy, histogram};
use crate::lists::suspects::{Suspect, Suspects};
use crate::query::{ALLOCATION_FIELDS, Field, Query};
use crate::screen::action::{Action, Motion};
use crate::screen::data::{Data, More, Needs};
use crate::screen::page::{Page, Reply, Scene};
use crate::screen::widgets::list::{Hit, List};
use crate::screen::widgets::text::split_top;
use crate::screen::widgets::{in_full, process};
use draw::{Pane, PaneLayout};
use rows::GroupRow;

/// The latest list, and what is derived from it.
#[derive(Debug)]
pub(crate) struct Allocations {
    /// `None` until the list has been read.
    listing: Option<Arc<Listing>>,
    /// When it was read, CLOCK_MONOTONIC.
    listed_ns: u64,
    query: Query,
    /// The filter and grouping before a group was opened.
    before: Option<(Query, Option<GroupBy>)>,
    /// Whether what is the same on the devices of a mesh is one line.
    is_folded: bool,
    rows: Vec<ItemRow>,
    list: List<ItemRow>,
    /// Number and bytes of the allocations shown, on all devices.
    shown: u64,
    bytes: u64,
    /// Whether the selected allocation is shown in full.
    is_open: bool,
    by: Option<GroupBy>,
    groups: Vec<GroupRow>,
    group_list: List<GroupRow>,
    bins: Vec<Group>,
    seen: Suspects,
    suspects: Vec<Suspect>,
    suspect_list: List<Suspect>,
    pane: Pane,
}

impl Default for Allocations {
    fn default() -> Allocations {
        let mut view = Allocations {
            listing: None,
            listed_ns: 0,
            query: Query::default(),
            before: None,
            is_folded: true,
            rows: Vec::new(),
            list: item_list(),
            shown: 0,
            bytes: 0,
            is_open: false,
            by: None,
            groups: Vec::new(),
            group_list: rows::group_list(),
            bins: Vec::new(),
            seen: Suspects::default(),
            suspects: Vec::new(),
            suspect_list: rows::leak_list(),
            pane: Pane::default(),
        };
        view.focus(Pane::List);
        view
    }
}

impl Allocations {
    fn arrange(&mut self) {
        let Some(listing) = &self.listing else { return };
        let query = &self.query;
        (self.shown, self.bytes) = (0, 0);
        // One pass in the order of the listing, which is that of memory: a list is longer than the caches.
        self.rows = item_rows(listing, self.is_folded, |item| {
            let is_wanted = query.is_empty() || query.matches(item);
            if is_wanted {
                (self.shown, self.bytes) = (self.shown + 1, self.bytes.saturating_add(item.size));
            }
            is_wanted
        });
        self.list.arrange(&self.rows, |_| true);
        let items = || self.rows.iter().flat_map(ItemRow::items);
        self.bins = histogram(items());
        self.groups = self.by.map_or_else(Vec::new, |by| rows::group_rows(items(), by));
        self.group_list.arrange(&self.groups, |_| true);
        self.suspect_list.arrange(&self.suspects, |_| true);
    }

    /// The selected allocation, if it is shown in full.
    fn opened(&self) -> Option<&ItemRow> {
        let is_open = self.is_open && self.pane == Pane::List && self.by.is_none();
        self.list.selected(&self.rows).filter(|_| is_open)
    }

    /// Looks for leaks, whether or not this view is shown.
    pub(crate) fn watch(&mut self, data: &Data) {
        let Some(live) = &data.live else { return };
        self.seen.look(&live.listing, &live.ends, data.model.clock.monotonic_ns);
        self.suspects = self.seen.suspects();
        self.suspect_list.arrange(&self.suspects, |_| true);
    }

    /// What looks like a leak.
    pub(crate) fn suspects(&self) -> &[Suspect] {
        &self.suspects
    }

    /// Shows what looks like a leak.
    pub(crate) fn show_suspects(&mut self) {
        self.focus(Pane::Suspects);
    }

    fn focus(&mut self, pane: Pane) {
        self.pane = pane;
        self.list.focus(pane == Pane::List);
        self.group_list.focus(pane == Pane::List);
        self.suspect_list.focus(pane == Pane::Suspects);
    }

    fn layout(&self, scene: &Scene<'_>) -> PaneLayout {
        let doubts = self.listing.as_ref().map_or(0, |listing| listing.doubts.len());
        let layout = PaneLayout::of(scene.area, self.pane, doubts, self.bins.len(), self.suspects.len());
        let Some(row) = self.opened() else { return layout };
        let (list, whole) = in_full::split(layout.list, &draw::facts(self, row, scene));
        PaneLayout { list, whole, ..layout }
    }

    fn go(&mut self, motion: Motion, scene: &Scene<'_>) {
        let layout = self.layout(scene);
        match (self.pane, self.by) {
            (Pane::List, None) => self.list.go(motion, &self.rows, layout.list),
            (Pane::List, Some(_)) => self.group_list.go(motion, &self.groups, layout.list),
            (Pane::Suspects, _) => {
                self.suspect_list.go(motion, &self.suspects, split_top(layout.suspects, 1).1);
            }
            (Pane::Sizes, _) => {}
        }
    }

    /// Shows an allocation in full, then its process.
    fn open_row(&mut self, scene: &Scene<'_>) -> Reply {
        let Some(row) = self.list.selected(&self.rows) else { return Reply::Ignored };
        if !std::mem::replace(&mut self.is_open, true) {
            return Reply::Done;
        }
        match process::key_of(&scene.data.model, row.item().identity) {
            Some(key) => Reply::Process(key),
            None => Reply::Say("its process is not listed any more".to_owned()),
        }
    }

    /// Shows the allocations of the selected group only.
    fn open(&mut self, scene: &Scene<'_>) -> Reply {
        if self.pane == Pane::List && self.by.is_none() {
            return self.open_row(scene);
        }
        let more = match self.pane {
            Pane::List => self.group_list.selected(&self.groups).map(|row| row.group.key.query()),
            Pane::Suspects => {
                self.suspect_list.selected(&self.suspects).map(|suspect| suspect.origin.query())
            }
            Pane::Sizes => None,
        };
        let Some(more) = more else { return Reply::Ignored };
        // Narrows the current filter.
        match format!("{} {more}", self.query).parse() {
            Ok(query) => {
                let query = std::mem::replace(&mut self.query, query);
                self.before = Some((query, self.by.take()));
            }
            Err(error) => return Reply::Say(format!("cannot filter by this group: {error}")),
        }
        self.focus(Pane::List);
        self.arrange();
        Reply::Done
    }

    fn next_group(&mut self) {
        self.by = match self.by {
            None => Some(GroupBy::Name),
            Some(GroupBy::Name) => Some(GroupBy::Class),
            Some(GroupBy::Class) => Some(GroupBy::Size),
            Some(GroupBy::Size) => Some(GroupBy::Pid),
            Some(GroupBy::Pid) => None,
        };
        self.focus(Pane::List);
        self.arrange();
    }

    /// Esc undoes one step: another pane, an opened group, the filter, the grouping.
    fn back(&mut self) -> Reply {
        if self.pane != Pane::List {
            self.focus(Pane::List);
        } else if self.opened().is_some() {
            self.is_open = false;
        } else if let Some(before) = self.before.take() {
            (self.query, self.by) = before;
        } else if !self.query.is_empty() {
            self.query = Query::default();
        } else if self.by.is_some() {
            self.by = None;
        } else {
            return Reply::Ignored;
        }
        self.arrange();
        Reply::Done
    }
}

impl Page for Allocations {
    fn needs(&self) -> Needs {
        Needs::Allocations
    }

    fn refresh(&mut self, data: &Data) {
        let More::Allocations(listing) = &data.more else { return };
        if self.listing.as_ref().is_some_and(|known| Arc::ptr_eq(known, listing)) {
            return;
        }
        self.listing = Some(listing.clone());
        self.listed_ns = data.model.clock.monotonic_ns;
        self.arrange();
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Reply {
        match action {
            Action::Move(motion) => self.go(motion, scene),
            Action::Open => return self.open(scene),
            Action::Fold if self.by.is_some() => {
                return Reply::Say(
                    "groups are of all devices together; b shows single allocations".to_owned(),
                );
            }
            Action::Fold => {
                self.is_folded = !self.is_folded;
                self.arrange();
            }
            Action::Group => self.next_group(),
            Action::NextPane => self.focus(self.pane.next()),
            Action::Reverse => {
                match (self.pane, self.by) {
                    (Pane::Suspects, _) => self.suspect_list.reverse(),
                    (_, None) => self.list.reverse(),
                    (_, Some(_)) => self.group_list.reverse(),
                }
                self.arrange();
            }
            Action::Back => return self.back(),
            _ => return Reply::Ignored,
        }
        Reply::Done
    }

    fn click(&mut self, at: Position, scene: &Scene<'_>) -> Reply {
        let layout = self.layout(scene);
        let suspects = split_top(layout.suspects, 1).1;
        let in_list = match self.by {
            None => self.list.click(at, &self.rows, layout.list),
            Some(_) => self.group_list.click(at, &self.groups, layout.list),
        };
        let in_suspects = self.suspect_list.click(at, &self.suspects, suspects);
        let (pane, hit) = match (in_list, in_suspects) {
            (Hit::Nothing, Hit::Nothing) => return Reply::Ignored,
            (Hit::Nothing, hit) => (Pane::Suspects, hit),
            (hit, _) => (Pane::List, hit),
        };
        let had_focus = self.pane == pane;
        self.focus(pane);
        match hit {
            Hit::Row { again: true } if had_focus => return self.open(scene),
            Hit::Heading => self.arrange(),
            _ => {}
        }
        Reply::Done
    }

    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>) {
        draw::draw(self, frame, scene);
    }

    fn sorts(&self) -> (Vec<&'static str>, Option<usize>) {
        match (self.pane, self.by) {
            (Pane::Suspects, _) => self.suspect_list.sorts(),
            (_, None) => self.list.sorts(),
            (_, Some(_)) => self.group_list.sorts(),
        }
    }

    fn sort_by(&mut self, choice: usize, _data: &Data) {
        match (self.pane, self.by) {
            (Pane::Suspects, _) => self.suspect_list.sort_by(choice),
            (_, None) => self.list.sort_by(choice),
            (_, Some(_)) => self.group_list.sort_by(choice),
        }
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
        ALLOCATION_FIELDS
    }

    fn query(&self) -> Query {
        self.query.clone()
    }

    fn filter(&mut self, query: Query, _data: &Data) {
        (self.query, self.before) = (query, None);
        self.arrange();
    }
}
