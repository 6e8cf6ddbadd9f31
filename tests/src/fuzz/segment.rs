//! Opening a segment, attaching to it, following it, and walking its live list.

use std::hint::black_box;
use std::sync::atomic::AtomicU64;

use tt_shm_reader::{Segment, kernel_sharing};

use super::patch::{Patched, Step, steps};
use crate::hostile::Forged;
use crate::space::Space;

thread_local! {
    /// Made once: a new file for each input would take most of the time.
    static SEGMENT: (Forged, Space) = {
        let space = Space::new();
        (Forged::honest(&space), space)
    };
}

/// See [`super::BODIES`].
pub(super) fn run(data: &[u8]) {
    SEGMENT.with(|(forged, _)| {
        let blocks = blocks(forged);
        let mut patched = Patched::default();
        // Opened once before the changes, too: what was checked then may be anything later.
        let early = Segment::open(&forged.path);
        for step in steps(data) {
            match step {
                Step::Store { block, word, value } => patched.store(&blocks, block, word, value),
                Step::Look => {
                    early.iter().for_each(look);
                    Segment::open(&forged.path).iter().for_each(look);
                }
            }
        }
    });
}

/// Its blocks, the header first.
pub(super) fn blocks(forged: &Forged) -> [&[AtomicU64]; 8] {
    let words = forged.words();
    [
        forged.header_words(),
        words.control,
        words.devices.as_flattened(),
        words.counters.as_flattened(),
        words.name_index,
        words.name_bytes,
        words.ring.as_flattened(),
        words.rows.as_flattened(),
    ]
}

/// Everything that can be asked of a segment.
fn look(segment: &Segment) {
    let words = segment.words();
    let most = words.rows.len() + 2 * words.ring.len();
    black_box((segment.process_name(), segment.anomalies(), segment.is_alive().ok()));
    for entry in segment.devices() {
        black_box((entry.dram_total(), entry.l1_total(), entry.eth_l1_total(), entry.pci_address()));
        black_box((entry.board_name(), entry.logical()));
    }
    if let Ok(snapshot) = segment.counters() {
        assert!(snapshot.counters.iter().all(|counters| counters.is_plausible()));
    }
    let list = segment.allocations();
    assert!(list.list.len() <= most);
    let rows = segment.live_list().rows;
    black_box((segment.programs_of(&rows), kernel_sharing(&rows)));
    let clock = segment.calibration();
    for event in segment.follow_from_start().take(most) {
        black_box((
            clock.to_monotonic_ns(event.time),
            clock.to_realtime_ns(event.time),
            segment.name(event.name),
        ));
    }
    assert!(segment.follow().take(most).count() <= most);
}
