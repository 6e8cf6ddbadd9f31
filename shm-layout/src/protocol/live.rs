//! The live list: every allocation that was live at one position.
//!
//! Rows are read one by one while the writer continues, and the events that happen meanwhile are kept.
//! Afterwards each event newer than what was read of its row is applied to it, in order. The list is then
//! that of the position of the last event, regardless of when each row was read.

use crate::control::{ROWS_PUBLISHED, UNLISTED};
use crate::event::Event;
use crate::protocol::observe::{Cursor, Step};
use crate::protocol::stamped;
use crate::row::{Row, RowEffect, RowKind};
use crate::segment::{SLOT_WORDS, SegmentWords};
use crate::words::Word;
use std::collections::HashMap;

/// The number of rows read between two drains of the ring.
const CHUNK: usize = 512;
/// The initial capacity for rows, 1 MiB. Not for all that are published: most may be empty.
const FIRST_ROWS: usize = 1 << 14;
/// The most events kept during one walk, 64 MiB: a hostile process that keeps pace must not fill the reader's
/// memory.
const MAX_EVENTS: usize = if cfg!(test) { 64 } else { 1 << 20 };
/// How often the walk starts over before it returns an inexact list.
const RESTARTS: usize = 4;

/// The live allocations of a process at a position of its ring.
#[derive(Clone, Debug)]
pub struct LiveList {
    /// Buffers, circular buffers and kernels, and one row per program, oldest first.
    pub rows: Vec<Row>,
    /// The position of the last event included.
    pub position: u64,
    /// Whether the list is exactly that of `position`. If not, the process was too fast to be read.
    pub exact: bool,
    /// The number of events missed in the last walk.
    pub missed: u64,
    /// The number of live allocations without a row, because the process had no room for more.
    pub unlisted: u64,
}

impl LiveList {
    /// Reads the live list. Takes bounded time, however fast the writer is.
    pub fn read<W: Word>(segment: &SegmentWords<'_, W>) -> LiveList {
        LiveList::read_into(segment, Vec::new())
    }

    /// Reads the live list into a vector that was used before; what it holds is dropped, its memory is kept.
    pub fn read_into<W: Word>(segment: &SegmentWords<'_, W>, rows: Vec<Row>) -> LiveList {
        let mut walk = Walk::new(segment, rows);
        for _ in 0..RESTARTS {
            if walk.is_exact() {
                break;
            }
            walk = Walk::new(segment, walk.read);
        }
        LiveList {
            position: walk.cursor.position(),
            exact: walk.is_exact(),
            missed: walk.missed,
            unlisted: segment.control.get(UNLISTED).map_or(0, Word::load),
            rows: walk.finish(),
        }
    }
}

struct Walk {
    /// The rows read, by row number. The number is where the row lies, whatever the row itself claims.
    read: Vec<Row>,
    /// The state of rows after later events; `None` if they cleared it.
    changed: HashMap<u32, Option<Row>>,
    events: Vec<Event>,
    cursor: Cursor,
    missed: u64,
    /// Whether a dispatch was counted on top of one that could not be read.
    lost_dispatch: bool,
}

impl Walk {
    fn new<W: Word>(segment: &SegmentWords<'_, W>, mut read: Vec<Row>) -> Walk {
        let cursor = Cursor::after(segment.head());
        let published = segment.control.get(ROWS_PUBLISHED).map_or(0, Word::load);
        // Acquire: pairs with the release store by which the writer publishes more rows.
        W::fence_acquire();
        let rows = &segment.rows[..segment.rows.len().min(published as usize)];
        read.clear();
        read.reserve(rows.len().min(FIRST_ROWS));
        let mut walk = Walk {
            read,
            changed: HashMap::new(),
            events: Vec::new(),
            cursor,
            missed: 0,
            lost_dispatch: false,
        };
        for (chunk, cells) in rows.chunks(CHUNK).enumerate() {
            walk.drain(segment);
            if walk.missed > 0 {
                break;
            }
            walk.read_rows(chunk * CHUNK, cells);
        }
        if walk.missed == 0 {
            walk.drain(segment);
        }
        walk.apply_events();
        walk
    }

