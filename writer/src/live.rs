//! The live allocations, by key.
//!
//! The record of an allocation is its row in the segment, which only this process writes. It is read back
//! from there when the allocation ends: a private copy would be one more cache line per event. Allocations
//! for which the segment had no room have a cell in private memory.

use crate::index::{Home, Index};
use shm_layout::{Event, NO_ROW, RowKind, SLOT_WORDS, Word};
use std::sync::atomic::AtomicU64;

/// An event or a row, as words.
pub(crate) type Cell = [AtomicU64; SLOT_WORDS];

/// The words of a cell, as `shm_layout::Event` lays them out.
const CODES: usize = 2;
const ID: usize = 3;
const SIZE: usize = 4;
const AUX: usize = 6;
/// The bits of kind and device in the word of the codes.
const SCOPE: u64 = 0xff00_00ff;

/// The key of a live allocation. The memory class is a value, not part of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// Kind and device, at their bits in the codes.
    scope: u64,
    id: u64,
    /// The program of a circular buffer; 0 for everything else.
    program: u64,
}

impl Key {
    #[inline(always)]
    fn new(kind: RowKind, device: u8, id: u64, program: u64) -> Key {
        Key { scope: u64::from(device) << 24 | kind as u64, id, program }
    }

    #[inline(always)]
    pub(crate) fn buffer(device: u8, id: u64) -> Key {
        Key::new(RowKind::Buffer, device, id, 0)
    }

    pub(crate) fn kernel(device: u8, id: u64) -> Key {
        Key::new(RowKind::Kernel, device, id, 0)
    }

    pub(crate) fn cb(device: u8, program: u64, id: u64) -> Key {
        Key::new(RowKind::Cb, device, id, program)
    }

    pub(crate) fn device(&self) -> u8 {
        (self.scope >> 24) as u8
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    #[inline(always)]
    fn is_cb(&self) -> bool {
        self.scope as u8 == RowKind::Cb as u8
    }

    #[inline(always)]
    fn of(cell: &Cell) -> Key {
        let key = Key { scope: Word::load(&cell[CODES]) & SCOPE, id: Word::load(&cell[ID]), program: 0 };
        Key { program: if key.is_cb() { Word::load(&cell[AUX]) } else { 0 }, ..key }
    }

    /// The record in a cell, if it has this key.
    #[inline(always)]
    fn find(&self, cell: &Cell, row: u32) -> Option<LiveRecord> {
        let is_cb = self.is_cb();
        if Word::load(&cell[ID]) != self.id {
            return None;
        }
        // Each word is loaded once: the compiler does not merge atomic loads.
        let codes = Word::load(&cell[CODES]);
        let aux = Word::load(&cell[AUX]);
        if codes & SCOPE != self.scope || is_cb && aux != self.program {
            return None;
        }
        let [_, class, flags, device, ..] = codes.to_le_bytes();
        let names = (codes >> 32) as u32;
        Some(LiveRecord { device, class, flags, row, id: self.id, size: Word::load(&cell[SIZE]), aux, names })
    }

    #[inline(always)]
    fn hash(&self) -> u64 {
        hash(self.scope ^ self.program.rotate_left(8), self.id)
    }
}

/// A key whose search has begun: the part that does not look at what is live. Valid until something is added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sought {
    pub(crate) key: Key,
    home: Home,
}

/// Hashes by one widening multiplication: ids are counters or addresses, which differ in few bits.
#[inline(always)]
pub(crate) fn hash(scope: u64, id: u64) -> u64 {
    let product = u128::from(id ^ 0x9e37_79b9_7f4a_7c15) * u128::from(scope ^ 0xd1b5_4a32_d192_ed03);
    (product as u64) ^ (product >> 64) as u64
}

/// The record of a live allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveRecord {
    pub(crate) device: u8,
    pub(crate) class: u8,
    pub(crate) flags: u8,
    /// Its row, or [`NO_ROW`].
    pub(crate) row: u32,
    pub(crate) id: u64,
    pub(crate) size: u64,
    /// Requested bytes; program of a circular buffer or kernel.
    aux: u64,
    /// The name, and the site in the upper half.
    names: u32,
}

