//! What a user can ask for, whatever key or click it came from.

use clap::ValueEnum;

/// The views, in the order of their keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum View {
    /// All devices.
    #[default]
    Overview,
    /// One device.
    Detail,
    /// Memory over time.
    Charts,
    /// What the driver tells.
    Telemetry,
    /// All processes.
    Processes,
    /// What is live, one by one.
    Allocations,
    /// What happens.
    Events,
    /// Where in memory things lie.
    Map,
    /// Programs and their kernels.
    Programs,
}

impl View {
    /// Every view; the place in it is its key.
    pub const ALL: [View; 9] = [
        View::Overview,
        View::Detail,
        View::Charts,
        View::Telemetry,
        View::Processes,
        View::Allocations,
        View::Events,
        View::Map,
        View::Programs,
    ];

    /// Its name, as `--view` takes it and tabs show it.
    pub fn name(self) -> &'static str {
        match self {
            View::Overview => "overview",
            View::Detail => "detail",
            View::Charts => "charts",
            View::Telemetry => "telemetry",
            View::Processes => "processes",
            View::Allocations => "allocations",
            View::Events => "events",
            View::Map => "map",
            View::Programs => "programs",
        }
    }

    /// Its number key.
    pub fn digit(self) -> usize {
        self as usize
    }
}

/// A step in a list, a text or a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    /// So many lines down; up if negative.
    Lines(i32),
    /// So many pages down; up if negative.
    Pages(i32),
    /// So many steps to the right: columns, times, addresses; to the left if negative.
    Aside(i32),
    /// To the first line.
    First,
    /// To the last line.
    Last,
}

/// What a user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// End the program.
    Quit,
    /// Show or hide the keys.
    Help,
    /// Leave what is open: a menu, a drill-down, a filter.
    Back,
    /// Show another view.
    Show(View),
    /// Move in a list.
    Move(Motion),
    /// Look into what is selected.
    Open,
    /// Edit the filter.
    Filter,
    /// Choose what to sort by.
    SortMenu,
    /// Turn the order round.
    Reverse,
    /// Processes as a tree, or not.
    Tree,
    /// Group by something else.
    Group,
    /// Keep the figures as they are, or go on.
    Freeze,
    /// Refresh more often.
    Faster,
    /// Refresh less often.
    Slower,
    /// Send a signal to the selected process.
    Signal,
    /// The next part of a view.
    NextPane,
    /// Another device.
    NextDevice,
    /// The device before.
    PreviousDevice,
    /// See less, larger.
    ZoomIn,
    /// See more, smaller.
    ZoomOut,
    /// Another length of time.
    Span,
    /// Draw with other signs.
    Signs,
    /// Other colours.
    Theme,
}