    /// Reads the rows from `first` on.
    fn read_rows<W: Word>(&mut self, first: usize, cells: &[[W; SLOT_WORDS]]) {
        for (number, cell) in (first..).zip(cells) {
            if let Some(row) = stamped::read::<Row, W>(cell) {
                self.read.push(Row { row: number as u32, ..row });
            }
        }
    }

    fn drain<W: Word>(&mut self, segment: &SegmentWords<'_, W>) {
        // Acquire: pairs with the release stores of 0 in stamped. A row found empty, or being written, was
        // changed by an event; from here on the slot of that event is visible.
        W::fence_acquire();
        // Bounded: a writer at full speed must not keep its observer here.
        for _ in 0..=segment.ring.len() {
            match self.cursor.next(segment) {
                Step::Event(_) if self.events.len() == MAX_EVENTS => {
                    self.missed += 1;
                    return;
                }
                Step::Event(event) => self.events.push(event),
                Step::Idle => return,
                Step::Lapped { missed } => {
                    self.missed += missed;
                    return;
                }
            }
        }
    }

    /// Whether every event was seen, including that of the newest row: its slot was written before the row.
    fn is_exact(&self) -> bool {
        let newest = self.read.iter().map(|row| row.stamp).max().unwrap_or(0);
        self.missed == 0 && !self.lost_dispatch && newest <= self.cursor.position()
    }

    fn apply_events(&mut self) {
        let events = std::mem::take(&mut self.events);
        let dispatches =
            events.iter().filter(|event| RowEffect::of(event) == RowEffect::Set(RowKind::Program));
        let last_dispatch: HashMap<u32, u64> = dispatches.map(|event| (event.row, event.stamp)).collect();
        for event in &events {
            self.lost_dispatch |= self.follows_lost_dispatch(event, &last_dispatch);
            self.apply(event);
        }
    }

    /// Whether there was a dispatch before this one that is not known: its row, the other of the pair, was
    /// read while a later dispatch overwrote it. Without a later one the row is empty because this is the
    /// first dispatch, so nothing that a killed process leaves is in doubt.
    fn follows_lost_dispatch(&self, event: &Event, last_dispatch: &HashMap<u32, u64>) -> bool {
        RowEffect::of(event) == RowEffect::Set(RowKind::Program)
            && self.known(event.row).is_none_or(|row| row.stamp < event.stamp)
            && self.known(event.partner()).is_none()
            && last_dispatch.get(&event.partner()).is_some_and(|later| *later > event.stamp)
    }

    fn finish(self) -> Vec<Row> {
        let Walk { read: mut rows, changed, .. } = self;
        if !changed.is_empty() {
            rows.retain(|row| !changed.contains_key(&row.row));
            rows.extend(changed.into_values().flatten());
        }
        keep_newest_of_each_program(&mut rows);
        rows.sort_unstable_by_key(|row| row.stamp);
        rows
    }

    fn apply(&mut self, event: &Event) {
        let row = match RowEffect::of(event) {
            RowEffect::None => return,
            RowEffect::Rename => return self.rename(event),
            RowEffect::Set(RowKind::Program) => {
                Some(Row::after_dispatch(self.program_before(event).as_ref(), event))
            }
            RowEffect::Set(_) => Some(Row::from_event(event)),
            RowEffect::Clear => None,
            RowEffect::ClearPair => {
                self.replace(event.partner(), event.stamp, None);
                None
            }
        };
        self.replace(event.row, event.stamp, row);
    }

    /// Gives the row with the event's number the name that the event carries, unless the row belongs to a
    /// later allocation.
    ///
    /// A name in a row has no stamp, and the list is exact nonetheless. The slot of its event is written
    /// before the word in the row, and the ring is drained after an acquire fence after the row was read: so
    /// a row with the new name is never read without its event being drained too, and the event's position is
    /// included in the list's. A row read earlier with the old name gets the new one here. Events are applied
    /// in order, so the last name wins; it does not matter whether a row already had the name.
    fn rename(&mut self, event: &Event) {
        if let Some(mut row) = self.known(event.row).filter(|row| row.stamp < event.stamp) {
            row.rename(event);
            self.changed.insert(event.row, Some(row));
        }
    }

    /// What is known of the program before a dispatch: the newer row of its pair.
    fn program_before(&self, event: &Event) -> Option<Row> {
        [event.row, event.partner()]
            .into_iter()
            .filter_map(|number| self.known(number))
            .filter(|row| row.kind() == Some(RowKind::Program))
            .filter(|row| row.id == event.id && row.device == event.device)
            .max_by_key(|row| row.stamp)
    }