impl LiveRecord {
    /// The program of a circular buffer or kernel.
    pub(crate) fn program(&self) -> u64 {
        self.aux
    }

    /// Fills in an event about it: class, flags, row, id, size and `aux` are those of the allocation.
    #[inline(always)]
    pub(crate) fn describe(&self, event: Event) -> Event {
        let LiveRecord { class, flags, row, id, size, aux, .. } = *self;
        Event { class, flags, row, id, size, aux, ..event }
    }

    /// Its name and site.
    pub(crate) fn names(&self) -> [u16; 2] {
        [self.names as u16, (self.names >> 16) as u16]
    }
}

/// The index of everything live, and the cells of allocations without a row.
pub(crate) struct Live {
    index: Index,
    unlisted: Unlisted,
}

impl Live {
    /// An index with room for this many.
    pub(crate) fn new(capacity: usize) -> Live {
        Live { index: Index::new(capacity), unlisted: Unlisted::default() }
    }

    /// The record of a key. `rows` are those of the segment.
    pub(crate) fn find(&self, rows: &[Cell], key: &Key) -> Option<LiveRecord> {
        self.index.find(key.hash(), |item| self.unlisted.said(rows, key, item))
    }

    /// Begins the search for a key.
    #[inline(always)]
    pub(crate) fn seek(&self, key: Key) -> Sought {
        Sought { key, home: self.index.home_of(key.hash()) }
    }

    /// Adds an allocation with a row in the usual case: nothing live has the key, and its home line has room.
    /// Otherwise changes nothing, and [`Live::insert`] has to be called.
    #[inline(always)]
    pub(crate) fn insert_at_home(&mut self, rows: &[Cell], sought: &Sought, row: u32) -> bool {
        let Sought { key, home } = sought;
        // An item without a row may have the key.
        let is = |item: u32| rows.get(item as usize).is_none_or(|cell| key.find(cell, item).is_some());
        self.index.insert_at_home(*home, row, |item| is(item).then_some(()))
    }

    /// Adds an item under a key that nothing live has; otherwise returns the record that has it.
    pub(crate) fn insert(&mut self, rows: &[Cell], key: &Key, item: u32) -> Result<(), LiveRecord> {
        let unlisted = &self.unlisted;
        let hash_of = |item| Key::of(unlisted.cell(rows, item)).hash();
        self.index.insert(key.hash(), item, |item| unlisted.said(rows, key, item), hash_of)
    }

    /// Adds an allocation without a row, whose record is kept here. Returns its key and item.
    pub(crate) fn insert_unlisted(&mut self, rows: &[Cell], event: &Event) -> Result<(Key, u32), LiveRecord> {
        let item = rows.len() as u32 + self.unlisted.add(event);
        let key = Key::of(self.unlisted.cell(rows, item));
        match self.insert(rows, &key, item) {
            Ok(()) => Ok((key, item)),
            Err(live) => {
                self.forget_unlisted(rows, item);
                Err(live)
            }
        }
    }

    /// Removes the allocation with a key in the usual case: it has a row and is in its home line. The row is
    /// unchanged until the end of the allocation is written there. On `None`, [`Live::take`] has to decide.
    #[inline(always)]
    pub(crate) fn take_at_home(&mut self, rows: &[Cell], sought: &Sought) -> Option<LiveRecord> {
        let Sought { key, home } = sought;
        self.index.take_at_home(*home, |item| key.find(rows.get(item as usize)?, item))
    }

    /// Removes the allocation with a key.
    pub(crate) fn take(&mut self, rows: &[Cell], key: &Key) -> Option<LiveRecord> {
        let unlisted = &self.unlisted;
        let found = |item| unlisted.said(rows, key, item).map(|said| (item, said));
        let (item, said) = self.index.take(key.hash(), found)?;
        self.forget_unlisted(rows, item);
        Some(said)
    }

    /// Removes an item that was added under a key, and whose row was not written.
    pub(crate) fn forget(&mut self, rows: &[Cell], key: &Key, item: u32) {
        // By its number: the row still holds what was there before.
        self.index.take(key.hash(), |other| (other == item).then_some(()));
        self.forget_unlisted(rows, item);
    }

