//! The private index, from the hash of a key to the number of an item.
//!
//! Extendible hashing: a directory of pages. A full page is split in two, so the work of one insertion is
//! bounded by one page and a copy of the directory (4 bytes per page), however much is live. A table that
//! doubles would stall an emit for milliseconds. The pages lie one after another in room that is reserved for
//! all of them, so none moves, and each is found by one lookup.
//!
//! A page is made of cache lines, each with a byte of every item's hash beside the items: one comparison of
//! 16 bytes finds the few candidates of a line, without a branch that depends on the key. The index does not
//! store the keys but asks the caller, so twelve items fit into a line, and a hundred thousand into the
//! caches of a core.

use crate::tags::{ENTRIES, Tags};

const LINES: usize = 16;
/// A page with a full line and at least this many items is split. With fewer items, the next line takes what
/// a full one cannot: evenly filled pages stay as they are, and not every full line makes two pages.
const PAGE_FULL: usize = LINES * ENTRIES * 5 / 8;
/// Beyond this depth the keys share so many bits of their hash that splitting does not help.
const MAX_DEPTH: u32 = 26;

/// One cache line.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
struct Line {
    tags: Tags,
    items: [u32; ENTRIES],
}

const _: () = assert!(size_of::<Line>() == 64);

/// The byte of a hash that is kept beside the item; 0 marks an empty entry.
#[inline]
fn tag(hash: u64) -> u8 {
    (hash as u8).max(1)
}

/// The lines of a page.
type Page = [Line; LINES];

/// The line of a page where the search for a hash begins. Tag, line and page use different bits.
#[inline]
fn home(hash: u64) -> usize {
    (hash >> 8) as usize % LINES
}

fn next(line: usize) -> usize {
    (line + 1) % LINES
}

/// Puts an item into its home line, or into the next one that has room.
fn push(page: &mut [Line], hash: u64, item: u32) {
    let mut line = home(hash);
    // Terminates: a full page was split.
    while !page[line].put(hash, item) {
        let displaced = &mut page[line].tags.displaced;
        // The count exceeds a page only where hashes collide; one lookup too many is harmless.
        *displaced = displaced.saturating_add(1);
        line = next(line);
    }
}

fn items(page: &[Line]) -> impl Iterator<Item = u32> {
    page.iter().flat_map(|line| line.tags.used().map(|entry| line.items[entry]))
}

impl Line {
    /// The entry of the item that `is` accepts, and what it returned.
    #[inline(always)]
    fn find<R>(&self, hash: u64, is: impl Fn(u32) -> Option<R>) -> Option<(usize, R)> {
        for entry in self.tags.equal_to(tag(hash)) {
            if let Some(found) = is(self.items[entry]) {
                return Some((entry, found));
            }
        }
        None
    }

    /// Puts an item into an empty entry if there is one.
    #[inline(always)]
    fn put(&mut self, hash: u64, item: u32) -> bool {
        let empty = self.tags.equal_to(0).next();
        empty.inspect(|entry| self.set(*entry, hash, item)).is_some()
    }

    /// Puts an item into an empty entry if there is one, unless an item that belongs here was displaced.
    #[inline(always)]
    fn put_at_home(&mut self, hash: u64, item: u32) -> bool {
        let empty = self.tags.empty_at_home();
        empty.inspect(|entry| self.set(*entry, hash, item)).is_some()
    }

    #[inline(always)]
    fn set(&mut self, entry: usize, hash: u64, item: u32) {
        self.tags.set(entry, tag(hash));
        self.items[entry] = item;
    }
}

/// Where the search for a hash begins. Valid until an item is added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Home {
    line: usize,
    hash: u64,
}

/// See the [module documentation](self).
pub(crate) struct Index {
    /// The first line of each page, by the first bits of the hash.
    directory: Vec<u32>,
    /// The number of hash bits that the directory does not use.
    shift: u32,
    lines: Vec<Line>,
    /// For each page, how many bits of their hashes its items share.
    depths: Vec<u8>,
    /// Items whose hashes splitting cannot separate; empty unless ids are made to collide.
    overflow: Vec<(u64, u32)>,
}

