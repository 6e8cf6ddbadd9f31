//! What a device used in the last minute, hour and day.

use shm_layout::protocol::stamped;
use shm_layout::table::{self, Bucket, HISTORY_BUCKETS, HISTORY_RESOLUTIONS};
use tt_shm_os::monotonic_ns;

use crate::table::Table;

impl Table {
    /// A device's history at a resolution (0 a minute, 1 an hour, 2 a day; see [`HISTORY_RESOLUTIONS`]),
    /// oldest first, up to now. A missing bucket is a time that no aggregator saw: what was used then is
    /// unknown.
    pub fn history(&self, device: usize, resolution: usize) -> Vec<Bucket> {
        let words = self.words();
        let (Some(history), Some(length)) = (words.history.get(device), HISTORY_RESOLUTIONS.get(resolution))
        else {
            return Vec::new();
        };
        let newest = monotonic_ns() / length;
        let oldest = newest.saturating_sub(HISTORY_BUCKETS as u64 - 1);
        let at = |number: u64| {
            let start = number * length;
            let bucket: Bucket = stamped::read(table::bucket(history, resolution, start)?)?;
            // The cell may hold a bucket of an earlier round. Its stamp is its start, plus one for each time
            // it was written again.
            (bucket.start / length == number).then_some(Bucket { start, ..bucket })
        };
        // A stamp of 0 is an empty cell, so the first bucket after boot is indistinguishable from none.
        (oldest.max(1)..=newest).filter_map(at).collect()
    }
}
