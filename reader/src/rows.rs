//! The rows of a table: each is read consistently, in place, in a bounded number of attempts.

use std::sync::atomic::AtomicU64;

use shm_layout::protocol::latch;
use shm_layout::table::{
    DEVICE_ROW_WORDS, DRIVER_ROW_WORDS, DeviceStats, DriverStats, FAILURE_ROW_WORDS, FailureRecord,
    NOTICE_ROW_WORDS, Notice, PROCESS_ROW_WORDS, ProcessStats, REGION_ROW_WORDS, RegionStats,
    USAGE_ROW_WORDS, UsageStats, control,
};
use shm_layout::{View, Word, load_pod};

use crate::table::Table;

/// The number of attempts at a row before giving up.
const ATTEMPTS: usize = 64;

/// The result of reading a row.
pub(crate) enum Found<T> {
    Row(T),
    /// Not in use.
    Unused,
    /// It changed during every attempt.
    Busy,
}

impl<T> Found<T> {
    fn row(self) -> Option<T> {
        match self {
            Found::Row(row) => Some(row),
            Found::Unused | Found::Busy => None,
        }
    }
}

/// Reads a row out of its latch; `generation` is the one that wrote it.
macro_rules! read_row {
    ($latch:expr, $row:ty) => {
        match latch::read($latch.as_slice(), ATTEMPTS, load_pod::<$row, AtomicU64>) {
            Some(row) if row.generation != 0 => Found::Row(row),
            Some(_) => Found::Unused,
            None => Found::Busy,
        }
    };
}

/// A device's row in place.
#[derive(Clone, Copy)]
pub struct DeviceRow<'a> {
    /// `None` if there is no such row.
    latch: Option<&'a [AtomicU64; DEVICE_ROW_WORDS]>,
}

impl DeviceRow<'_> {
    /// Reads in place, field by field, without copying the row. `None` if the row is not in use, or if it
    /// changed during each of a bounded number of attempts.
    ///
    /// `read` may run several times and may see fields that are not consistent; its result is returned only
    /// if they were.
    #[inline]
    pub fn read<R>(&self, mut read: impl FnMut(View<'_, DeviceStats>) -> R) -> Option<R> {
        latch::read(self.latch?, ATTEMPTS, |copy| {
            let row = View::<DeviceStats>::new(copy);
            (row.generation() != 0).then(|| read(row))
        })
        .flatten()
    }

    /// Copies the row out; `None` as for [`DeviceRow::read`].
    pub fn copy(&self) -> Option<DeviceStats> {
        read_row!(self.latch?, DeviceStats).row()
    }
}

impl Table {
    /// A device's row. Any index is allowed: a row that does not exist reads as not in use.
    #[inline]
    pub fn device(&self, index: usize) -> DeviceRow<'_> {
        let rows = self.block(&self.header().devices);
        let published = self.published(control::DEVICES, &self.extents.devices);
        DeviceRow { latch: rows.get(index).filter(|_| index < published) }
    }

    /// The devices, with their row numbers.
    pub fn devices(&self) -> impl Iterator<Item = (usize, DeviceStats)> {
        rows_in_use(self.found_devices())
    }

    /// The processes, with their row numbers; those that ended stay for a while.
    pub fn processes(&self) -> impl Iterator<Item = (usize, ProcessStats)> {
        rows_in_use(self.found_processes())
    }

    /// The usage of each device by each process. Process and device are row numbers, and may be those of
    /// another generation: see [`Table::snapshot`].
    pub fn usages(&self) -> impl Iterator<Item = (usize, UsageStats)> {
        rows_in_use(self.found_usages())
    }

    /// The notices for the operator, newest first.
    pub fn notices(&self) -> Vec<Notice> {
        self.found_notices().filter_map(Found::row).collect()
    }

    /// The last failed allocations, newest first. See [`FailureRecord::is_plausible`].
    pub fn failures(&self) -> Vec<FailureRecord> {
        let mut failures: Vec<FailureRecord> = self.found_failures().filter_map(Found::row).collect();
        FailureRecord::newest_first(&mut failures);
        failures
    }

    /// What the driver tells of its devices, with their row numbers.
    pub fn driver(&self) -> impl Iterator<Item = (usize, DriverStats)> {
        rows_in_use(self.found_driver())
    }

    /// The regions of tt-metal and their processes, with their row numbers.
    pub fn regions(&self) -> impl Iterator<Item = (usize, RegionStats)> {
        rows_in_use(self.found_regions())
    }

    pub(crate) fn found_regions(&self) -> impl Iterator<Item = Found<RegionStats>> {
        let rows = self.block::<REGION_ROW_WORDS>(&self.header().regions);
        rows[..self.published(control::REGIONS, &self.extents.regions)]
            .iter()
            .map(|row| read_row!(row, RegionStats))
    }

    pub(crate) fn found_driver(&self) -> impl Iterator<Item = Found<DriverStats>> {
        let rows = self.block::<DRIVER_ROW_WORDS>(&self.header().driver);
        rows[..self.published(control::DRIVER, &self.extents.driver)]
            .iter()
            .map(|row| read_row!(row, DriverStats))
    }

    pub(crate) fn found_failures(&self) -> impl Iterator<Item = Found<FailureRecord>> {
        let rows = self.block::<FAILURE_ROW_WORDS>(&self.header().failures);
        rows[..self.published(control::FAILURES, &self.extents.failures)]
            .iter()
            .map(|row| read_row!(row, FailureRecord))
    }

    pub(crate) fn found_devices(&self) -> impl Iterator<Item = Found<DeviceStats>> {
        let rows = self.block::<DEVICE_ROW_WORDS>(&self.header().devices);
        rows[..self.published(control::DEVICES, &self.extents.devices)]
            .iter()
            .map(|row| read_row!(row, DeviceStats))
    }

    pub(crate) fn found_processes(&self) -> impl Iterator<Item = Found<ProcessStats>> {
        let rows = self.block::<PROCESS_ROW_WORDS>(&self.header().processes);
        rows[..self.published(control::PROCESSES, &self.extents.processes)]
            .iter()
            .map(|row| read_row!(row, ProcessStats))
    }

    pub(crate) fn found_usages(&self) -> impl Iterator<Item = Found<UsageStats>> {
        let rows = self.block::<USAGE_ROW_WORDS>(&self.header().usages);
        rows[..self.published(control::USAGES, &self.extents.usages)]
            .iter()
            .map(|row| read_row!(row, UsageStats))
    }

    pub(crate) fn found_notices(&self) -> impl Iterator<Item = Found<Notice>> {
        let rows = self.block::<NOTICE_ROW_WORDS>(&self.header().notices);
        let written = self.control(control::NOTICES);
        // Acquire: pairs with the release store by which the aggregator counts a notice.
        AtomicU64::fence_acquire();
        let rows = &rows[..self.backed_notices(written).min(rows.len())];
        let kept = written.min(rows.len() as u64);
        (1..=kept).map(move |back| {
            let row = &rows[((written - back) % rows.len() as u64) as usize];
            read_row!(row, Notice)
        })
    }
}

fn rows_in_use<T>(found: impl Iterator<Item = Found<T>>) -> impl Iterator<Item = (usize, T)> {
    found.enumerate().filter_map(|(index, found)| Some((index, found.row()?)))
}
