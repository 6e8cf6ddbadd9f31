//! When processes ended their steps: from the markers in their rings.

use std::collections::HashMap;

use shm_layout::protocol::observe::{Cursor, Step};
use tt_shm_reader::{Event, EventKind, MarkerPhase, Segment, monotonic_ns};

use crate::segments::shown_pid;

/// Most events of a ring that one read takes, so that a process at full speed cannot hold up the reader. Earlier ones
/// are skipped; the number of steps is then a lower bound.
const MOST: u64 = 1 << 16;

/// The last step that a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepEnd {
    /// Pid of the process in this namespace.
    pub pid: u32,
    /// Number of steps it ended since it was first read.
    pub ended: u64,
    /// How long ago the last of them ended, when its list was read.
    pub age_ns: u64,
}

/// The rings, by the names of their segments.
#[derive(Debug, Default)]
pub struct Steps {
    rings: HashMap<String, Ring>,
}

#[derive(Debug)]
struct Ring {
    cursor: Cursor,
    ended: u64,
    /// The last end, in the clock of the process.
    last: Option<u64>,
    /// Whether it was there at this read.
    is_there: bool,
}

impl Steps {
    /// Takes in the events of a process since the last read. Call it before reading its list, so that the list is not
    /// from an earlier step.
    pub fn follow(&mut self, segment: &Segment) {
        let ring = self.rings.entry(segment.file_name().to_owned()).or_insert_with(|| Ring {
            cursor: Cursor::after(0),
            ended: 0,
            last: None,
            is_there: true,
        });
        ring.is_there = true;
        let words = segment.words();
        // The oldest of a ring are about to be overwritten.
        let reach = MOST.min(words.ring.len() as u64 / 16 * 15);
        if let Some(start) = words.head().checked_sub(reach).filter(|start| *start > ring.cursor.position()) {
            ring.cursor = Cursor::after(start);
        }
        for _ in 0..=MOST {
            match ring.cursor.next(&words) {
                Step::Event(event) => ring.take(&event),
                Step::Idle => break,
                Step::Lapped { .. } => {}
            }
        }
    }

    /// The last step that a process ended, asked after its list was read: younger allocations belong to a step that has
    /// not ended. `None` if it has not marked any.
    pub fn end(&self, segment: &Segment) -> Option<StepEnd> {
        let ring = self.rings.get(segment.file_name())?;
        let at_ns = segment.calibration().to_monotonic_ns(ring.last?);
        let age_ns = monotonic_ns().saturating_sub(at_ns);
        Some(StepEnd { pid: shown_pid(segment), ended: ring.ended, age_ns })
    }

    /// Forgets processes that were not there at this read.
    pub fn finish(&mut self) {
        self.rings.retain(|_, ring| std::mem::take(&mut ring.is_there));
    }
}

impl Ring {
    /// An instant marker separates two steps just as the end of one does.
    fn take(&mut self, event: &Event) {
        let phase = MarkerPhase::from_code(event.class).filter(|_| event.kind() == Some(EventKind::Marker));
        if matches!(phase, Some(MarkerPhase::End | MarkerPhase::Instant)) {
            (self.ended, self.last) = (self.ended + 1, Some(event.time));
        }
    }
}
