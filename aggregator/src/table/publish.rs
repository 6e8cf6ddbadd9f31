//! Writes the changed rows of the model into the table.

use std::sync::atomic::AtomicU64;

use bytemuck::{Pod, Zeroable};
use shm_layout::protocol::latch::LatchWriter;
use shm_layout::table::{
    DEVICE_ROW_WORDS, DRIVER_ROW_WORDS, DeviceStats, DriverStats, FAILURE_ROW_WORDS, FailureRecord,
    MAX_USAGES, NOTICE_ROW_WORDS, Notice, PROCESS_ROW_WORDS, ProcessStats, REGION_ROW_WORDS, RegionStats,
    TableHeader, TableWords, USAGE_ROW_WORDS, UsageStats, control,
};
use shm_layout::{Block, Word, point, store_pod};

use crate::aggregator::Aggregator;
use crate::error::PublishError;
use crate::model::Model;
use crate::table::file::TableFile;
use crate::table::history::Histories;
use crate::table::lockfile::Claim;
use crate::table::telemetry::Telemetries;

/// The number of rows that are allocated at once.
const STEP: usize = 32;

/// Publishes the figures of an aggregator in a table that everybody may read.
///
/// An aggregator killed at any point leaves every row intact. [`TablePublisher::close`] removes the table;
/// dropping the publisher leaves it as it is, and readers see that its heartbeat stops.
#[derive(Debug)]
pub struct TablePublisher {
    claim: Claim,
    written: Written,
}

/// A table and what was written to it.
#[derive(Debug)]
struct Written {
    file: TableFile,
    devices: Latches,
    processes: Latches,
    usages: Latches,
    notices: Latches,
    failures: Latches,
    histories: Histories,
    driver: Latches,
    regions: Latches,
    telemetries: Telemetries,
    /// The generation that was last written.
    published: u64,
    /// The number of generations that lacked room, and since when rows are missing; 0 if none are.
    errors: u64,
    incomplete_since: u64,
}

impl TablePublisher {
    /// Creates a new table with everything that is known now, in place of the old one.
    pub fn create(claim: Claim, aggregator: &Aggregator) -> Result<TablePublisher, PublishError> {
        let written = Written::new(TableFile::create(&claim.namespace, claim.uid)?)?;
        let mut publisher = TablePublisher { claim, written };
        publisher.fill(aggregator)?;
        Ok(publisher)
    }

    /// Recreates the table if its file was removed, replaced or truncated: otherwise nobody would see it, and
    /// nobody else could publish one. Returns whether it was recreated.
    pub fn restore(&mut self, aggregator: &Aggregator) -> Result<bool, PublishError> {
        if self.written.file.is_in_place() {
            return Ok(false);
        }
        if !self.claim.is_in_place() {
            // Whoever removed the lock file too may have started another aggregator.
            self.claim = Claim::take(&self.claim.namespace)?;
        }
        self.written = Written::new(TableFile::create(&self.claim.namespace, self.claim.uid)?)?;
        self.fill(aggregator)?;
        Ok(true)
    }

    fn fill(&mut self, aggregator: &Aggregator) -> Result<(), PublishError> {
        // Rows for which there is no room are missing, which the table says.
        let _ = self.publish(aggregator);
        self.written.file.put_in_place(&self.claim.namespace, self.claim.uid)
    }

    /// Writes what changed since the last call, and always a heartbeat. Fails only if /dev/shm has no room
    /// for more rows. Those are then missing, which the table says, and are tried again with each call;
    /// everything else is up to date.
    pub fn publish(&mut self, aggregator: &Aggregator) -> Result<(), PublishError> {
        let model = &aggregator.model;
        let written = &mut self.written;
        let complete = written.incomplete_since == 0 && written.published != 0;
        let short = if complete && model.generation() == written.published {
            None
        } else {
            written.write_generation(aggregator)
        };
        let words = TableWords::carve(written.file.map.words(), &written.file.header);
        // Release: pairs with the acquire fence in Table::snapshot(). A reader that sees it also sees the
        // rows of that moment.
        words.control[control::AS_OF].store_release(model.as_of);
        Word::store(&words.control[control::INTERVAL], aggregator.sleep_hint().as_nanos() as u64);
        Word::store(&words.control[control::HEARTBEAT], model.now);
        short.map_or(Ok(()), Err)
    }

    /// Marks the table as closed and removes it. Returns the claim, which is held until it is dropped.
    pub fn close(self) -> std::io::Result<Claim> {
        let file = &self.written.file;
        let words = TableWords::carve(file.map.words(), &file.header);
        // Release: a reader that sees it closed also sees the last rows.
        words.control[control::CLOSED].store_release(1);
        file.unlink()?;
        point!(TableUnlinked);
        Ok(self.claim)
    }
}

