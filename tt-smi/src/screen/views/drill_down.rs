//! A list, or one of its rows opened: keys and the mouse go to what is shown.

use ratatui::Frame;
use ratatui::layout::Position;

use crate::query::{Field, Query};
use crate::screen::action::Action;
use crate::screen::data::{Data, Needs};
use crate::screen::page::{Page, ProcessKey, Reply, Scene};

/// A list whose rows can be opened; it asks for that with [`Reply::OpenRow`].
pub(crate) trait HasDetail: Page {
    /// The view of an opened row.
    type Detail: Page;

    /// Opens the selected row, if there is one.
    fn open(&self) -> Option<Self::Detail>;

    /// Called on return to the list.
    fn returned_from(&mut self, _detail: &Self::Detail) {}
}

/// The list, and the opened row.
#[derive(Debug)]
pub(crate) struct DrillDown<L: HasDetail> {
    list: L,
    detail: Option<L::Detail>,
}

impl<L: HasDetail + Default> Default for DrillDown<L> {
    fn default() -> DrillDown<L> {
        DrillDown { list: L::default(), detail: None }
    }
}

impl<L: HasDetail> DrillDown<L> {
    /// Shows this until the user goes back.
    pub(crate) fn show(&mut self, detail: L::Detail) {
        self.detail = Some(detail);
    }

    fn shown(&self) -> &dyn Page {
        self.detail.as_ref().map_or(&self.list, |detail| detail as &dyn Page)
    }

    fn shown_mut(&mut self) -> &mut dyn Page {
        match &mut self.detail {
            Some(detail) => detail,
            None => &mut self.list,
        }
    }

    fn handle(&mut self, reply: Reply, scene: &Scene<'_>) -> Reply {
        if reply != Reply::OpenRow {
            return reply;
        }
        let Some(mut detail) = self.list.open() else { return Reply::Ignored };
        detail.refresh(scene.data);
        self.show(detail);
        Reply::Done
    }
}

impl<L: HasDetail> Page for DrillDown<L> {
    fn needs(&self) -> Needs {
        self.shown().needs()
    }

    fn refresh(&mut self, data: &Data) {
        self.list.refresh(data);
        if let Some(detail) = &mut self.detail {
            detail.refresh(data);
        }
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Reply {
        if let Some(detail) = self.detail.take_if(|_| action == Action::Back) {
            self.list.returned_from(&detail);
            return Reply::Done;
        }
        let reply = self.shown_mut().act(action, scene);
        self.handle(reply, scene)
    }

    fn click(&mut self, at: Position, scene: &Scene<'_>) -> Reply {
        let reply = self.shown_mut().click(at, scene);
        self.handle(reply, scene)
    }

    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>) {
        self.shown().draw(frame, scene);
    }

    fn sorts(&self) -> (Vec<&'static str>, Option<usize>) {
        self.shown().sorts()
    }

    fn sort_by(&mut self, choice: usize, data: &Data) {
        self.shown_mut().sort_by(choice, data);
    }

    fn fields(&self) -> &'static [Field] {
        self.shown().fields()
    }

    fn query(&self) -> Query {
        self.shown().query()
    }

    fn filter(&mut self, query: Query, data: &Data) {
        self.shown_mut().filter(query, data);
    }

    fn columns(&self) -> Vec<(&'static str, bool)> {
        self.shown().columns()
    }

    fn toggle_column(&mut self, place: usize) {
        self.shown_mut().toggle_column(place);
    }

    fn search(&mut self, text: &str, after: bool) -> Option<bool> {
        self.shown_mut().search(text, after)
    }

    fn target(&self, scene: &Scene<'_>) -> Option<ProcessKey> {
        self.shown().target(scene)
    }

    fn summary(&self) -> Option<String> {
        self.shown().summary()
    }
}
