//! The private index: from the key of a live allocation to what is known of it.
//!
//! Extendible hashing: a directory of pages, each a small open-addressed table. A page that is full is
//! split in two, so the work of one insertion is bounded by one page and by a copy of the directory (4
//! bytes per page), however many allocations are live. A table that doubles would stop an emit for
//! milliseconds.

use bytemuck::Zeroable;
use shm_layout::{Event, MAX_ROWS, NO_ROW, RowKind};

/// What identifies a live allocation. The memory class is a value, not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) device: u8,
    pub(crate) kind: RowKind,
    pub(crate) id: u64,
    /// Program of a circular buffer; 0 for everything else.
    pub(crate) program: u64,
}

/// What the process knows of a live allocation: enough to report its end without reading it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Zeroable)]
#[repr(C)]
pub(crate) struct Entry {
    pub(crate) id: u64,
    /// Program of a circular buffer or kernel; 0 for everything else.
    pub(crate) program: u64,
    /// Bytes; for a program its number in the list of programs.
    pub(crate) size: u64,
    row: [u8; 3],
    /// Place in a page where the search for it begins, so that moving it needs no hash.
    home: u8,
    /// [`RowKind`] code and device, 0 for an empty place.
    scope: u16,
    pub(crate) class: u8,
    pub(crate) flags: u8,
}

// Two entries to a cache line.
const _: () = assert!(size_of::<Entry>() == 32);
// Three bytes hold any row, and one number more for "none".
const _: () = assert!(MAX_ROWS <= 0xff_ffff && NO_ROW == u32::MAX);

impl Entry {
    /// The entry of something that `event` reports, under the key it was searched with.
    #[inline]
    pub(crate) fn new(kind: RowKind, program: u64, event: &Event) -> Entry {
        let Event { id, size, row, device, class, flags, .. } = *event;
        let [a, b, c, _] = row.to_le_bytes();
        Entry { id, program, size, row: [a, b, c], home: 0, scope: scope(kind, device), class, flags }
    }

    /// Its row in the live list, or [`NO_ROW`].
    #[inline]
    pub(crate) fn row(&self) -> u32 {
        let [a, b, c] = self.row;
        match u32::from_le_bytes([a, b, c, 0]) {
            0xff_ffff => NO_ROW,
            row => row,
        }
    }

    /// The device it is on.
    #[inline]
    pub(crate) fn device(&self) -> u8 {
        (self.scope >> 8) as u8
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.scope == 0
    }

    #[inline]
    fn is(&self, key: &Key) -> bool {
        self.id == key.id
            && self.scope == scope(key.kind, key.device)
            && (key.kind != RowKind::Cb || self.program == key.program)
    }

    #[inline]
    fn hash(&self) -> u64 {
        let is_cb = self.scope as u8 == RowKind::Cb as u8;
        hash(self.scope, self.id, if is_cb { self.program } else { 0 })
    }
}

/// Kind and device in one number, which is not 0.
#[inline]
fn scope(kind: RowKind, device: u8) -> u16 {
    u16::from(device) << 8 | kind as u16
}

/// One widening multiplication: ids are counters or addresses, which differ in few bits.
#[inline]
fn hash(scope: u16, id: u64, program: u64) -> u64 {
    let scope = program.rotate_left(16) ^ u64::from(scope);
    let product = u128::from(id ^ 0x9e37_79b9_7f4a_7c15) * u128::from(scope ^ 0xd1b5_4a32_d192_ed03);
    (product as u64) ^ (product >> 64) as u64
}

const PAGE_ENTRIES: usize = 128;
/// A page is split before probing gets long.
const PAGE_FULL: u32 = 96;
/// Beyond this depth the keys share so many bits of their hash that splitting does not help.
const MAX_DEPTH: u32 = 26;

struct Page {
    depth: u32,
    len: u32,
    entries: [Entry; PAGE_ENTRIES],
}

impl Page {
    fn new(depth: u32) -> Box<Page> {
        Box::new(Page { depth, len: 0, entries: [Entry::zeroed(); PAGE_ENTRIES] })
    }

    /// Where a key is, or the empty place where the search for it ended.
    #[inline]
    fn find(&self, hash: u64, key: &Key) -> Result<usize, usize> {
        let mut place = hash as usize % PAGE_ENTRIES;
        // Ends: a page is never full.
        loop {
            let entry = &self.entries[place];
            if entry.is_empty() {
                return Err(place);
            }
            if entry.is(key) {
                return Ok(place);
            }
            place = (place + 1) % PAGE_ENTRIES;
        }
    }