impl Written {
    /// A table with room for some rows of each kind, and for all notices: readers touch every notice, and
    /// there must be room to say what is wrong when there is room for nothing else.
    fn new(file: TableFile) -> Result<Written, PublishError> {
        let TableHeader {
            devices,
            processes,
            usages,
            notices,
            history,
            failures,
            driver,
            telemetry,
            regions,
            ..
        } = file.header;
        let mut written = Written {
            devices: Latches::new(devices, DEVICE_ROW_WORDS),
            processes: Latches::new(processes, PROCESS_ROW_WORDS),
            usages: Latches::new(usages, USAGE_ROW_WORDS),
            notices: Latches::new(notices, NOTICE_ROW_WORDS),
            failures: Latches::new(failures, FAILURE_ROW_WORDS),
            histories: Histories::new(history),
            driver: Latches::new(driver, DRIVER_ROW_WORDS),
            regions: Latches::new(regions, REGION_ROW_WORDS),
            telemetries: Telemetries::new(telemetry),
            published: 0,
            errors: 0,
            incomplete_since: 0,
            file,
        };
        let Written { file, devices, processes, usages, notices, .. } = &mut written;
        for rows in [devices, processes, usages] {
            rows.reserve(file, STEP)?;
        }
        notices.reserve(file, notices.block.capacity as usize)?;
        Ok(written)
    }

    /// Writes what changed, as far as there is room; returns the error if there is not.
    fn write_generation(&mut self, aggregator: &Aggregator) -> Option<PublishError> {
        let short = self.write_rows(&aggregator.model);
        self.note_room(short.is_some(), aggregator.model.now);
        self.write_control(aggregator);
        self.published = aggregator.model.generation();
        short
    }

    fn write_rows(&mut self, model: &Model) -> Option<PublishError> {
        let after = self.published;
        let file = &self.file;
        let words = TableWords::carve(file.map.words(), &file.header);
        let mut short = None;
        // A visible device must have room for its history.
        let devices = self.histories.room(file, model.devices.high_water(), &mut short);
        let mut writer = RowWriter { file, after, short };
        writer.write(&mut self.devices, words.devices, devices, model.devices.iter(), |g, device| {
            device.map_or(DeviceStats::zeroed(), |device| model.device_stats(g, device))
        });
        let high = model.usages.high_water().min(MAX_USAGES);
        writer.write(&mut self.usages, words.usages, high, model.usages.iter(), |g, usage| {
            usage.map_or(UsageStats::zeroed(), |usage| model.usage_stats(g, usage))
        });
        let count = model.notices.rows().count();
        let notices = model.notices.rows().map(|(row, notice)| (row, notice.generation, Some(notice)));
        writer.write(&mut self.notices, words.notices, count, notices, |_, notice| {
            notice.copied().unwrap_or(Notice::zeroed())
        });
        let (high, rows) = (model.failures.high_water(), model.failures.iter());
        writer.write(&mut self.failures, words.failures, high, rows, |generation, failure| {
            failure.map_or(FailureRecord::zeroed(), |f| FailureRecord { generation, ..*f })
        });
        let high = self.telemetries.room(file, model.driver.rows.high_water(), &mut writer.short);
        writer.write(&mut self.driver, words.driver, high, model.driver.rows.iter(), |generation, device| {
            device.map_or(DriverStats::zeroed(), |device| DriverStats { generation, ..device.stats })
        });
        let (high, rows) = (model.regions.rows.high_water(), model.regions.rows.iter());
        writer.write(&mut self.regions, words.regions, high, rows, |generation, stats| {
            stats.map_or(RegionStats::zeroed(), |stats| RegionStats { generation, ..*stats })
        });
        self.histories.write(&words, &model.devices, after);
        self.telemetries.write(&words, &model.driver.rows);
        // Last: an aggregator that adopts these rows takes a process's position as covered by all other
        // rows, and later events as new. If this one is killed in between, the other rows contain more
        // than the position says, never less.
        let high = model.processes.high_water();
        writer.write(&mut self.processes, words.processes, high, model.processes.iter(), |g, process| {
            process.map_or(ProcessStats::zeroed(), |process| model.process_stats(g, process))
        });
        writer.short
    }

    fn note_room(&mut self, short: bool, now: u64) {
        self.errors += u64::from(short);
        self.incomplete_since = match self.incomplete_since {
            _ if !short => 0,
            0 => now.max(1),
            since => since,
        };
    }

