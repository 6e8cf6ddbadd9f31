//! Writes the model into the table, and of it only what changed.

use std::sync::atomic::AtomicU64;

use bytemuck::{Pod, Zeroable};
use shm_layout::protocol::latch::LatchWriter;
use shm_layout::table::{
    DEVICE_ROW_WORDS, DeviceStats, FAILURE_ROW_WORDS, FailureRecord, NOTICE_ROW_WORDS, Notice,
    PROCESS_ROW_WORDS, ProcessStats, TableHeader, TableWords, USAGE_ROW_WORDS, UsageStats, control,
};
use shm_layout::{Block, Word, point, store_pod, stores_of};

use crate::aggregator::Aggregator;
use crate::error::PublishError;
use crate::table::file::TableFile;
use crate::table::history::Histories;
use crate::table::lockfile::Claim;

/// Rows that get their memory together.
const STEP: usize = 32;

/// Publishes what an aggregator knows in the table that everybody may read.
///
/// An aggregator killed at any point leaves every row whole. One that ends with [`TablePublisher::close`]
/// leaves no table; one that is dropped leaves it as it is, and readers see that its heartbeat stops.
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
    /// Generation of the last batch written.
    published: u64,
}

impl TablePublisher {
    /// Makes a new table with all that is known now and puts it in place of the old one.
    pub fn create(claim: Claim, aggregator: &Aggregator) -> Result<TablePublisher, PublishError> {
        let written = Written::new(TableFile::create(&claim.namespace, claim.uid)?);
        let mut publisher = TablePublisher { claim, written };
        publisher.fill(aggregator)?;
        Ok(publisher)
    }

    /// Makes the table anew if its file was removed, replaced or cut short: otherwise nobody would see it, and
    /// nobody else could publish one. Says whether it was.
    pub fn restore(&mut self, aggregator: &Aggregator) -> Result<bool, PublishError> {
        if self.written.file.is_in_place() {
            return Ok(false);
        }
        if !self.claim.is_in_place() {
            // Whoever removed the lock file as well may have started another aggregator.
            self.claim = Claim::take(&self.claim.namespace)?;
        }
        self.written = Written::new(TableFile::create(&self.claim.namespace, self.claim.uid)?);
        self.fill(aggregator)?;
        Ok(true)
    }

    fn fill(&mut self, aggregator: &Aggregator) -> Result<(), PublishError> {
        self.publish(aggregator)?;
        self.written.file.put_in_place(&self.claim.namespace, self.claim.uid)
    }

    /// Writes what changed since the last call, and a heartbeat in any case. Fails only if /dev/shm has no
    /// room for more rows; what was there stays whole.
    pub fn publish(&mut self, aggregator: &Aggregator) -> Result<(), PublishError> {
        let model = &aggregator.model;
        let written = &mut self.written;
        let result = if model.generation() == written.published && written.published != 0 {
            Ok(())
        } else {
            written.write_batch(aggregator)
        };
        let words = TableWords::carve(written.file.map.words(), &written.file.header);
        stores_of!(TableHeartbeat);
        Word::store(&words.control[control::INTERVAL], aggregator.sleep_hint().as_nanos() as u64);
        Word::store(&words.control[control::HEARTBEAT], model.now);
        result
    }

    /// Ends in an orderly way: readers see that the table is closed, and it is removed. Gives back the claim,
    /// which holds until dropped.
    pub fn close(self) -> std::io::Result<Claim> {
        let file = &self.written.file;
        let words = TableWords::carve(file.map.words(), &file.header);
        stores_of!(TableClosed);
        // Release: a reader that sees it closed sees the last batch.
        words.control[control::CLOSED].store_release(1);
        file.unlink()?;
        point!(TableUnlinked);
        Ok(self.claim)
    }
}

impl Written {
    fn new(file: TableFile) -> Written {
        let TableHeader { devices, processes, usages, notices, history, failures, .. } = file.header;
        Written {
            devices: Latches::new(devices, DEVICE_ROW_WORDS),
            processes: Latches::new(processes, PROCESS_ROW_WORDS),
            usages: Latches::new(usages, USAGE_ROW_WORDS),
            notices: Latches::new(notices, NOTICE_ROW_WORDS),
            failures: Latches::new(failures, FAILURE_ROW_WORDS),
            histories: Histories::new(history),
            published: 0,
            file,
        }
    }

