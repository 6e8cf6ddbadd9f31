//! The aggregator as a daemon: poll, publish, sleep.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tt_shm_driver::Roots;
use tt_shm_os::Namespace;

use crate::aggregator::Aggregator;
use crate::config::Config;
use crate::error::{DaemonError, PublishError};
use crate::log::Log;
use crate::table::lockfile::Claim;
use crate::table::publish::TablePublisher;

/// The configuration of the daemon.
#[derive(Debug)]
pub struct DaemonConfig {
    /// The namespace whose segments to follow.
    pub namespace: Namespace,
    /// How often to log a summary; never if `None`.
    pub stats_interval: Option<Duration>,
    /// Where to find what the kernel driver tells; it is not asked if `None`.
    pub driver: Option<Roots>,
    /// Where to find the regions of unmodified tt-metal; they are not read if `None`.
    pub regions: Option<tt_shm_region::Roots>,
    /// Where log lines go.
    pub log: Log,
}

/// Publishes the table of a namespace until `stop` is set, which is noticed within 50 ms. Signal handling is
/// left to the program.
///
/// The table is removed at the end. The lock file stays (see [`Claim`]); a program that has the namespace to
/// itself removes it with [`Claim::remove_lock_file_while_held`].
pub fn run_daemon(config: DaemonConfig, stop: &AtomicBool) -> Result<(), DaemonError> {
    let DaemonConfig { namespace, stats_interval, driver, regions, log } = config;
    let claim = Claim::take(&namespace)?;
    let config =
        Config { accept_resets: true, published: true, driver, regions, log, ..Config::new(namespace) };
    let mut aggregator = Aggregator::resume(config, claim.adopt())?;
    let mut publisher = TablePublisher::create(claim, &aggregator)?;
    let mut summary = Summary::new(stats_interval);
    let mut full = false;
    // Relaxed: the flag guards no other memory.
    while !stop.load(Ordering::Relaxed) {
        aggregator.poll();
        let result = publish(&mut publisher, &mut aggregator);
        note_room(&mut full, result, &mut aggregator.config.log);
        summary.log(&mut aggregator);
        aggregator.wait(aggregator.sleep_hint(), None);
    }
    let closed = publisher.close();
    let log = &mut aggregator.config.log;
    match closed {
        Ok(_) => log.line(format_args!("stopped")),
        Err(error) => log.line(format_args!("stopped; cannot remove the table: {error}")),
    }
    Ok(())
}

/// Publishes, into a new table if the old one was removed.
fn publish(publisher: &mut TablePublisher, aggregator: &mut Aggregator) -> Result<(), PublishError> {
    if publisher.restore(aggregator)? {
        aggregator
            .config
            .log
            .line(format_args!("the table was removed, replaced or truncated; created a new one"));
    }
    publisher.publish(aggregator)
}

/// Logs once that rows are missing from the table, and once that it is complete again.
fn note_room(full: &mut bool, result: Result<(), PublishError>, log: &mut Log) {
    match result {
        Err(error) if !*full => log.line(format_args!("{error}")),
        Ok(()) if *full => log.line(format_args!("the table is complete again")),
        _ => return,
    }
    *full = !*full;
}

/// Logs a summary line at an interval.
struct Summary {
    interval: Option<Duration>,
    last: Instant,
    events: u64,
}

impl Summary {
    fn new(interval: Option<Duration>) -> Summary {
        Summary { interval, last: Instant::now(), events: 0 }
    }

    fn log(&mut self, aggregator: &mut Aggregator) {
        let elapsed = self.last.elapsed();
        if self.interval.is_none_or(|interval| elapsed < interval) {
            return;
        }
        let (segments, devices) = (aggregator.segments(), aggregator.model.devices.count());
        let totals = aggregator.model.totals;
        let per_second = (totals.events - self.events) as f64 / elapsed.as_secs_f64();
        aggregator.config.log.line(format_args!(
            "{segments} segments, {devices} devices, {} events ({per_second:.0}/s), {} missed, {} late",
            totals.events, totals.missed, totals.late
        ));
        (self.last, self.events) = (Instant::now(), totals.events);
    }
}
