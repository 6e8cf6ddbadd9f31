//! What the driver told of a device in the last minutes, hour and day.

use shm_layout::protocol::stamped;
use shm_layout::table::{self, HISTORY_BUCKETS, TELEMETRY_RESOLUTIONS, TelemetryBucket};
use tt_shm_os::monotonic_ns;

use crate::table::Table;

impl Table {
    /// Telemetry of a row of the driver at a resolution (0 eight minutes, 1 an hour, 2 a day; see
    /// [`TELEMETRY_RESOLUTIONS`]), oldest first, up to now. A missing bucket is a time in which nothing was read.
    pub fn telemetry(&self, row: usize, resolution: usize) -> Vec<TelemetryBucket> {
        let words = self.words();
        let (Some(cells), Some(length)) = (words.telemetry.get(row), TELEMETRY_RESOLUTIONS.get(resolution))
        else {
            return Vec::new();
        };
        let newest = monotonic_ns() / length;
        let oldest = newest.saturating_sub(HISTORY_BUCKETS as u64 - 1);
        let at = |number: u64| {
            let start = number * length;
            let bucket: TelemetryBucket = stamped::read(table::telemetry_bucket(cells, resolution, start)?)?;
            // The cell may hold a bucket of an earlier round.
            (bucket.start / length == number).then_some(TelemetryBucket { start, ..bucket })
        };
        (oldest.max(1)..=newest).filter_map(at).collect()
    }
}
