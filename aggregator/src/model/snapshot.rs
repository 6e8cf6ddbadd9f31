//! The model as the rows that a reader gets: what an embedded aggregator shows.

use shm_layout::table::{DriverStats, MAX_USAGES, RegionStats};
use tt_shm_os::monotonic_ns;
use tt_shm_reader::{Freshness, TableSnapshot};

use crate::aggregator::{Aggregator, LONG_SLEEP};

/// The rows of an aggregator's model, and what it found beside it.
pub(crate) fn snapshot(aggregator: &Aggregator) -> TableSnapshot {
    let model = &aggregator.model;
    let devices = model.devices.iter();
    let devices = devices.filter_map(|(row, g, device)| Some((row, model.device_stats(g, device?))));
    let processes = model.processes.iter();
    let processes = processes.filter_map(|(row, g, p)| Some((row, model.process_stats(g, p?))));
    let usages = model.usages.iter();
    let usages =
        usages.take(MAX_USAGES).filter_map(|(row, g, usage)| Some((row, model.usage_stats(g, usage?))));
    let driver = model.driver.rows.iter();
    let driver = driver
        .filter_map(|(row, generation, device)| Some((row, DriverStats { generation, ..device?.stats })));
    let regions = model.regions.rows.iter();
    let regions =
        regions.filter_map(|(row, generation, stats)| Some((row, RegionStats { generation, ..*stats? })));
    TableSnapshot {
        generation: model.generation(),
        consistent: true,
        devices: devices.collect(),
        processes: processes.collect(),
        usages: usages.collect(),
        notices: model.notices.newest_first(),
        failures: model.failures.newest_first(),
        driver: driver.collect(),
        driver_left_out: model.driver.left_out,
        regions: regions.collect(),
        regions_left_out: model.regions.left_out,
        events: model.totals.events,
        missed: model.totals.missed,
        late: model.totals.late,
        lost: model.totals.lost,
        as_of: model.as_of,
        refused: aggregator.refused(),
        window_since: model.window.since,
        windows: model.window.count,
        overflow: model.overflow(),
        unseen: aggregator.unseen(),
        publish_errors: 0,
        incomplete_since: None,
        clock_steps: model.clock.steps(),
        awake_since: model.clock.awake_since(),
        gap: model.window.gap,
        freshness: freshness(model.now),
    }
}

fn freshness(heartbeat_ns: u64) -> Freshness {
    Freshness {
        heartbeat_ns,
        age_ns: monotonic_ns().saturating_sub(heartbeat_ns),
        closed: false,
        interval_ns: LONG_SLEEP.as_nanos() as u64,
    }
}
