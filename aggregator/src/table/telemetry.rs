//! Writes the telemetry of the driver's devices into the table.

use std::sync::atomic::AtomicU64;

use shm_layout::Block;
use shm_layout::protocol::stamped;
use shm_layout::table::{
    self, TELEMETRY_BUCKET_WORDS, TELEMETRY_RESOLUTIONS, TELEMETRY_WORDS, TableWords, TelemetryBucket,
};

use crate::error::PublishError;
use crate::model::driver::DriverDevice;
use crate::model::rows::Rows;
use crate::table::file::TableFile;

/// How far the telemetry of each row is written.
#[derive(Debug)]
pub(crate) struct Telemetries {
    block: Block,
    rows: Vec<Written>,
}

#[derive(Debug, Default)]
struct Written {
    /// The generation in which the row got the device whose telemetry it is; 0 if nothing was written yet.
    since: u64,
    /// For each resolution, the stamp of the newest bucket written: its start, plus one for each time it was
    /// written again, so that a reader never takes words of two updates for one.
    newest: [u64; TELEMETRY_RESOLUTIONS.len()],
}

impl Telemetries {
    pub(crate) fn new(block: Block) -> Telemetries {
        Telemetries { block, rows: Vec::new() }
    }

    /// Reserves room for the telemetry of the first `count` rows; returns how many have it.
    pub(crate) fn room(&mut self, file: &TableFile, count: usize, short: &mut Option<PublishError>) -> usize {
        while self.rows.len() < count {
            let next = self.rows.len();
            if let Err(error) = file.populate(&self.block, next, next + 1, 8 * TELEMETRY_WORDS) {
                *short = Some(error);
                break;
            }
            self.rows.push(Written::default());
        }
        self.rows.len().min(count)
    }

    /// The number of rows that have room.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Writes what was read since the last call, and everything of a device that is new here.
    pub(crate) fn write(&mut self, words: &TableWords<'_, AtomicU64>, devices: &Rows<DriverDevice>) {
        for (row, device) in devices.values() {
            let Some(written) = self.rows.get_mut(row) else { break };
            let cells = &words.telemetry[row];
            if written.since != device.since {
                cells.as_chunks::<TELEMETRY_BUCKET_WORDS>().0.iter().for_each(|cell| stamped::clear(cell));
                *written = Written { since: device.since, ..Written::default() };
            }
            write_device(written, cells, device);
        }
    }
}

fn write_device(written: &mut Written, cells: &[AtomicU64; TELEMETRY_WORDS], device: &DriverDevice) {
    for ((resolution, newest), length) in written.newest.iter_mut().enumerate().zip(TELEMETRY_RESOLUTIONS) {
        for bucket in device.telemetry.since(resolution, *newest - *newest % length) {
            let is_again = bucket.start / length == *newest / length;
            *newest = if is_again { *newest + 1 } else { bucket.start };
            if let Some(cell) = table::telemetry_bucket(cells, resolution, bucket.start) {
                stamped::write(cell, &TelemetryBucket { start: *newest, ..bucket });
            }
        }
    }
}
