//! A list, or one of its rows opened: keys and the mouse go to what is shown.

use ratatui::Frame;
use ratatui::layout::Position;

use crate::query::{Field, Query};
use crate::screen::action::Action;
use crate::screen::data::{Data, Needs};
use crate::screen::page::{Page, ProcessKey, Reply, Scene};

/// A list whose rows can be opened; it asks for that with [`Reply::Inside`].
pub(crate) trait Leads: Page {
    /// The view of an opened row.
    type Inside: Page;

    /// Opens the selected row, if there is one.
    fn open(&self) -> Option<Self::Inside>;

    /// Called on return to the list.
    fn came_back(&mut self, _from: &Self::Inside) {}
}

/// The list, and the opened row.
#[derive(Debug)]
pub(crate) struct Nested<L: Leads> {
    list: L,
    inside: Option<L::Inside>,
}

impl<L: Leads + Default> Default for Nested<L> {
    fn default() -> Nested<L> {
        Nested { list: L::default(), inside: None }
    }
}

impl<L: Leads> Nested<L> {
    /// Shows this until the user goes back.
    pub(crate) fn look_into(&mut self, inside: L::Inside) {
        self.inside = Some(inside);
    }

    fn shown(&self) -> &dyn Page {
        self.inside.as_ref().map_or(&self.list, |inside| inside as &dyn Page)
    }

    fn shown_mut(&mut self) -> &mut dyn Page {
        match &mut self.inside {
            Some(inside) => inside,
            None => &mut self.list,
        }
    }

    fn after(&mut self, reply: Reply, scene: &Scene<'_>) -> Reply {
        if reply != Reply::Inside {
            return reply;
        }
        let Some(mut inside) = self.list.open() else { return Reply::Ignored };
        inside.refresh(scene.data);
        self.look_into(inside);
        Reply::Done
    }
}

impl<L: Leads> Page for Nested<L> {
    fn needs(&self) -> Needs {
        self.shown().needs()
    }

    fn refresh(&mut self, data: &Data) {
        self.list.refresh(data);
        if let Some(inside) = &mut self.inside {
            inside.refresh(data);
        }
    }

    fn act(&mut self, action: Action, scene: &Scene<'_>) -> Reply {
        if let Some(inside) = self.inside.take_if(|_| action == Action::Back) {
            self.list.came_back(&inside);
            return Reply::Done;
        }
        let reply = self.shown_mut().act(action, scene);
        self.after(reply, scene)
    }

    fn click(&mut self, at: Position, scene: &Scene<'_>) -> Reply {
        let reply = self.shown_mut().click(at, scene);
        self.after(reply, scene)
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

    fn target(&self, scene: &Scene<'_>) -> Option<ProcessKey> {
        self.shown().target(scene)
    }

    fn summary(&self) -> Option<String> {
        self.shown().summary()
    }
}
