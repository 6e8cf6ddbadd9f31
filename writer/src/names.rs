//! Interned names: stored once, then referred to by number.

use crate::segment::{GROWTH, Segment};
use shm_layout::control;
use shm_layout::{MAX_NAME_LEN, MAX_NAMES, Word};
use std::collections::HashMap;

const PAGE: usize = 4096;

pub(crate) struct Names {
    numbers: HashMap<Box<str>, u16>,
    count: u64,
    /// The bytes of the name area that are used, and how many may be written.
    used: usize,
    populated: usize,
    index_populated: usize,
    /// Whether the last new name did not fit.
    refused: bool,
}

impl Names {
    pub(crate) fn new() -> Names {
        // Number 0 is no name; the first page of the index is populated when the segment is created.
        Names {
            numbers: HashMap::new(),
            count: 1,
            used: 0,
            populated: 0,
            index_populated: PAGE,
            refused: false,
        }
    }

    /// Interns a name; `None` if there is no room for it. A name that is too long is cut.
    pub(crate) fn intern(&mut self, segment: &Segment, name: &str) -> Option<u16> {
        let name = &name[..name.floor_char_boundary(MAX_NAME_LEN)];
        if name.is_empty() {
            return Some(0);
        }
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        let number = self.add(segment, name);
        self.refused = number.is_none();
        number
    }

    /// Whether the last new name fitted.
    pub(crate) fn fit(&self) -> bool {
        !self.refused
    }

    fn add(&mut self, segment: &Segment, name: &str) -> Option<u16> {
        let number = u16::try_from(self.count).ok().filter(|_| self.count < MAX_NAMES)?;
        self.make_room(segment, name.len())?;
        let words = segment.words();
        for (word, bytes) in words.name_bytes[self.used / 8..].iter().zip(name.as_bytes().chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            Word::store(word, u64::from_le_bytes(padded));
        }
        let place = (self.used as u64) << 32 | name.len() as u64;
        Word::store(&words.name_index[usize::from(number)], place);
        self.used += name.len().next_multiple_of(8);
        self.count += 1;
        // Release: pairs with the acquire fence of a reader that looks up a name.
        words.control[control::NAME_COUNT].store_release(self.count);
        self.numbers.insert(name.into(), number);
        Some(number)
    }

    fn make_room(&mut self, segment: &Segment, bytes: usize) -> Option<()> {
        let end = self.used + bytes.next_multiple_of(8);
        let header = segment.header();
        if end > header.name_bytes.capacity as usize * 8 {
            return None;
        }
        if end > self.populated {
            segment.populate(header.name_bytes.offset as usize + self.populated, GROWTH).ok()?;
            self.populated += GROWTH;
            shm_layout::point!(NamePopulated);
        }
        if (self.count as usize + 1) * 8 > self.index_populated {
            segment.populate(header.name_index.offset as usize + self.index_populated, PAGE).ok()?;
            self.index_populated += PAGE;
            shm_layout::point!(NamePopulated);
        }
        Some(())
    }
}
