//! The trait of a view: its state, how it changes, and how it is drawn.

use std::fmt::Debug;

use ratatui::Frame;
use ratatui::layout::{Position, Rect};

use super::action::{Action, View};
use super::data::{Data, Needs};
use super::theme::Theme;
use crate::model::{Device, Process};
use crate::query::{Field, Query};

/// What a view has at hand when it acts or draws.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene<'a> {
    /// The data to show.
    pub data: &'a Data,
    /// Index of the device shown by single-device views.
    pub device: usize,
    /// The view's area of the screen.
    pub area: Rect,
    pub theme: &'a Theme,
    /// Whether updates are frozen.
    pub frozen: bool,
}

impl<'a> Scene<'a> {
    /// The device shown by single-device views.
    pub(crate) fn device(&self) -> Option<&'a Device> {
        self.data.model.devices.get(self.device)
    }

    /// Placeholder for data that has not been read yet; on a frozen screen it will not be.
    pub(crate) fn unread(&self, what: &str) -> String {
        match self.frozen {
            true => format!(" frozen before {what} could be read; f resumes"),
            false => format!(" reading {what}..."),
        }
    }
}

/// The result of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The view handled it.
    Done,
    /// It means nothing here.
    Ignored,
    /// Open the selected row; handled by the list it is in.
    OpenRow,
    /// Show a device in a view.
    Device(usize, View),
    /// A device was selected: other views show it, too.
    Choose(usize),
    Process(ProcessKey),
    /// Show what looks like a leak.
    Suspects,
    /// Show the L1 of the device, address by address.
    MapOfL1,
    Say(String),
}

/// Identifies a process across refreshes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessKey {
    /// Identity of its segment: several segments may claim one pid.
    pub identity: u64,
    /// Its pid here.
    pub pid: Option<u64>,
    /// Its pid in its own namespace.
    pub namespace_pid: u64,
}

impl From<&Process> for ProcessKey {
    fn from(process: &Process) -> ProcessKey {
        ProcessKey { identity: process.identity, pid: process.pid, namespace_pid: process.namespace_pid }
    }
}

/// A view.
pub(crate) trait Page: Debug {
    /// What it shows besides the figures.
    fn needs(&self) -> Needs {
        Needs::Figures
    }

    /// Takes in new data, before it is drawn.
    fn refresh(&mut self, _data: &Data) {}

    /// Handles an action.
    fn act(&mut self, _action: Action, _scene: &Scene<'_>) -> Reply {
        Reply::Ignored
    }

    /// Handles a click into its area.
    fn click(&mut self, _at: Position, _scene: &Scene<'_>) -> Reply {
        Reply::Ignored
    }

    /// Draws it, without changing any state.
    fn draw(&self, frame: &mut Frame<'_>, scene: &Scene<'_>);

    /// Names of the sort columns, and the current one.
    fn sorts(&self) -> (Vec<&'static str>, Option<usize>) {
        (Vec::new(), None)
    }

    /// Sorts by one of these.
    fn sort_by(&mut self, _choice: usize, _data: &Data) {}

    /// Fields of a filter; empty if the view has no filter.
    fn fields(&self) -> &'static [Field] {
        &[]
    }

    /// The current filter.
    fn query(&self) -> Query {
        Query::default()
    }

    /// Sets the filter.
    fn filter(&mut self, _query: Query, _data: &Data) {}

    /// The columns that can be shown or hidden, and whether they are shown.
    fn columns(&self) -> Vec<(&'static str, bool)> {
        Vec::new()
    }

    /// Shows or hides one of these.
    fn toggle_column(&mut self, _place: usize) {}

    /// Selects the next row with a text, from the selected one on or after it; whether there is one. `None` if it has no
    /// rows to search.
    fn search(&mut self, _text: &str, _after: bool) -> Option<bool> {
        None
    }

    /// The process that a signal would go to.
    fn target(&self, _scene: &Scene<'_>) -> Option<ProcessKey> {
        None
    }

    /// A summary for the line above the keys: `12 of 340, class=dram`.
    fn summary(&self) -> Option<String> {
        None
    }
}