    /// Writes the control words. They count only rows that exist.
    fn write_control(&self, aggregator: &Aggregator) {
        let words = TableWords::carve(self.file.map.words(), &self.file.header);
        let model = &aggregator.model;
        let (gap_start, gap_end) = model.window.gap.unwrap_or_default();
        let there = |rows: &Latches, high: usize| rows.writers.len().min(high) as u64;
        let devices = model.devices.high_water().min(self.histories.len());
        let driver = model.driver.rows.high_water().min(self.telemetries.len());
        let figures = [
            (control::DEVICES, there(&self.devices, devices)),
            (control::PROCESSES, there(&self.processes, model.processes.high_water())),
            (control::USAGES, there(&self.usages, model.usages.high_water().min(MAX_USAGES))),
            (control::NOTICES, model.notices.count()),
            (control::FAILURES, there(&self.failures, model.failures.high_water())),
            (control::EVENTS, model.totals.events),
            (control::MISSED, model.totals.missed),
            (control::LATE, model.totals.late),
            (control::LOST, model.totals.lost),
            (control::REFUSED, aggregator.refused()),
            (control::WINDOW_SINCE, model.window.since),
            (control::WINDOWS, model.window.count),
            (control::GAP_START, gap_start),
            (control::GAP_END, gap_end),
            (control::OVERFLOW, model.overflow()),
            (control::UNSEEN, aggregator.unseen()),
            (control::PUBLISH_ERRORS, self.errors),
            (control::INCOMPLETE_SINCE, self.incomplete_since),
            (control::CLOCK_STEPS, model.clock.steps()),
            (control::AWAKE_SINCE, model.clock.awake_since()),
            (control::DRIVER, there(&self.driver, driver)),
            (control::DRIVER_LEFT_OUT, model.driver.left_out),
            (control::REGIONS, there(&self.regions, model.regions.rows.high_water())),
            (control::REGIONS_LEFT_OUT, model.regions.left_out),
        ];
        for (word, value) in figures {
            // Release: pairs with the acquire fence after which readers look at the rows that these count.
            words.control[word].store_release(value);
        }
        // Release: pairs with the acquire fence in Table::snapshot(). A reader that sees the generation also
        // sees its rows.
        words.control[control::GENERATION].store_release(model.generation());
    }
}

/// Writes the rows of one generation.
struct RowWriter<'a> {
    file: &'a TableFile,
    /// The generation before it.
    after: u64,
    /// The error, if there was no room.
    short: Option<PublishError>,
}

impl RowWriter<'_> {
    /// Writes those of the first `count` rows that changed or had no room before.
    fn write<'r, R, T: Pod, const N: usize>(
        &mut self,
        latches: &mut Latches,
        words: &[[AtomicU64; N]],
        count: usize,
        rows: impl Iterator<Item = (usize, u64, Option<&'r R>)>,
        content: impl Fn(u64, Option<&'r R>) -> T,
    ) where
        R: 'r,
    {
        if let Err(error) = latches.room(self.file, count) {
            self.short = Some(error);
        }
        let there = latches.writers.len().min(count);
        for (row, generation, value) in rows.take_while(|(row, ..)| *row < there) {
            if generation > self.after || row >= latches.written {
                let content = content(generation, value);
                latches.writers[row].turn(&words[row], |copy| store_pod(copy, &content));
            }
        }
        latches.written = latches.written.max(there);
    }
}

/// The rows of one kind, with the private side of their latches.
#[derive(Debug)]
struct Latches {
    block: Block,
    row_words: usize,
    /// One for each row that is allocated.
    writers: Vec<LatchWriter>,
    /// The number of rows that were ever written.
    written: usize,
}

impl Latches {
    fn new(block: Block, row_words: usize) -> Latches {
        Latches { block, row_words, writers: Vec::new(), written: 0 }
    }

    /// Ensures that the first `count` rows are allocated.
    fn room(&mut self, file: &TableFile, count: usize) -> Result<(), PublishError> {
        if count <= self.writers.len() {
            return Ok(());
        }
        // If there is no room for a whole step, there may be for those that are needed.
        self.reserve(file, count.next_multiple_of(STEP)).or_else(|_| self.reserve(file, count))
    }

    fn reserve(&mut self, file: &TableFile, count: usize) -> Result<(), PublishError> {
        let (have, want) = (self.writers.len(), count.min(self.block.capacity as usize));
        file.populate(&self.block, have, want, 8 * self.row_words)?;
        self.writers.resize(want, LatchWriter::default());
        Ok(())
    }
}
