//! What a view is: its own state, how that changes, and how it is drawn.

use std::fmt::Debug;

use ratatui::Frame;
use ratatui::layout::{Position, Rect};

use super::action::{Action, View};
use super::data::{Data, Needs};
use super::theme::Theme;
use crate::model::{Device, Process};
use crate::query::{Field, Query};

/// What a view sees when it acts or draws.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene<'a> {
    /// What there is to show.
    pub data: &'a Data,
    /// The device that views of one device show: its index.
    pub device: usize,
    /// The view's part of the screen.
    pub area: Rect,
    /// Colours and signs.
    pub theme: &'a Theme,
    /// New data is ignored.
    pub frozen: bool,
}

impl<'a> Scene<'a> {
    /// The device that views of one device show.
    pub(crate) fn device(&self) -> Option<&'a Device> {
        self.data.model.devices.get(self.device)
    }

    /// What stands in place of something that was not read yet. On a frozen screen it will not be.
    pub(crate) fn unread(&self, what: &str) -> String {
        match self.frozen {
            true => format!(" frozen before {what} was read: f goes on"),
            false => format!(" reading {what}"),
        }
    }
}

/// What became of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The view did it.
    Done,
    /// It means nothing here.
    Ignored,
    /// Look into what is selected: for the list that it is in.
    Inside,
    /// Show a device in a view.
    Device(usize, View),
    /// Show a process.
    Process(ProcessKey),
    /// Something for the user to read.
    Say(String),
}

/// A process, also after others came and went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessKey {
    /// Identity of its segment: a pid may be claimed by several.
    pub identity: u64,
    /// As it is called here.
    pub pid: Option<u64>,
    /// As it calls itself.
    pub namespace_pid: u64,
}

impl From<&Process> for ProcessKey {
    fn from(process: &Process) -> ProcessKey {
        ProcessKey { identity: process.identity, pid: process.pid, namespace_pid: process.namespace_pid }
    }
}

/// A view.
pub(crate) trait Page: Debug {
    /// What it shows beside the figures.
    fn needs(&self) -> Needs {
        Needs::Figures
    }

    /// Takes in new data, before it is drawn.
    fn refresh(&mut self, _data: &Data) {}

    /// Does what the user asks for.
    fn act(&mut self, _action: Action, _scene: &Scene<'_>) -> Reply {
        Reply::Ignored
    }

    /// A click into its area.
    fn click(&mut self, _at: Position, _scene: &Scene<'_>) -> Reply {
        Reply::Ignored
    }

    /// Draws it. Changes nothing.
    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>);

    /// What one can sort by, and which of it is the order now.
    fn sorts(&self) -> (Vec<&'static str>, Option<usize>) {
        (Vec::new(), None)
    }

    /// Sorts by one of these.
    fn sort_by(&mut self, _choice: usize, _data: &Data) {}

    /// What a filter can ask for; nothing if there is no filter here.
    fn fields(&self) -> &'static [Field] {
        &[]
    }

    /// What is wanted.
    fn query(&self) -> Query {
        Query::default()
    }

    /// Shows only what is wanted.
    fn filter(&mut self, _query: Query, _data: &Data) {}

    /// The process that a signal would go to.
    fn target(&self, _scene: &Scene<'_>) -> Option<ProcessKey> {
        None
    }

    /// What is shown of it, for the line above the keys: `12 of 340, class=dram`.
    fn summary(&self) -> Option<String> {
        None
    }
}