    fn known(&self, number: u32) -> Option<Row> {
        self.changed.get(&number).copied().unwrap_or_else(|| {
            let found = self.read.binary_search_by_key(&number, |row| row.row).ok()?;
            Some(self.read[found])
        })
    }

    /// Sets a row to its state after an event, unless what was read of it is newer.
    fn replace(&mut self, number: u32, stamp: u64, row: Option<Row>) {
        if self.known(number).is_none_or(|known| known.stamp < stamp) {
            self.changed.insert(number, row);
        }
    }
}

/// Keeps one row per program: both of a pair are valid most of the time.
fn keep_newest_of_each_program(rows: &mut Vec<Row>) {
    let mut newest: HashMap<(u8, u64), Row> = HashMap::new();
    rows.retain(|row| {
        let is_program = row.kind == RowKind::Program as u8;
        if is_program {
            let known = newest.entry((row.device, row.id)).or_insert(*row);
            if row.stamp > known.stamp {
                *known = *row;
            }
        }
        !is_program
    });
    rows.extend(newest.into_values());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventKind;
    use std::sync::atomic::AtomicU64;

    fn zero<const N: usize>() -> [AtomicU64; N] {
        std::array::from_fn(|_| AtomicU64::new(0))
    }

    fn markers(count: u64) -> Vec<Event> {
        (1..=count).map(|stamp| Event { stamp, ..Event::new(EventKind::Marker, 0) }).collect()
    }

    /// The list of these rows, beside a ring with events that the head does not have yet.
    fn read(events: &[Event], rows: &[Row]) -> LiveList {
        let control: [AtomicU64; crate::control::CONTROL_WORDS] = zero();
        Word::store(&control[ROWS_PUBLISHED], rows.len() as u64);
        let ring: Vec<[AtomicU64; SLOT_WORDS]> = (0..128).map(|_| zero()).collect();
        events.iter().for_each(|event| stamped::write(&ring[event.stamp as usize], event));
        let cells: Vec<[AtomicU64; SLOT_WORDS]> = rows.iter().map(|_| zero()).collect();
        cells.iter().zip(rows).for_each(|(cell, row)| stamped::write(cell, row));
        let (devices, counters, name_index, name_bytes) = (&[], &[], &[], &[]);
        let (ring, rows) = (&ring, &cells);
        let control = &control;
        LiveList::read(&SegmentWords { control, devices, counters, name_index, name_bytes, ring, rows })
    }

    /// What a process that keeps pace can make its observer keep is bounded, and what is given up is said.
    #[test]
    fn more_events_than_are_kept_make_it_inexact() {
        let (all, too_many) = (read(&markers(64), &[]), read(&markers(65), &[]));
        assert_eq!((all.exact, all.missed, all.position), (true, 0, 64));
        assert_eq!((too_many.exact, too_many.missed), (false, 1));
    }

    #[test]
    fn a_row_is_where_it_lies_whatever_it_says() {
        let row = Row { stamp: 1, row: 9, kind: RowKind::Buffer as u8, ..bytemuck::Zeroable::zeroed() };
        let nothing = Row { stamp: 0, ..row };
        let list = read(&markers(1), &[nothing, nothing, row]);
        assert_eq!(list.rows.iter().map(|row| row.row).collect::<Vec<_>>(), [2]);
    }

    /// The row of a dispatch that was read is known, also if the other one of the pair is being overwritten.
    #[test]
    fn a_dispatch_that_was_read_is_not_lost() {
        let dispatch = |stamp: u64, row: u32, partner: u64| Event {
            stamp,
            row,
            id: 7,
            address: 1 | partner << 32,
            ..Event::new(EventKind::KernelDispatch, 0)
        };
        let events = [dispatch(1, 0, 1), dispatch(2, 1, 0)];
        assert_eq!(events.map(|event| u64::from(event.partner())), [1, 0]);
        let first = Row::after_dispatch(None, &events[0]);
        let list = read(&events, &[first, Row { stamp: 0, ..first }]);
        assert!(list.exact);
        assert_eq!(list.rows.iter().map(|row| row.stamp).collect::<Vec<_>>(), [2]);
    }
}
