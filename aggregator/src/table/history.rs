//! Writes the devices' history into the table: the buckets that are new, and the open one again.

use std::sync::atomic::AtomicU64;

use shm_layout::Block;
use shm_layout::protocol::stamped;
use shm_layout::table::{self, BUCKET_WORDS, Bucket, HISTORY_RESOLUTIONS, HISTORY_WORDS, TableWords};

use crate::error::PublishError;
use crate::model::device::Device;
use crate::model::rows::Rows;
use crate::table::file::TableFile;

/// Up to where each device's history is written.
#[derive(Debug)]
pub(crate) struct Histories {
    block: Block,
    rows: Vec<Written>,
}

#[derive(Debug)]
struct Written {
    chip_id: u64,
    /// Per resolution, stamp of the newest bucket written: its start, and one more for each time that it
    /// was written again, so that a reader never takes words of two updates for one.
    newest: [u64; HISTORY_RESOLUTIONS.len()],
}

impl Histories {
    pub(crate) fn new(block: Block) -> Histories {
        Histories { block, rows: Vec::new() }
    }

    /// Writes what changed after a batch.
    pub(crate) fn write(
        &mut self,
        file: &TableFile,
        words: &TableWords<'_, AtomicU64>,
        devices: &Rows<Device>,
        after: u64,
    ) -> Result<(), PublishError> {
        for (row, device) in devices.values().filter(|(_, device)| device.history_changed > after) {
            while self.rows.len() <= row {
                let next = self.rows.len();
                file.populate(&self.block, next, next + 1, 8 * HISTORY_WORDS)?;
                self.rows.push(Written { chip_id: device.entry.chip_id, newest: Default::default() });
            }
            write_device(&mut self.rows[row], &words.history[row], device);
        }
        Ok(())
    }
}

fn write_device(written: &mut Written, cells: &[AtomicU64; HISTORY_WORDS], device: &Device) {
    shm_layout::stores_of!(TableHistory);
    if written.chip_id != device.entry.chip_id {
        // The row was another device's.
        cells.as_chunks::<BUCKET_WORDS>().0.iter().for_each(|cell| stamped::clear(cell));
        *written = Written { chip_id: device.entry.chip_id, newest: Default::default() };
    }
    for ((resolution, newest), length) in written.newest.iter_mut().enumerate().zip(HISTORY_RESOLUTIONS) {
        for bucket in device.history.since(resolution, *newest - *newest % length) {
            let again = bucket.start / length == *newest / length;
            *newest = if again { *newest + 1 } else { bucket.start };
            if let Some(cell) = table::bucket(cells, resolution, bucket.start) {
                stamped::write(cell, &Bucket { start: *newest, ..bucket });
            }
        }
    }
}