/// In every call `is` returns something if an item with an equal tag is the one that is meant, and `hash_of`
/// returns the hash of any item.
///
/// Each verb exists twice. `x_at_home` handles the usual case, in which everything is in the home line, and
/// is inlined. `x` handles every case and is called only after `x_at_home` failed. They are not one method
/// because the two take different closures: on the hot path an item without a row is only a reason to fall
/// back, while `x` looks it up in private memory. Merging just the two `take`s, with the rest out of line,
/// costs 13 instructions more per allocation and free (285 instead of 272).
impl Index {
    /// An index with room for `capacity` items, so that growing moves none of them. Takes no memory before it
    /// is used.
    pub(crate) fn new(capacity: usize) -> Index {
        let mut lines = Vec::new();
        // Pages are at least a third full. If the reservation fails, growing takes longer now and then.
        let _ = lines.try_reserve_exact(capacity.div_ceil(ENTRIES / 3) + 2 * LINES);
        lines.resize(2 * LINES, Line::default());
        let directory = vec![0, LINES as u32];
        Index { directory, shift: u64::BITS - 1, lines, depths: vec![1; 2], overflow: Vec::new() }
    }

    /// The first line of the page of a hash.
    #[inline(always)]
    fn page_of(&self, hash: u64) -> usize {
        self.directory[(hash >> self.shift) as usize] as usize
    }

    fn page(&self, first: usize) -> &[Line] {
        &self.lines[first..first + LINES]
    }

    fn page_mut(&mut self, first: usize) -> &mut [Line] {
        &mut self.lines[first..first + LINES]
    }

    /// Begins the search for a hash, without a look at its home line.
    #[inline(always)]
    pub(crate) fn home_of(&self, hash: u64) -> Home {
        Home { line: self.page_of(hash) + home(hash), hash }
    }

    #[inline(always)]
    fn home_line(&mut self, hash: u64) -> &mut Line {
        let line = self.home_of(hash).line;
        &mut self.lines[line]
    }

    /// Finds the item of a hash, if it is in its home line.
    #[inline(always)]
    pub(crate) fn find_at_home<R>(&self, home: Home, is: impl Fn(u32) -> Option<R>) -> Option<R> {
        self.lines[home.line].find(home.hash, is).map(|(_, found)| found)
    }

    /// Adds an item if its home line has room and shows that it is not in the index yet; otherwise changes
    /// nothing.
    #[inline(always)]
    pub(crate) fn insert_at_home<R>(&mut self, home: Home, item: u32, is: impl Fn(u32) -> Option<R>) -> bool {
        let line = &mut self.lines[home.line];
        line.find(home.hash, is).is_none() && line.put_at_home(home.hash, item)
    }

    /// Removes the item of a hash, if it is in its home line.
    #[inline(always)]
    pub(crate) fn take_at_home<R>(&mut self, home: Home, is: impl Fn(u32) -> Option<R>) -> Option<R> {
        let line = &mut self.lines[home.line];
        let (entry, found) = line.find(home.hash, is)?;
        line.tags.set(entry, 0);
        Some(found)
    }

    /// Finds the item of a hash.
    pub(crate) fn find<R>(&self, hash: u64, is: impl Fn(u32) -> Option<R>) -> Option<R> {
        let found = self.find_at_home(self.home_of(hash), &is);
        found.or_else(|| self.find_displaced(self.page_of(hash), hash, is).map(|(_, found)| found))
    }

    /// Adds an item, unless its hash has one already, which is then the error.
    pub(crate) fn insert<R>(
        &mut self,
        hash: u64,
        item: u32,
        is: impl Fn(u32) -> Option<R>,
        hash_of: impl Fn(u32) -> u64,
    ) -> Result<(), R> {
        match self.find(hash, is) {
            Some(live) => Err(live),
            None => {
                self.add(hash, item, hash_of);
                Ok(())
            }
        }
    }

