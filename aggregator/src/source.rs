//! Where a reader's data comes from: the table of a running aggregator, else an aggregation in this process.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use tt_shm_os::{Namespace, monotonic_ns, path_of, table_file_name};
use tt_shm_reader::{Bucket, HISTORY_RESOLUTIONS, Table, TableSnapshot, TelemetryBucket};

use crate::aggregator::Aggregator;
use crate::config::Config;
use crate::error::SourceError;
use crate::past::Past;

/// Rates cover one second, so a younger aggregation does not know them.
const RATES_AFTER: Duration = Duration::from_millis(1100);
/// Events between two polls of the rings, all together: a quarter of what one ring holds.
const EVENTS_PER_POLL: u32 = 4096;
/// Time between two polls, however much or little happens.
const WAIT: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_millis(50);
/// How often to check whether an aggregator was started or has ended.
const RECHECK: Duration = Duration::from_secs(1);

/// The figures of all devices and processes of a namespace, wherever they are to be had.
///
/// If an aggregator is running that the caller may read (root's, or the caller's own), its table is read; if not,
/// the segments are aggregated in this process. That changes by itself when an aggregator starts, ends or is
/// replaced. History from before such a change is kept.
///
/// ```
/// use tt_shm_aggregator::Source;
/// use tt_shm_os::Namespace;
///
/// let mut source = Source::open(&Namespace::new("nobody-is-here").unwrap())?;
/// for (_, device) in source.read()?.snapshot.devices {
///     println!("{:x}: {} B of DRAM", device.entry.chip_id, device.dram_used_bytes);
/// }
/// # Ok::<(), tt_shm_aggregator::SourceError>(())
/// ```
///
/// Who reads more than once calls [`Source::poll`] between readings, after [`Source::poll_interval`]: an
/// aggregation in this process has to follow the rings, or peaks become ranges. With a table, a poll does nothing.
#[derive(Debug)]
pub struct Source {
    config: SourceConfig,
    backend: Backend,
    checked: Instant,
    /// History of the backends before this one.
    past: Past,
}

/// What a [`Source`] reads.
#[derive(Clone, Debug)]
pub struct SourceConfig {
    /// The namespace.
    pub namespace: Namespace,
    /// Where an aggregation in this process finds what the kernel driver tells; it is not asked if `None`.
    pub driver: Option<tt_shm_driver::Roots>,
    /// Where it finds the regions of unmodified tt-metal; they are not read if `None`.
    pub regions: Option<tt_shm_region::Roots>,
}

impl SourceConfig {
    /// A namespace, beside this machine's driver and regions.
    pub fn new(namespace: Namespace) -> SourceConfig {
        SourceConfig {
            namespace,
            driver: Some(tt_shm_driver::Roots::default()),
            regions: Some(tt_shm_region::Roots::default()),
        }
    }
}

/// All rows at one moment.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The rows.
    pub snapshot: TableSnapshot,
    /// Where they come from.
    pub origin: Origin,
    /// Whether rates are known, which takes a second of aggregation.
    pub rates_known: bool,
}

/// Where figures come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The table of a running aggregator.
    Table {
        /// The process id of the aggregator, as it sees it.
        pid: u64,
        /// How old its figures are.
        age_ns: u64,
    },
    /// An aggregation in this process.
    Embedded,
}

/// What is read.
#[derive(Debug)]
enum Backend {
    Table(Box<Table>),
    Embedded(Embedded),
}

/// An aggregation in this process, which polls the rings as often as they need it.
#[derive(Debug)]
struct Embedded {
    aggregator: Box<Aggregator>,
    since: Instant,
    polled: Instant,
    wait: Duration,
}

impl Embedded {
    fn start(config: &SourceConfig) -> Result<Embedded, SourceError> {
        // Reading removes nothing: `tt-smi clean` and the daemon do, and report it. Without a watch: many read once and
        // exit, and would have to wait for its end.
        let config = Config {
            reap: false,
            watch: false,
            driver: config.driver.clone(),
            regions: config.regions.clone(),
            ..Config::new(config.namespace.clone())
        };
        let (aggregator, now) = (Box::new(Aggregator::new(config)?), Instant::now());
        Ok(Embedded { aggregator, since: now, polled: now, wait: *WAIT.start() })
    }

    fn poll(&mut self) {
        let events = self.aggregator.poll().events;
        self.wait = wait_after(events, self.polled.elapsed());
        self.polled = Instant::now();
    }
}

/// How long to wait before the next poll, given the number of events since the last.
fn wait_after(events: u64, elapsed: Duration) -> Duration {
    let events = u32::try_from(events).unwrap_or(u32::MAX).max(1);
    (elapsed * EVENTS_PER_POLL / events).clamp(*WAIT.start(), *WAIT.end())
}

impl Source {
    /// Opens the table if its aggregator runs, else starts an aggregation, which takes some milliseconds.
    pub fn open(namespace: &Namespace) -> Result<Source, SourceError> {
        Source::with(SourceConfig::new(namespace.clone()))
    }

    /// [`Source::open`] with a configuration.
    pub fn with(config: SourceConfig) -> Result<Source, SourceError> {
        let backend = Backend::open(&config)?;
        Ok(Source { config, backend, checked: Instant::now(), past: Past::default() })
    }

