//! The live allocations of a process.

use std::sync::Arc;

use shm_layout::control::ROWS_PUBLISHED;
use shm_layout::protocol::live::LiveList;
use shm_layout::{Row, RowKind};

use crate::names::Names;
use crate::segment::Segment;

/// How often the list is read again because more rows were published meanwhile. Honest processes publish a
/// thousand at a time.
const GROWTHS: usize = 3;

/// A live buffer, circular buffer or kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// What the process reported.
    pub row: Row,
    /// Its name, if it has one. Not trusted: escape control characters before displaying it.
    pub name: Option<Arc<str>>,
    /// Its call site, if the process records that. Not trusted, like the name.
    pub site: Option<Arc<str>>,
    /// How long it has been live.
    pub age_ns: u64,
}

/// Everything that was live in a process at one position of its ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocations {
    /// The allocations, oldest first.
    pub list: Vec<Allocation>,
    /// The position of the last event included.
    pub position: u64,
    /// Whether the list is exactly that of `position`. If not, the process was too fast to be read.
    pub exact: bool,
    /// The number of events missed in the last attempt to read it.
    pub missed: u64,
    /// The number of live allocations without a row, because the process had no room for more.
    pub unlisted: u64,
}

/// What is known of a list that was read into a buffer of the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The position of the last event included.
    pub position: u64,
    /// Whether the list is exactly that of `position`. If not, the process was too fast to be read.
    pub exact: bool,
    /// The number of events missed in the last attempt to read it.
    pub missed: u64,
    /// The number of live allocations without a row, because the process had no room for more.
    pub unlisted: u64,
}

impl Segment {
    /// The rows of the live list, including program rows: the source of [`Segment::allocations`] and
    /// [`Segment::programs`], for callers that need both at one position.
    ///
    /// Reads only what is backed by memory. If that is less than the process published, the list is not
    /// exact, and [`Segment::loss`] says why.
    pub fn live_list(&self) -> LiveList {
        self.live_list_in(Vec::new())
    }

    /// [`Segment::live_list`] into a buffer that was used before: what is in it is replaced.
    pub fn rows_into(&self, rows: &mut Vec<Row>) -> Listed {
        let LiveList { rows: read, position, exact, missed, unlisted } =
            self.live_list_in(std::mem::take(rows));
        *rows = read;
        Listed { position, exact, missed, unlisted }
    }

    fn live_list_in(&self, rows: Vec<Row>) -> LiveList {
        self.look_at_rows_again();
        let (mut list, mut whole) = self.read_backed(rows);
        for _ in 0..GROWTHS {
            if whole || self.is_lost() {
                break;
            }
            (list, whole) = self.read_backed(list.rows);
        }
        LiveList { exact: list.exact && whole, ..list }
    }

    /// The list, and whether it has every row that is published by now.
    fn read_backed(&self, rows: Vec<Row>) -> (LiveList, bool) {
        let words = self.words();
        let list = LiveList::read_into(&words, rows);
        // Checked afterwards: more may have been published meanwhile.
        let published = self.control(ROWS_PUBLISHED).min(self.header().rows.capacity);
        (list, published <= words.rows.len() as u64)
    }

    /// The live allocations, with names and ages. Takes bounded time, however fast the process is; the result
    /// tells whether it is exact.
    pub fn allocations(&self) -> Allocations {
        let mut list = Vec::new();
        let Listed { position, exact, missed, unlisted } = self.allocations_into(&mut list);
        Allocations { list, position, exact, missed, unlisted }
    }

    /// [`Segment::allocations`] into a buffer that was used before: what is in it is replaced.
    pub fn allocations_into(&self, list: &mut Vec<Allocation>) -> Listed {
        let LiveList { rows, position, exact, missed, unlisted } = self.live_list();
        let clock = self.calibration();
        let now = clock.second.monotonic_ns;
        let mut names = Names::new(self);
        list.clear();
        list.reserve(rows.len());
        for row in rows.iter().filter(|row| row.kind != RowKind::Program as u8) {
            list.push(Allocation {
                row: *row,
                name: names.get(row.name),
                site: names.get(row.site),
                age_ns: now.saturating_sub(clock.to_monotonic_ns(row.time)),
            });
        }
        Listed { position, exact, missed, unlisted }
    }
}
