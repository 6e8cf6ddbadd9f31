//! What is read of the monitor, to be judged in a quiet moment.

use super::Soak;
use crate::soak::judge::verdict::Reading;
use crate::soak::judge::{claims, shown};
use crate::soak::processes::{Role, command};
use anyhow::Result;
use shm_layout::table::HISTORY_RESOLUTIONS;
use std::time::{Duration, Instant};
use tt_shm_aggregator::{Aggregator, Config};
use tt_shm_os::monotonic_ns;
use tt_shm_reader::{Table, TableSnapshot};

/// How far behind its heartbeat a table usually is: events wait 0.5 ms to be merged.
const LAG_NS: u64 = 2_000_000;
/// How far the clocks of a writer and an aggregator may be apart.
const CLOCKS_NS: u64 = 200_000;
/// How long the aggregator may take to catch up with writers that do nothing.
const PATIENCE: Duration = Duration::from_secs(15);

impl Soak {
    /// The table of the aggregator that runs, if it has one.
    fn table(&self) -> Option<Table> {
        let aggregator = self.aggregator.as_ref()?.pid();
        let table = Table::open(self.space.namespace()).ok()?;
        (table.header().pid == u64::from(aggregator)).then_some(table)
    }

    /// Reads the table. Returns as of when it is.
    pub(super) fn read_table(&mut self) -> Option<u64> {
        let table = self.table()?;
        let snapshot = table.snapshot();
        let read = self.oracle.timeline.now();
        if !snapshot.consistent || !snapshot.freshness.is_fresh() {
            return None;
        }
        // Clocks differ a little.
        let as_of = snapshot.as_of.saturating_sub(CLOCKS_NS);
        let mut reading = reading("table", &snapshot, as_of, read);
        for device in 0..snapshot.devices.len() {
            self.read_history(&table, &snapshot, device, &mut reading);
        }
        self.readings.push(reading);
        Some(as_of)
    }

    /// Buckets that are complete and old enough to be judged, once each unless they change.
    fn read_history(
        &mut self,
        table: &Table,
        snapshot: &TableSnapshot,
        number: usize,
        reading: &mut Reading,
    ) {
        let (row, device) = &snapshot.devices[number];
        let chip = device.entry.chip_id.saturating_sub(1) as usize;
        for (resolution, length) in HISTORY_RESOLUTIONS.into_iter().enumerate().take(2) {
            for bucket in table.history(*row, resolution) {
                let held = self.shown.insert((chip, resolution, bucket.start), bucket);
                if resolution == 0 && held != Some(bucket) && bucket.start + length < reading.as_of {
                    self.diary.note(format!(
                        "device {chip} bucket {} reads l1 {}..{} flags {} of {:x}",
                        bucket.start,
                        bucket.l1_min,
                        bucket.l1_max,
                        bucket.flags,
                        table.header().identity
                    ));
                }
                let settled = bucket.start + length + 10_000_000;
                if settled > self.oracle.base_ns() || settled > reading.as_of {
                    continue;
                }
                let key = (table.header().identity, chip, resolution, bucket.start);
                if self.buckets.insert(key, bucket) == Some(bucket) {
                    continue;
                }
                reading.claims.figures.extend(claims::of_bucket(chip, resolution, length, &bucket));
            }
        }
    }

    /// Waits until the table has seen everything, and reads it. Returns as of when it is.
    pub(super) fn await_table(&mut self, stopped: u64) -> Option<u64> {
        let begun = Instant::now();
        while self.aggregator.is_some() {
            let heartbeat = self.table().map(|table| table.freshness().heartbeat_ns);
            if heartbeat.is_some_and(|heartbeat| heartbeat > stopped + 2 * LAG_NS) {
                return self.read_table();
            }
            if begun.elapsed() > PATIENCE {
                self.fault("the aggregator publishes nothing");
                return None;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        None
    }

    /// What a tool that aggregates by itself finds.
    pub(super) fn read_embedded(&mut self) -> Result<()> {
        let mut config = Config::new(self.space.namespace().clone());
        (config.watch, config.reap) = (false, false);
        let as_of = monotonic_ns();
        let mut aggregator = Aggregator::new(config)?;
        aggregator.settle();
        let snapshot = aggregator.snapshot();
        let read = self.oracle.timeline.now();
        self.readings.push(reading("embedded", &snapshot, as_of, read));
        Ok(())
    }

    /// What `tt-smi` prints.
    pub(super) fn read_shown(&mut self, table: Option<u64>) -> Result<()> {
        let begun = monotonic_ns();
        // The table of a killed aggregator is shown for a second more.
        if table.is_none()
            && Table::open(self.space.namespace()).is_ok_and(|table| table.freshness().is_fresh())
        {
            return Ok(());
        }
        let as_of = table.unwrap_or(begun);
        let peak = command(&self.space, Role::Smi)?.args(["peak", "--json"]).output()?;
        let used = command(&self.space, Role::Smi)?.args(["snapshot", "--json"]).output()?;
        let read = self.oracle.timeline.now();
        let (peaks, since) = shown::of_peak(&peak.stdout, |wall| self.oracle.timeline.from_realtime(wall))?;
        let mut figures = peaks;
        figures.extend(shown::of_snapshot(&used.stdout)?);
        let window = since.map_or((begun, false), |since| (since, true));
        let claims = claims::Claims { figures, ..Default::default() };
        let source = if table.is_some() { "tt-smi of a table" } else { "tt-smi alone" };
        self.readings.push(Reading { source, as_of, read, window, claims });
        Ok(())
    }
}

fn reading(source: &'static str, snapshot: &TableSnapshot, as_of: u64, read: u64) -> Reading {
    let window = (snapshot.window_since, snapshot.windows > 0);
    let claims = claims::of_snapshot(snapshot);
    Reading { source, as_of, read, window, claims }
}