    /// The namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.config.namespace
    }

    /// Reads everything as it is now, after [`Source::recheck`].
    pub fn read(&mut self) -> Result<Reading, SourceError> {
        self.recheck()?;
        Ok(match &mut self.backend {
            Backend::Table(table) => {
                let snapshot = table.snapshot();
                let now = monotonic_ns();
                // The heartbeat may be younger: it says that the aggregator is alive, not what it has folded.
                let folded = Some(snapshot.as_of).filter(|as_of| *as_of != 0);
                let age_ns = folded.map_or(snapshot.freshness.age_ns, |as_of| now.saturating_sub(as_of));
                let origin = Origin::Table { pid: table.header().pid, age_ns };
                let running = now.saturating_sub(table.header().started);
                Reading { snapshot, origin, rates_known: u128::from(running) >= RATES_AFTER.as_nanos() }
            }
            Backend::Embedded(embedded) => {
                embedded.poll();
                let rates_known = embedded.since.elapsed() >= RATES_AFTER;
                Reading { snapshot: embedded.aggregator.snapshot(), origin: Origin::Embedded, rates_known }
            }
        })
    }

    /// A device's history by its row in the table and its chip (0 a minute, 1 an hour, 2 a day), oldest first.
    pub fn history(&self, row: usize, chip_id: u64, resolution: usize) -> Vec<Bucket> {
        self.past.with(chip_id, resolution, self.backend.history(row, resolution))
    }

    /// Telemetry of a device by its row among the driver's (0 eight minutes, 1 an hour, 2 a day), oldest first.
    pub fn telemetry(&self, row: usize, resolution: usize) -> Vec<TelemetryBucket> {
        match &self.backend {
            Backend::Table(table) => table.telemetry(row, resolution),
            Backend::Embedded(embedded) => embedded.aggregator.telemetry(row, resolution),
        }
    }

    /// Keeps an embedded aggregation going, so that no ring goes round unseen.
    pub fn poll(&mut self) {
        if let Backend::Embedded(embedded) = &mut self.backend {
            // A caller that polls wants to see new processes at once.
            embedded.aggregator.watch();
            embedded.poll();
        }
    }

    /// How long may pass until the next [`Source::poll`].
    pub fn poll_interval(&self) -> Duration {
        match &self.backend {
            Backend::Table(_) => Duration::from_secs(1),
            Backend::Embedded(embedded) => embedded.wait,
        }
    }

    /// Whether every segment is read: only root's aggregator may.
    pub fn sees_all(&self) -> bool {
        let root = path_of(&table_file_name(&self.config.namespace, 0));
        matches!(&self.backend, Backend::Table(table) if table.path() == root)
    }

    /// Changes the backend if an aggregator was started, replaced or ended, and returns whether it looked: it
    /// does so once a second. On an error the backend is the one before, and the next call looks again.
    pub fn recheck(&mut self) -> Result<bool, SourceError> {
        if self.checked.elapsed() < RECHECK {
            return Ok(false);
        }
        match &self.backend {
            Backend::Table(table) if table.freshness().is_fresh() && !table.is_replaced() => {}
            Backend::Table(_) => {
                let next = Backend::open(&self.config)?;
                self.change_to(next);
            }
            Backend::Embedded(_) => {
                if let Some(table) = Table::open_fresh(&self.config.namespace) {
                    self.change_to(Backend::Table(Box::new(table)));
                }
            }
        }
        self.checked = Instant::now();
        Ok(true)
    }

    /// Changes the backend; the history of the previous one is kept.
    fn change_to(&mut self, next: Backend) {
        for (row, stats) in self.backend.snapshot().devices {
            for resolution in 0..HISTORY_RESOLUTIONS.len() {
                self.past.keep(stats.entry.chip_id, resolution, self.backend.history(row, resolution));
            }
        }
        self.backend = next;
    }
}

impl Backend {
    fn open(config: &SourceConfig) -> Result<Backend, SourceError> {
        match Table::open_fresh(&config.namespace) {
            Some(table) => Ok(Backend::Table(Box::new(table))),
            None => Embedded::start(config).map(Backend::Embedded),
        }
    }

    fn snapshot(&self) -> TableSnapshot {
        match self {
            Backend::Table(table) => table.snapshot(),
            Backend::Embedded(embedded) => embedded.aggregator.snapshot(),
        }
    }

    fn history(&self, row: usize, resolution: usize) -> Vec<Bucket> {
        match self {
            Backend::Table(table) => table.history(row, resolution),
            Backend::Embedded(embedded) => embedded.aggregator.history(row, resolution),
        }
    }
}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Source>();
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_ring_fills_between_two_polls() {
        let wait = |events, ms| wait_after(events, Duration::from_millis(ms)).as_millis();
        assert_eq!(wait(0, 50), 50, "nothing happens");
        assert_eq!(wait(40_000, 1000), 50, "little happens");
        assert_eq!(wait(8192, 20), 10, "a quarter of a ring fills in 10 ms");
        assert_eq!((wait(1 << 20, 5), wait(u64::MAX, 1)), (1, 1), "more than can be followed");
    }
}
