//! Where the data comes from: the aggregator's table if one runs, else the same aggregation in here.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use tt_shm_aggregator::{Aggregator, Config};
use tt_shm_os::{Namespace, path_of, table_file_name};
use tt_shm_reader::{Bucket, HISTORY_RESOLUTIONS, Table, TableError, TableSnapshot};

use crate::model::Clock;
use crate::past::Past;
use crate::segments::{Hidden, hidden};

/// Rates are those of a second: an aggregation that is younger does not know them.
const RATES_AFTER: Duration = Duration::from_millis(1100);
/// Events between two looks at the rings, all together: a quarter of what one ring holds.
const EVENTS_AT_A_LOOK: u32 = 4096;
/// Between two looks, however much or little happens.
const WAIT: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_millis(50);
/// How often to look whether an aggregator was started or ended, and who cannot be seen.
const RECHECK: Duration = Duration::from_secs(1);

/// Who counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A running aggregator.
    Table {
        /// Its pid.
        pid: u64,
        /// How old its figures are.
        age_ns: u64,
    },
    /// This process.
    Embedded,
}

impl Origin {
    /// For people.
    pub fn describe(&self) -> String {
        match self {
            Origin::Table { pid, age_ns } => {
                format!("aggregator {pid}, {} old", crate::output::units::age(*age_ns))
            }
            Origin::Embedded => "no aggregator, read directly".to_owned(),
        }
    }

    /// The running aggregator's pid.
    pub fn aggregator(&self) -> Option<u64> {
        match self {
            Origin::Table { pid, .. } => Some(*pid),
            Origin::Embedded => None,
        }
    }

    /// How old the figures of a table are.
    pub fn age_ms(&self) -> u64 {
        match self {
            Origin::Table { age_ns, .. } => age_ns / 1_000_000,
            Origin::Embedded => 0,
        }
    }
}

/// All rows at one moment.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The rows.
    pub snapshot: TableSnapshot,
    /// Who counted.
    pub origin: Origin,
    /// When.
    pub clock: Clock,
    /// Whether rates are known: who counts for less than a second does not know what happened in one.
    pub rates_known: bool,
    /// What whoever counted could not see.
    pub hidden: Vec<Hidden>,
    /// A table in the place of one that may be read, and why it is not.
    pub refused_table: Option<Arc<TableError>>,
}

/// Something to read from, again and again.
#[derive(Debug)]
pub struct Source {
    namespace: Namespace,
    from: From,
    beside: Beside,
    checked: Instant,
    /// What the sources before this one knew.
    past: Past,
}

/// An aggregation in here, which looks at the rings as often as they need it.
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

/// How long to wait before the next look if so many events came since the last.
fn wait_after(events: u64, elapsed: Duration) -> Duration {
    let events = u32::try_from(events).unwrap_or(u32::MAX).max(1);
    (elapsed * EVENTS_AT_A_LOOK / events).clamp(*WAIT.start(), *WAIT.end())
}

/// What there is beside the source and not in it, as of the last check.
#[derive(Clone, Debug)]
struct Beside {
    hidden: Vec<Hidden>,
    refused_table: Option<Arc<TableError>>,
}

#[derive(Debug)]
enum From {
    Table(Box<Table>),
    Embedded(Embedded),
}

impl Source {
    /// The table if its aggregator runs, else an aggregation that begins now.
    pub fn open(namespace: &Namespace) -> anyhow::Result<Source> {
        let from = match fresh_table(namespace) {
            Some(table) => From::Table(Box::new(table)),
            None => embedded(namespace)?,
        };
        let beside = Beside::look(namespace, &from)?;
        let (namespace, checked, past) = (namespace.clone(), Instant::now(), Past::default());
        Ok(Source { namespace, from, beside, checked, past })
    }

    /// Everything as it is now.
    pub fn read(&mut self) -> anyhow::Result<Reading> {
        self.recheck()?;
        let (snapshot, origin, rates_known) = match &mut self.from {
            From::Table(table) => {
                let snapshot = table.snapshot();
                // The heartbeat may be younger: it says that the aggregator lives, not what it has folded.
                let folded = figures_age_ns(&snapshot, Clock::now());
                let age_ns = folded.unwrap_or(snapshot.freshness.age_ns);
                let origin = Origin::Table { pid: table.header().pid, age_ns };
                let running = Clock::now().age_ns(table.header().started);
                (snapshot, origin, u128::from(running) >= RATES_AFTER.as_nanos())
            }
            From::Embedded(embedded) => {
                embedded.poll();
                let rates_known = embedded.since.elapsed() >= RATES_AFTER;
                (embedded.aggregator.snapshot(), Origin::Embedded, rates_known)
            }
        };
        let Beside { hidden, refused_table } = self.beside.clone();
        let clock = Clock::beside(&snapshot);
        Ok(Reading { snapshot, origin, clock, rates_known, hidden, refused_table })
    }