    fn push(&mut self, hash: u64, entry: Entry) {
        let mut place = hash as usize % PAGE_ENTRIES;
        while !self.entries[place].is_empty() {
            place = (place + 1) % PAGE_ENTRIES;
        }
        self.put(place, hash, entry);
    }

    #[inline]
    fn put(&mut self, place: usize, hash: u64, entry: Entry) {
        self.entries[place] = Entry { home: (hash as usize % PAGE_ENTRIES) as u8, ..entry };
        self.len += 1;
    }

    /// Empties a place and moves later entries of the run up, so that no search ends too early.
    fn remove(&mut self, mut hole: usize) -> Entry {
        let removed = self.entries[hole];
        let mut place = hole;
        loop {
            place = (place + 1) % PAGE_ENTRIES;
            let entry = &self.entries[place];
            if entry.is_empty() {
                break;
            }
            let distance = |from: usize| place.wrapping_sub(from) % PAGE_ENTRIES;
            if distance(usize::from(entry.home)) >= distance(hole) {
                self.entries[hole] = *entry;
                hole = place;
            }
        }
        self.entries[hole] = Entry::zeroed();
        self.len -= 1;
        removed
    }
}

/// Where a key that is not in the index would be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vacancy {
    hash: u64,
    page: u32,
    place: u32,
}

/// See the module.
pub(crate) struct Index {
    /// Page number by the first `depth` bits of the hash.
    directory: Vec<u32>,
    depth: u32,
    pages: Vec<Box<Page>>,
    /// For keys that splitting cannot part; empty unless ids are made to collide.
    overflow: Vec<Entry>,
}

impl Index {
    pub(crate) fn new() -> Index {
        Index {
            directory: vec![0, 1],
            depth: 1,
            pages: vec![Page::new(1), Page::new(1)],
            overflow: Vec::new(),
        }
    }

    #[inline]
    fn page_of(&self, hash: u64) -> usize {
        self.directory[(hash >> (64 - self.depth)) as usize] as usize
    }

    #[inline]
    fn hash(key: &Key) -> u64 {
        let program = if key.kind == RowKind::Cb { key.program } else { 0 };
        hash(scope(key.kind, key.device), key.id, program)
    }

    /// The entry of a key.
    #[inline]
    pub(crate) fn find(&self, key: &Key) -> Option<&Entry> {
        self.search(key).ok()
    }

    /// Looks a key up: its entry, or the place where it can be put.
    #[inline]
    pub(crate) fn search(&self, key: &Key) -> Result<&Entry, Vacancy> {
        let hash = Index::hash(key);
        let number = self.page_of(hash);
        let page = &self.pages[number];
        match page.find(hash, key) {
            Ok(place) => Ok(&page.entries[place]),
            Err(place) => {
                let overflown = self.overflow.iter().find(|entry| entry.is(key));
                overflown.ok_or(Vacancy { hash, page: number as u32, place: place as u32 })
            }
        }
    }

    /// Puts an entry where [`Index::search`] for its key found room; nothing was added meanwhile.
    #[inline]
    pub(crate) fn fill(&mut self, vacancy: Vacancy, entry: Entry) {
        let page = &mut self.pages[vacancy.page as usize];
        if page.len < PAGE_FULL {
            page.put(vacancy.place as usize, vacancy.hash, entry);
        } else {
            self.insert_with_split(vacancy.hash, entry);
        }
    }

    /// Adds an entry whose key is not in the index.
    pub(crate) fn insert(&mut self, entry: Entry) {
        let hash = entry.hash();
        let number = self.page_of(hash);
        let page = &mut self.pages[number];
        if page.len < PAGE_FULL {
            page.push(hash, entry);
        } else {
            self.insert_with_split(hash, entry);
        }
    }

    #[cold]
    fn insert_with_split(&mut self, hash: u64, entry: Entry) {
        loop {
            let number = self.page_of(hash);
            let page = &mut self.pages[number];
            if page.len < PAGE_FULL {
                return page.push(hash, entry);
            }
            if page.depth >= MAX_DEPTH {
                return self.overflow.push(entry);
            }
            self.split(number, hash);
        }
    }

