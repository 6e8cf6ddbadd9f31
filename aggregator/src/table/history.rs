//! Writes the devices' history into the table: new buckets, and the open one again.

use std::sync::atomic::AtomicU64;

use shm_layout::Block;
use shm_layout::protocol::stamped;
use shm_layout::table::{
    self, BUCKET_WORDS, Bucket, HISTORY_RESOLUTIONS, HISTORY_WORDS, TableWords, bucket_flags,
};

use crate::error::PublishError;
use crate::model::device::Device;
use crate::model::rows::Rows;
use crate::table::file::TableFile;

/// How far each device's history is written.
#[derive(Debug)]
pub(crate) struct Histories {
    block: Block,
    rows: Vec<Written>,
}

#[derive(Debug)]
struct Written {
    /// The chip whose history it is; `None` if nothing was written yet.
    chip_id: Option<u64>,
    /// For each resolution, the stamp of the newest bucket written: its start, plus one for each time it was
    /// written again, so that a reader never takes words of two updates for one.
    newest: [u64; HISTORY_RESOLUTIONS.len()],
    /// The history's amendments that were written.
    amendments: u64,
}

impl Written {
    fn nothing_of(chip_id: Option<u64>) -> Written {
        Written { chip_id, newest: Default::default(), amendments: 0 }
    }
}

impl Histories {
    pub(crate) fn new(block: Block) -> Histories {
        Histories { block, rows: Vec::new() }
    }

    /// Reserves room for the history of the first `count` devices; returns how many have it.
    pub(crate) fn room(&mut self, file: &TableFile, count: usize, short: &mut Option<PublishError>) -> usize {
        while self.rows.len() < count {
            let next = self.rows.len();
            if let Err(error) = file.populate(&self.block, next, next + 1, 8 * HISTORY_WORDS) {
                *short = Some(error);
                break;
            }
            self.rows.push(Written::nothing_of(None));
        }
        self.rows.len().min(count)
    }

    /// The number of devices that have room.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Writes what changed after a generation, and everything of a device that is new here.
    pub(crate) fn write(&mut self, words: &TableWords<'_, AtomicU64>, devices: &Rows<Device>, after: u64) {
        for (row, device) in devices.values() {
            let Some(written) = self.rows.get_mut(row) else { break };
            if device.history_changed > after || written.chip_id.is_none() {
                write_device(written, &words.history[row], device);
            }
        }
    }
}

fn write_device(written: &mut Written, cells: &[AtomicU64; HISTORY_WORDS], device: &Device) {
    let chip_id = Some(device.entry.chip_id);
    if written.chip_id != chip_id {
        // The row belonged to another device, or to none.
        cells.as_chunks::<BUCKET_WORDS>().0.iter().for_each(|cell| stamped::clear(cell));
        *written = Written::nothing_of(chip_id);
    }
    if written.amendments != device.history.amendments() {
        written.amendments = device.history.amendments();
        amend(written, cells, device);
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

/// Rewrites complete buckets that became inexact after they were written. They get the last stamp that is
/// valid for them, because they do not change after that.
fn amend(written: &Written, cells: &[AtomicU64; HISTORY_WORDS], device: &Device) {
    for ((resolution, newest), length) in written.newest.iter().enumerate().zip(HISTORY_RESOLUTIONS) {
        let complete = |bucket: &Bucket| bucket.start / length < newest / length;
        let inexact = |bucket: &Bucket| bucket.flags & bucket_flags::INEXACT != 0;
        for bucket in device.history.buckets(resolution).into_iter().filter(|b| complete(b) && inexact(b)) {
            if let Some(cell) = table::bucket(cells, resolution, bucket.start) {
                stamped::write(cell, &Bucket { start: bucket.start + length - 1, ..bucket });
            }
        }
    }
}