    /// Removes the item of a hash.
    pub(crate) fn take<R>(&mut self, hash: u64, is: impl Fn(u32) -> Option<R>) -> Option<R> {
        let found = self.take_at_home(self.home_of(hash), &is);
        found.or_else(|| self.take_displaced(self.page_of(hash), hash, is))
    }

    /// Searches beyond the home line of a hash; returns where the item is, and what `is` returned.
    fn find_displaced<R>(
        &self,
        first: usize,
        hash: u64,
        is: impl Fn(u32) -> Option<R>,
    ) -> Option<(Place, R)> {
        let (page, mut line) = (self.page(first), home(hash));
        // At most once around the page: overflowed items are counted as displaced too.
        for _ in 0..LINES {
            if page[line].tags.displaced == 0 {
                break;
            }
            line = next(line);
            if let Some((entry, found)) = page[line].find(hash, &is) {
                return Some((Place::Page { line, entry }, found));
            }
        }
        let overflown = self.overflow.iter().enumerate().filter(|(_, (other, _))| *other == hash);
        overflown.into_iter().find_map(|(number, (_, item))| Some((Place::Overflow(number), is(*item)?)))
    }

    fn take_displaced<R>(&mut self, first: usize, hash: u64, is: impl Fn(u32) -> Option<R>) -> Option<R> {
        let (place, found) = self.find_displaced(first, hash, is)?;
        let (last, entry) = match place {
            Place::Page { line, entry } => (line, entry),
            Place::Overflow(number) => {
                // The line keeps its count of displaced items: one lookup too many is harmless.
                self.overflow.swap_remove(number);
                return Some(found);
            }
        };
        let page = self.page_mut(first);
        page[last].tags.set(entry, 0);
        let mut line = home(hash);
        while line != last {
            page[line].tags.displaced -= 1;
            line = next(line);
        }
        Some(found)
    }

    fn add(&mut self, hash: u64, item: u32, hash_of: impl Fn(u32) -> u64) {
        loop {
            let first = self.page_of(hash);
            if self.home_line(hash).put(hash, item) {
                return;
            }
            if items(self.page(first)).count() < PAGE_FULL {
                return push(self.page_mut(first), hash, item);
            }
            if u32::from(self.depths[first / LINES]) >= MAX_DEPTH {
                // Counted as displaced: a search that ends at the home line would not get here.
                let displaced = &mut self.home_line(hash).tags.displaced;
                *displaced = displaced.saturating_add(1);
                return self.overflow.push((hash, item));
            }
            self.split(first, hash, &hash_of);
        }
    }

    fn split(&mut self, first: usize, hash: u64, hash_of: impl Fn(u32) -> u64) {
        let depth = self.depths[first / LINES] + 1;
        if u32::from(depth) > u64::BITS - self.shift {
            self.directory = self.directory.iter().flat_map(|page| [*page, *page]).collect();
            self.shift -= 1;
        }
        let (mut low, mut high) = (Page::default(), Page::default());
        for item in items(self.page(first)) {
            let hash = hash_of(item);
            let page = if hash >> (u64::BITS - u32::from(depth)) & 1 == 0 { &mut low } else { &mut high };
            push(page, hash, item);
        }
        let new = self.lines.len() as u32;
        self.page_mut(first).copy_from_slice(&low);
        self.lines.extend_from_slice(&high);
        self.depths[first / LINES] = depth;
        self.depths.push(depth);
        // The directory entries of the old page are contiguous; the upper half of them becomes the new
        // page's.
        let run = 1usize << (u64::BITS - self.shift - u32::from(depth) + 1);
        let start = (hash >> self.shift) as usize & !(run - 1);
        self.directory[start + run / 2..start + run].fill(new);
    }
}

/// The place of an item that is not in its home line.
enum Place {
    Page { line: usize, entry: usize },
    Overflow(usize),
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