    /// A device's history by its row in the table and its chip (0 a minute, 1 an hour, 2 a day), oldest first.
    pub fn history(&self, row: usize, chip_id: u64, resolution: usize) -> Vec<Bucket> {
        self.past.with(chip_id, resolution, self.from.history(row, resolution))
    }

    /// Keeps an embedded aggregation going, so that no ring goes round unseen.
    pub fn poll(&mut self) {
        if let From::Embedded(embedded) = &mut self.from {
            // Who comes back wants to see new processes at once.
            embedded.aggregator.watch();
            embedded.poll();
        }
    }

    /// How long may pass until the next [`Source::poll`].
    pub fn poll_interval(&self) -> Duration {
        match &self.from {
            From::Table(_) => Duration::from_secs(1),
            From::Embedded(embedded) => embedded.wait,
        }
    }

    /// Changes over when an aggregator was started, replaced or ended.
    fn recheck(&mut self) -> anyhow::Result<()> {
        if self.checked.elapsed() < RECHECK {
            return Ok(());
        }
        match &self.from {
            From::Table(table) if table.freshness().is_fresh() && !table.is_replaced() => {}
            From::Table(_) => {
                let next = Source::open(&self.namespace)?.from;
                self.change_to(next);
            }
            From::Embedded(_) => {
                if let Some(table) = fresh_table(&self.namespace) {
                    self.change_to(From::Table(Box::new(table)));
                }
            }
        }
        self.beside = Beside::look(&self.namespace, &self.from)?;
        self.checked = Instant::now();
        Ok(())
    }
}

impl Source {
    /// Reads from another source from now on; what this one knew of the past is kept.
    fn change_to(&mut self, next: From) {
        for (row, stats) in self.from.snapshot().devices {
            for resolution in 0..HISTORY_RESOLUTIONS.len() {
                self.past.keep(stats.entry.chip_id, resolution, self.from.history(row, resolution));
            }
        }
        self.from = next;
    }
}

impl Beside {
    fn look(namespace: &Namespace, from: &From) -> anyhow::Result<Beside> {
        let hidden = if from.sees_all(namespace) { Vec::new() } else { hidden(namespace)? };
        Ok(Beside { hidden, refused_table: refused_table(namespace).map(Arc::new) })
    }
}

impl From {
    fn snapshot(&self) -> TableSnapshot {
        match self {
            From::Table(table) => table.snapshot(),
            From::Embedded(embedded) => embedded.aggregator.snapshot(),
        }
    }

    fn history(&self, row: usize, resolution: usize) -> Vec<Bucket> {
        match self {
            From::Table(table) => table.history(row, resolution),
            From::Embedded(embedded) => embedded.aggregator.history(row, resolution),
        }
    }

    /// Root's aggregator may read every segment; that of another user, or this process, only what this user may.
    fn sees_all(&self, namespace: &Namespace) -> bool {
        let root = path_of(&table_file_name(namespace, 0));
        matches!(self, From::Table(table) if table.path() == root)
    }
}

fn fresh_table(namespace: &Namespace) -> Option<Table> {
    Table::open(namespace).ok().filter(|table| table.freshness().is_fresh())
}

/// Why a table that is there is not read: somebody put it there whose place it is not, or it is broken.
fn refused_table(namespace: &Namespace) -> Option<TableError> {
    let uid = rustix::process::geteuid().as_raw();
    let open = |uid| Table::open_path(&path_of(&table_file_name(namespace, uid)), uid);
    [0, uid].into_iter().filter_map(|uid| open(uid).err()).find(|error| !error.is_not_found())
}

/// How old figures are: everything that processes had reported by then is in them. `None` before the first ones.
pub fn figures_age_ns(snapshot: &TableSnapshot, now: Clock) -> Option<u64> {
    Some(snapshot.as_of).filter(|as_of| *as_of != 0).map(|as_of| now.age_ns(as_of))
}

/// The rows of a running aggregator, if there is one.
pub fn table_snapshot(namespace: &Namespace) -> Option<TableSnapshot> {
    fresh_table(namespace).map(|table| table.snapshot())
}

fn embedded(namespace: &Namespace) -> anyhow::Result<From> {
    // Who only looks removes nothing: `tt-smi clean` and the daemon do, and say what it was.
    // Most look once and end, and would have to wait for the end of a watch.
    let config = Config { reap: false, watch: false, ..Config::new(namespace.clone()) };
    let aggregator = Aggregator::new(config).context("cannot aggregate")?;
    let (aggregator, now) = (Box::new(aggregator), Instant::now());
    Ok(From::Embedded(Embedded { aggregator, since: now, polled: now, wait: *WAIT.start() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_ring_fills_between_two_looks() {
        let wait = |events, ms| wait_after(events, Duration::from_millis(ms)).as_millis();
        assert_eq!(wait(0, 50), 50, "nothing happens");
        assert_eq!(wait(40_000, 1000), 50, "little happens");
        assert_eq!(wait(8192, 20), 10, "as fast as fills a quarter of a ring in 10 ms");
        assert_eq!((wait(1 << 20, 5), wait(u64::MAX, 1)), (1, 1), "more than anybody can follow");
    }
}
