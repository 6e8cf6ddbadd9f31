//! What a process holds, one by one.

use std::sync::Arc;

use rustix::fs::SeekFrom;
use shm_layout::control::ROWS_PUBLISHED;
use shm_layout::protocol::live::LiveList;
use shm_layout::{Row, RowKind, SLOT_WORDS};

use crate::names::Names;
use crate::segment::Segment;

/// Times that the list is read again because more rows were published meanwhile. Honest processes publish a
/// thousand at a time.
const GROWTHS: usize = 3;

/// A live buffer, circular buffer or kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// What the process reported of it.
    pub row: Row,
    /// Its name, if it has one. Not trusted: escape control characters before showing it.
    pub name: Option<Arc<str>>,
    /// Where it was made, if the process records that. Not trusted, as the name.
    pub site: Option<Arc<str>>,
    /// How long it has been live.
    pub age_ns: u64,
}

/// Everything that was live in a process at one position of its ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocations {
    /// Oldest first.
    pub list: Vec<Allocation>,
    /// Position of the last event that is in it.
    pub position: u64,
    /// Whether the list is exactly that of `position`. If not, the process was too fast to be read.
    pub exact: bool,
    /// Events missed in the last attempt to read it.
    pub missed: u64,
    /// Live allocations that have no row because the process had no room for more.
    pub unlisted: u64,
}

impl Segment {
    /// The rows of the live list, program rows included: what [`Segment::allocations`] and
    /// [`Segment::programs`] are made of, for those who want both at one position.
    ///
    /// Reads only what its process has filled: a process may publish more rows than it has memory for, and
    /// touching those would make them, at the reader's cost.
    pub fn live_list(&self) -> LiveList {
        let (mut list, mut whole) = self.read_filled();
        for _ in 0..GROWTHS {
            if whole {
                break;
            }
            (list, whole) = self.read_filled();
        }
        LiveList { exact: list.exact && whole, ..list }
    }

    /// The list, and whether it has every row that is published by now.
    fn read_filled(&self) -> (LiveList, bool) {
        let mut words = self.words();
        let filled = words.rows.len().min(self.filled_rows());
        let published = |rows: usize| (self.control(ROWS_PUBLISHED) as usize).min(rows);
        let all = words.rows.len();
        words.rows = &words.rows[..filled];
        let list = LiveList::read(&words);
        // Asked afterwards: more may have been filled and published meanwhile.
        (list, published(all) <= filled)
    }

    /// Rows before the first hole of the file.
    fn filled_rows(&self) -> usize {
        let start = self.header().rows.offset;
        match rustix::fs::seek(self.descriptor(), SeekFrom::Hole(start)) {
            Ok(hole) => (hole.saturating_sub(start) / (8 * SLOT_WORDS as u64)) as usize,
            // Behind the end: the file was cut short.
            Err(errno) if errno == rustix::io::Errno::NXIO => 0,
            // A file system that knows no holes.
            Err(_) => usize::MAX,
        }
    }

    /// What is live, with names and ages. Takes a bounded time, however fast the process is; the result
    /// says whether it is exact.
    pub fn allocations(&self) -> Allocations {
        let LiveList { rows, position, exact, missed, unlisted } = self.live_list();
        let clock = self.calibration();
        let now = clock.second.monotonic_ns;
        let mut names = Names::new(self);
        let mut list = Vec::with_capacity(rows.len());
        for row in rows.iter().filter(|row| row.kind != RowKind::Program as u8) {
            list.push(Allocation {
                row: *row,
                name: names.get(row.name),
                site: names.get(row.site),
                age_ns: now.saturating_sub(clock.to_monotonic_ns(row.time)),
            });
        }
        Allocations { list, position, exact, missed, unlisted }
    }
}