    fn write_batch(&mut self, aggregator: &Aggregator) -> Result<(), PublishError> {
        let (model, after) = (&aggregator.model, self.published);
        let file = &self.file;
        let words = TableWords::carve(file.map.words(), &file.header);
        let news = |changed: u64| changed > after;
        self.devices.room(file, model.devices.high_water())?;
        for (row, g, device) in model.devices.iter().filter(|(_, g, _)| news(*g)) {
            stores_of!(TableDevice);
            let stats = device.map_or(DeviceStats::zeroed(), |device| model.device_stats(g, device));
            self.devices.write(row, &words.devices[row], &stats);
        }
        self.processes.room(file, model.processes.high_water())?;
        for (row, g, process) in model.processes.iter().filter(|(_, g, _)| news(*g)) {
            stores_of!(TableProcess);
            let stats = process.map_or(ProcessStats::zeroed(), |process| model.process_stats(g, process));
            self.processes.write(row, &words.processes[row], &stats);
        }
        self.usages.room(file, model.usages.high_water())?;
        for (row, g, usage) in model.usages.iter().filter(|(_, g, _)| news(*g)) {
            stores_of!(TableUsage);
            let stats = usage.map_or(UsageStats::zeroed(), |usage| model.usage_stats(g, usage));
            self.usages.write(row, &words.usages[row], &stats);
        }
        self.notices.room(file, model.notices.rows().count())?;
        for (row, notice) in model.notices.rows().filter(|(_, notice)| news(notice.generation)) {
            stores_of!(TableNotice);
            self.notices.write::<Notice>(row, &words.notices[row], notice);
        }
        self.failures.room(file, model.failures.high_water())?;
        for (row, generation, failure) in model.failures.iter().filter(|(_, g, _)| news(*g)) {
            stores_of!(TableFailure);
            let record = failure.map_or(FailureRecord::zeroed(), |f| FailureRecord { generation, ..*f });
            self.failures.write(row, &words.failures[row], &record);
        }
        self.histories.write(file, &words, &model.devices, after)?;
        write_control(&words, aggregator);
        self.published = model.generation();
        Ok(())
    }
}

fn write_control(words: &TableWords<'_, AtomicU64>, aggregator: &Aggregator) {
    let model = &aggregator.model;
    let (gap_start, gap_end) = model.window.gap.unwrap_or_default();
    let figures = [
        (control::DEVICES, model.devices.high_water() as u64),
        (control::PROCESSES, model.processes.high_water() as u64),
        (control::USAGES, model.usages.high_water() as u64),
        (control::NOTICES, model.notices.count()),
        (control::FAILURES, model.failures.high_water() as u64),
        (control::EVENTS, model.totals.events),
        (control::MISSED, model.totals.missed),
        (control::LATE, model.totals.late),
        (control::LOST, model.totals.lost),
        (control::REFUSED, aggregator.refused()),
        (control::WINDOW_SINCE, model.window.since),
        (control::WINDOWS, model.window.count),
        (control::GAP_START, gap_start),
        (control::GAP_END, gap_end),
        (control::OVERFLOW, model.totals.overflow),
    ];
    stores_of!(TableControl);
    for (word, value) in figures {
        // Release: pairs with the acquire fence behind which readers look at the rows that these count.
        words.control[word].store_release(value);
    }
    stores_of!(TableGeneration);
    // Release: pairs with the acquire fence in Table::snapshot(). Who sees the generation sees its rows.
    words.control[control::GENERATION].store_release(model.generation());
}

/// Rows of one kind, with the private side of their latches.
#[derive(Debug)]
struct Latches {
    block: Block,
    row_words: usize,
    writers: Vec<LatchWriter>,
}

impl Latches {
    fn new(block: Block, row_words: usize) -> Latches {
        Latches { block, row_words, writers: Vec::new() }
    }

    /// Makes sure that the first `count` rows have memory.
    fn room(&mut self, file: &TableFile, count: usize) -> Result<(), PublishError> {
        let have = self.writers.len();
        if count > have {
            let want = count.next_multiple_of(STEP).min(self.block.capacity as usize);
            file.populate(&self.block, have, want, 8 * self.row_words)?;
            self.writers.resize(want, LatchWriter::default());
        }
        Ok(())
    }

    fn write<T: Pod>(&mut self, row: usize, latch: &[AtomicU64], value: &T) {
        self.writers[row].turn(latch, |copy| store_pod(copy, value));
    }
}
