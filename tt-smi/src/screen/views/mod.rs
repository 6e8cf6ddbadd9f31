//! One folder per view.

mod allocations;
mod charts;
mod cores;
mod detail;
mod drill_down;
mod events;
#[cfg(test)]
pub(crate) mod fixture;
mod map;
mod overview;
mod processes;
mod programs;
mod telemetry;

use super::action::View;
use super::page::Page;

/// The views, each with its own state.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    /// Told what looks like a leak.
    pub overview: overview::Overview,
    detail: detail::Detail,
    charts: charts::Charts,
    telemetry: telemetry::TelemetryPage,
    /// Other views open a process in it.
    pub processes: processes::Processes,
    /// Leaks are looked for in every view.
    pub allocations: allocations::Allocations,
    events: events::Events,
    /// Shows the L1 that another view is about.
    pub map: map::Map,
    programs: programs::Programs,
    cores: cores::CoresPage,
}

impl Pages {
    /// A view.
    pub(crate) fn get(&self, view: View) -> &dyn Page {
        match view {
            View::Overview => &self.overview,
            View::Detail => &self.detail,
            View::Charts => &self.charts,
            View::Telemetry => &self.telemetry,
            View::Processes => &self.processes,
            View::Allocations => &self.allocations,
            View::Events => &self.events,
            View::Map => &self.map,
            View::Programs => &self.programs,
            View::Cores => &self.cores,
        }
    }

    pub(crate) fn get_mut(&mut self, view: View) -> &mut dyn Page {
        match view {
            View::Overview => &mut self.overview,
            View::Detail => &mut self.detail,
            View::Charts => &mut self.charts,
            View::Telemetry => &mut self.telemetry,
            View::Processes => &mut self.processes,
            View::Allocations => &mut self.allocations,
            View::Events => &mut self.events,
            View::Map => &mut self.map,
            View::Programs => &mut self.programs,
            View::Cores => &mut self.cores,
        }
    }
}