    /// Frees the cell of an item, if it is not a row.
    fn forget_unlisted(&mut self, rows: &[Cell], item: u32) {
        self.unlisted.free.extend(item.checked_sub(rows.len() as u32));
    }

    /// The number of allocations without a row.
    pub(crate) fn unlisted(&self) -> usize {
        self.unlisted.len()
    }
}

/// The number of cells in a chunk. Chunks never move, so growing costs no more than one.
const CHUNK: usize = 1024;

/// Cells in private memory.
#[derive(Default)]
struct Unlisted {
    chunks: Vec<Vec<Cell>>,
    used: u32,
    free: Vec<u32>,
}

impl Unlisted {
    /// The cell of an item: a row, or one of these.
    fn cell<'a>(&'a self, rows: &'a [Cell], item: u32) -> &'a Cell {
        rows.get(item as usize).unwrap_or_else(|| self.at(item as usize - rows.len()))
    }

    /// The record of an item, if it has this key.
    fn said(&self, rows: &[Cell], key: &Key, item: u32) -> Option<LiveRecord> {
        let row = if (item as usize) < rows.len() { item } else { NO_ROW };
        key.find(self.cell(rows, item), row)
    }

    fn at(&self, number: usize) -> &Cell {
        &self.chunks[number / CHUNK][number % CHUNK]
    }

    fn len(&self) -> usize {
        self.used as usize - self.free.len()
    }

    fn add(&mut self, event: &Event) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.used += 1;
            self.used - 1
        });
        if number as usize / CHUNK == self.chunks.len() {
            self.chunks.push((0..CHUNK).map(|_| Cell::default()).collect());
        }
        for (word, value) in self.at(number as usize).iter().zip(event.to_words()) {
            Word::store(word, value);
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm_layout::EventKind;

    fn rows(count: usize) -> Vec<Cell> {
        (0..count).map(|_| Cell::default()).collect()
    }

    fn add(live: &mut Live, rows: &[Cell], key: Key, event: Event) -> Result<(), LiveRecord> {
        match event.row {
            NO_ROW => _ = live.insert_unlisted(rows, &event)?,
            row if live.insert_at_home(rows, &live.seek(key), row) => {}
            row => live.insert(rows, &key, row)?,
        }
        if let Some(cell) = rows.get(event.row as usize) {
            cell.iter().zip(event.to_words()).for_each(|(word, value)| Word::store(word, value));
        }
        Ok(())
    }

    #[test]
    fn a_circular_buffer_is_another_one_in_another_program() {
        let (mut live, rows) = (Live::new(4), rows(4));
        let cb = Event { id: 7, ..Event::new(EventKind::CbAlloc, 0) };
        for (row, program) in [(0, 1), (1, 2)] {
            let event = Event { aux: program, size: 10 * program, row, ..cb };
            add(&mut live, &rows, Key::cb(0, program, 7), event).unwrap();
        }
        let said = live.take_at_home(&rows, &live.seek(Key::cb(0, 1, 7))).unwrap();
        assert_eq!((said.size, said.program(), said.row), (10, 1, 0));
        assert!(live.find(&rows, &Key::cb(0, 1, 7)).is_none());
        assert_eq!(live.find(&rows, &Key::cb(0, 2, 7)).unwrap().size, 20);
    }

    #[test]
    fn what_has_no_row_is_known_all_the_same() {
        let (mut live, rows) = (Live::new(2), rows(2));
        let key = |id| Key::buffer(3, id);
        let event = |id: u64| Event {
            id,
            size: id,
            row: if id < 2 { id as u32 } else { NO_ROW },
            ..Event::new(EventKind::Alloc, 3)
        };
        for id in 0..3000 {
            add(&mut live, &rows, key(id), event(id)).unwrap();
        }
        assert_eq!(live.unlisted(), 2998);
        assert_eq!(add(&mut live, &rows, key(2999), event(2999)).unwrap_err().size, 2999);
        assert_eq!(live.unlisted(), 2998);
        for id in 0..3000 {
            let said = live.take(&rows, &key(id)).unwrap();
            assert_eq!((said.size, said.device, said.row == NO_ROW), (id, 3, id >= 2));
        }
        assert_eq!(live.unlisted(), 0);
        assert!((0..3000).all(|id| live.find(&rows, &key(id)).is_none()));
    }
}
