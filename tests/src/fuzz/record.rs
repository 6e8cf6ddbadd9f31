//! A record of any bytes: as a file, and as the content of a frame whose checksums are right.

use tt_shm_record::{Record, file_of};

/// The most events and entries that are read of one record.
const MOST: usize = 10_000;

/// See [`super::BODIES`].
pub(super) fn run(data: &[u8]) {
    for file in [data.to_vec(), file_of(data.to_vec())] {
        let Ok(record) = Record::from_bytes(file) else { continue };
        std::hint::black_box((record.span_ns(), record.totals(), record.damage()));
        record.events().take(MOST).for_each(drop);
        record.entries_from(1).take(MOST).for_each(drop);
        for process in record.processes() {
            for ns in [0, record.complete_until_ns(), u64::MAX] {
                let _ = std::hint::black_box(record.state_at(process.number(), ns));
            }
        }
    }
}
