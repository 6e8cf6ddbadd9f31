//! Where the data comes from: the table of a running aggregator, else an aggregation in this process.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use tt_shm_aggregator::{Aggregator, Config};
use tt_shm_os::{Namespace, path_of, table_file_name};
use tt_shm_reader::{Bucket, HISTORY_RESOLUTIONS, Table, TableError, TableSnapshot, TelemetryBucket};

use crate::model::{Clock, Origin, Reading, figures_age_ns};
use crate::past::Past;
use crate::segments::{Hidden, hidden};

/// Rates cover one second, so a younger aggregation does not know them.
const RATES_AFTER: Duration = Duration::from_millis(1100);
/// Events between two polls of the rings, all together: a quarter of what one ring holds.
const EVENTS_PER_POLL: u32 = 4096;
/// Time between two polls, however much or little happens.
const WAIT: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_millis(50);
/// How often to check whether an aggregator was started or has ended, and what cannot be read.
const RECHECK: Duration = Duration::from_secs(1);

/// A backend that is read repeatedly, and replaced when an aggregator starts or ends.
#[derive(Debug)]
pub struct Source {
    namespace: Namespace,
    backend: Backend,
    unseen: Unseen,
    checked: Instant,
    /// History of the backends before this one.
    past: Past,
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

/// What the backend does not see, as of the last check.
#[derive(Clone, Debug)]
struct Unseen {
    hidden: Vec<Hidden>,
    refused_table: Option<Arc<TableError>>,
}

/// What is read.
#[derive(Debug)]
enum Backend {
    Table(Box<Table>),
    Embedded(Embedded),
}

impl Source {
    /// Opens the table if its aggregator runs, else starts an aggregation.
    pub fn open(namespace: &Namespace) -> anyhow::Result<Source> {
        let backend = match fresh_table(namespace) {
            Some(table) => Backend::Table(Box::new(table)),
            None => embedded(namespace)?,
        };
        let unseen = Unseen::look(namespace, &backend)?;
        let (namespace, checked, past) = (namespace.clone(), Instant::now(), Past::default());
        Ok(Source { namespace, backend, unseen, checked, past })
    }

    /// Reads everything as it is now.
    pub fn read(&mut self) -> anyhow::Result<Reading> {
        self.recheck()?;
        let (snapshot, origin, rates_known) = match &mut self.backend {
            Backend::Table(table) => {
                let snapshot = table.snapshot();
                // The heartbeat may be younger: it says that the aggregator is alive, not what it has folded.
                let folded = figures_age_ns(&snapshot, Clock::now());
                let age_ns = folded.unwrap_or(snapshot.freshness.age_ns);
                let origin = Origin::Table { pid: table.header().pid, age_ns };
                let running = Clock::now().age_ns(table.header().started);
                (snapshot, origin, u128::from(running) >= RATES_AFTER.as_nanos())
            }
            Backend::Embedded(embedded) => {
                embedded.poll();
                let rates_known = embedded.since.elapsed() >= RATES_AFTER;
                (embedded.aggregator.snapshot(), Origin::Embedded, rates_known)
            }
        };
        let Unseen { hidden, refused_table } = self.unseen.clone();
        let clock = Clock::beside(&snapshot);
        Ok(Reading { snapshot, origin, clock, rates_known, hidden, refused_table })
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

    /// Changes the backend when an aggregator was started, replaced or ended.
    fn recheck(&mut self) -> anyhow::Result<()> {
        if self.checked.elapsed() < RECHECK {
            return Ok(());
        }
        match &self.backend {
            Backend::Table(table) if table.freshness().is_fresh() && !table.is_replaced() => {}
            Backend::Table(_) => {
                let next = Source::open(&self.namespace)?.backend;
                self.change_to(next);
            }
            Backend::Embedded(_) => {
                if let Some(table) = fresh_table(&self.namespace) {
                    self.change_to(Backend::Table(Box::new(table)));
                }
            }
        }
        self.unseen = Unseen::look(&self.namespace, &self.backend)?;
        self.checked = Instant::now();
        Ok(())
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

impl Unseen {
    fn look(namespace: &Namespace, backend: &Backend) -> anyhow::Result<Unseen> {
        let hidden = if backend.sees_all(namespace) { Vec::new() } else { hidden(namespace)? };
        Ok(Unseen { hidden, refused_table: refused_table(namespace).map(Arc::new) })
    }
}

impl Backend {
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

    /// Whether it reads every segment: only root's aggregator may.
    fn sees_all(&self, namespace: &Namespace) -> bool {
        let root = path_of(&table_file_name(namespace, 0));
        matches!(self, Backend::Table(table) if table.path() == root)
    }
}

fn fresh_table(namespace: &Namespace) -> Option<Table> {
    Table::open(namespace).ok().filter(|table| table.freshness().is_fresh())
}

/// Why a table that exists is not read: it is damaged, or has the wrong owner.
fn refused_table(namespace: &Namespace) -> Option<TableError> {
    let uid = rustix::process::geteuid().as_raw();
    let open = |uid| Table::open_path(&path_of(&table_file_name(namespace, uid)), uid);
    [0, uid].into_iter().filter_map(|uid| open(uid).err()).find(|error| !error.is_not_found())
}

/// The rows of a running aggregator, if there is one.
pub fn table_snapshot(namespace: &Namespace) -> Option<TableSnapshot> {
    fresh_table(namespace).map(|table| table.snapshot())
}

fn embedded(namespace: &Namespace) -> anyhow::Result<Backend> {
    // Reading removes nothing: `tt-smi clean` and the daemon do, and report it. Without a watch: most commands read once
    // and exit, and would have to wait for its end.
    let config = Config {
        reap: false,
        watch: false,
        driver: Some(crate::driver::roots()),
        regions: Some(crate::driver::region_roots()),
        ..Config::new(namespace.clone())
    };
    let aggregator = Aggregator::new(config).context("cannot aggregate")?;
    let (aggregator, now) = (Box::new(aggregator), Instant::now());
    Ok(Backend::Embedded(Embedded { aggregator, since: now, polled: now, wait: *WAIT.start() }))
}

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
