//! The actions that keys and clicks stand for.

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
    /// Telemetry of the driver.
    Telemetry,
    /// All processes.
    Processes,
    /// Live allocations.
    Allocations,
    /// Events as they happen.
    Events,
    /// Memory, address by address.
    Map,
    /// Programs and their kernels.
    Programs,
    /// The L1 of each core.
    Cores,
}

impl View {
    /// All views; the index is the number key.
    pub const ALL: [View; 10] = [
        View::Overview,
        View::Detail,
        View::Charts,
        View::Telemetry,
        View::Processes,
        View::Allocations,
        View::Events,
        View::Map,
        View::Programs,
        View::Cores,
    ];

    /// Its name, as in `--view` and on its tab.
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
            View::Cores => "cores",
        }
    }

    /// A word for it where there is little room.
    pub fn short_name(self) -> &'static str {
        match self {
            View::Overview => "all",
            View::Charts => "chart",
            View::Telemetry => "sensor",
            View::Processes => "procs",
            View::Allocations => "allocs",
            View::Programs => "progs",
            view => view.name(),
        }
    }

    /// Its number key.
    pub fn digit(self) -> usize {
        self as usize
    }
}

/// A movement in a list, a text or a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    /// This many lines down; up if negative.
    Lines(i32),
    /// This many pages down; up if negative.
    Pages(i32),
    /// This many steps to the right (columns, times, addresses); to the left if negative.
    Aside(i32),
    /// To the first line.
    First,
    /// To the last line.
    Last,
}

impl Motion {
    /// Where it leads from `place`, between 0 and `last`; `page` lines are one page. `None` for a step to the side.
    pub(crate) fn target(self, place: usize, last: usize, page: usize) -> Option<usize> {
        let by = |lines: i64| (place as i64).saturating_add(lines).clamp(0, last as i64) as usize;
        match self {
            Motion::Lines(lines) => Some(by(lines.into())),
            Motion::Pages(pages) => Some(by(i64::from(pages).saturating_mul(page as i64))),
            Motion::Aside(_) => None,
            Motion::First => Some(0),
            Motion::Last => Some(last),
        }
    }
}

/// An action of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Quit,
    /// Show or hide the help.
    Help,
    /// Leave whatever is open: a menu, a drill-down, a filter.
    Back,
    /// Show another view.
    Show(View),
    /// Move in a list.
    Move(Motion),
    /// Open the selected row.
    Open,
    /// Edit the filter.
    Filter,
    /// Search a text in the rows.
    Search,
    /// Choose the columns to show.
    Columns,
    /// Choose the sort column.
    SortMenu,
    /// Reverse the sort order.
    Reverse,
    /// Toggle the process tree.
    Tree,
    /// Change the grouping.
    Group,
    /// Fold what is the same on the devices of a mesh, or unfold it.
    Fold,
    /// Change the wording of events.
    Wording,
    /// Freeze or resume updates.
    Freeze,
    /// Refresh more often.
    Faster,
    /// Refresh less often.
    Slower,
    /// Send a signal to the selected process.
    Signal,
    /// Show what the first alarm is about.
    Alarm,
    /// Go to the next pane of a view.
    NextPane,
    /// Show the next device.
    NextDevice,
    /// Show the previous device.
    PreviousDevice,
    ZoomIn,
    ZoomOut,
    /// Change the time span.
    Span,
    /// One graph, or one for each memory.
    Shape,
    /// Change the drawing characters.
    Signs,
    /// Change the colour theme.
    Theme,
}