    /// Takes the entry of a key out.
    #[inline]
    pub(crate) fn remove(&mut self, key: &Key) -> Option<Entry> {
        let hash = Index::hash(key);
        let number = self.page_of(hash);
        let page = &mut self.pages[number];
        match page.find(hash, key) {
            Ok(place) => Some(page.remove(place)),
            Err(_) => {
                let place = self.overflow.iter().position(|entry| entry.is(key))?;
                Some(self.overflow.swap_remove(place))
            }
        }
    }

    #[cold]
    fn split(&mut self, number: usize, hash: u64) {
        let depth = self.pages[number].depth + 1;
        if depth > self.depth {
            self.directory = self.directory.iter().flat_map(|page| [*page, *page]).collect();
            self.depth = depth;
        }
        let (mut low, mut high) = (Page::new(depth), Page::new(depth));
        for entry in self.pages[number].entries.iter().filter(|entry| !entry.is_empty()) {
            let hash = entry.hash();
            let page = if hash >> (64 - depth) & 1 == 0 { &mut low } else { &mut high };
            page.push(hash, *entry);
        }
        self.pages[number] = low;
        let new = self.pages.len() as u32;
        self.pages.push(high);
        // The directory entries of the old page are one run; the upper half of it is the new page's.
        let run = 1usize << (self.depth - depth + 1);
        let start = (hash >> (64 - self.depth)) as usize & !(run - 1);
        self.directory[start + run / 2..start + run].fill(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use shm_layout::EventKind;
    use std::collections::HashMap;

    fn entry(key: &Key, size: u64) -> Entry {
        let event = Event { id: key.id, size, row: 0, ..Event::new(EventKind::Alloc, key.device) };
        Entry::new(key.kind, key.program, &event)
    }

    #[test]
    fn half_a_million_keys_are_found_and_removed() {
        let mut index = Index::new();
        let key = |id| Key { device: (id % 3) as u8, kind: RowKind::Buffer, id: id * 4096, program: 0 };
        for id in 0..500_000 {
            index.insert(entry(&key(id), id));
        }
        assert!((0..500_000).all(|id| index.find(&key(id)).is_some_and(|entry| entry.size == id)));
        assert!((0..500_000).all(|id| index.remove(&key(id)).is_some_and(|entry| entry.size == id)));
        assert!((0..500_000).all(|id| index.find(&key(id)).is_none()));
        assert!(index.overflow.is_empty());
    }

    /// Ids are counters, addresses, pointers or pairs of numbers: none of them makes pages that splitting
    /// hardly parts, which would make the directory large.
    #[test]
    fn usual_ids_spread_evenly() {
        let patterns: [fn(u64) -> u64; 8] = [
            |i| i,
            |i| i << 6,
            |i| i << 12,
            |i| i << 21,
            |i| i << 32,
            |i| i << 47,
            |i| ((i % 128) << 56) | (i / 128),
            |i| u64::MAX - (i << 5),
        ];
        for (number, pattern) in patterns.into_iter().enumerate() {
            for device in [0, 1, 127] {
                let mut index = Index::new();
                for i in 0..50_000 {
                    let key = Key { device, kind: RowKind::Buffer, id: pattern(i), program: 0 };
                    index.insert(entry(&key, i));
                }
                assert!(index.depth <= 14, "pattern {number}, device {device}: depth {}", index.depth);
            }
        }
    }

    #[test]
    fn a_circular_buffer_is_another_one_in_another_program() {
        let mut index = Index::new();
        let key = |program| Key { device: 0, kind: RowKind::Cb, id: 7, program };
        index.insert(entry(&key(1), 10));
        assert!(index.find(&key(2)).is_none());
        index.insert(entry(&key(2), 20));
        assert_eq!(index.remove(&key(1)).unwrap().size, 10);
        assert_eq!(index.find(&key(2)).unwrap().size, 20);
    }

    proptest! {
        #[test]
        fn it_is_a_map(ops in prop::collection::vec((any::<bool>(), 0u64..600, 0u8..2), 0..3000)) {
            let mut index = Index::new();
            let mut model = HashMap::new();
            for (step, (insert, id, device)) in ops.into_iter().enumerate() {
                let key = Key { device, kind: RowKind::Buffer, id, program: 0 };
                if insert && !model.contains_key(&(device, id)) {
                    index.insert(entry(&key, step as u64));
                    model.insert((device, id), step as u64);
                } else if !insert {
                    prop_assert_eq!(index.remove(&key).map(|e| e.size), model.remove(&(device, id)));
                }
                prop_assert_eq!(index.find(&key).map(|e| e.size), model.get(&(device, id)).copied());
            }
        }
    }
}
