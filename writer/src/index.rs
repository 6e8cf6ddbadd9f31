//! The private index: from the hash of a key to the number of an item, which the caller knows by.
//!
//! Extendible hashing: a directory of pages. A page that is full is split in two, so the work of one
//! insertion is bounded by one page and by a copy of the directory (4 bytes per page), however much is
//! live. A table that doubles would stop an emit for milliseconds.
//!
//! A page is made of cache lines, each with a byte of every item's hash beside the items: one comparison
//! of 16 bytes finds the few candidates of a line, without a branch that depends on the key. What an item
//! is, is not here: the caller is asked. So twelve items fit into a line, and a hundred thousand into the
//! caches of a core.

use crate::tags::{ENTRIES, Tags};

const LINES: usize = 16;
/// A page with a full line and at least so many items is split. Below that a line beside takes what a
/// full one cannot: pages that fill evenly stay as they are, and not every full line makes two pages.
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

#[derive(Default)]
struct Page {
    lines: [Line; LINES],
    depth: u32,
}

/// The byte of a hash that is kept beside the item; 0 says that there is none.
#[inline]
fn tag(hash: u64) -> u8 {
    (hash as u8).max(1)
}

/// The line of a page where the search for a hash begins. Tag, line and page use different bits.
#[inline]
fn home(hash: u64) -> usize {
    (hash >> 8) as usize % LINES
}

fn next(line: usize) -> usize {
    (line + 1) % LINES
}

impl Page {
    fn new(depth: u32) -> Box<Page> {
        Box::new(Page { depth, ..Page::default() })
    }

    /// Puts an item into its line, or into the next one that has room.
    fn push(&mut self, hash: u64, item: u32) {
        let mut line = home(hash);
        // Ends: a page that is full was split.
        while !self.lines[line].put(hash, item) {
            let displaced = &mut self.lines[line].tags.displaced;
            // More than a page holds only where hashes collide; then one look too many is no harm.
            *displaced = displaced.saturating_add(1);
            line = next(line);
        }
    }

    fn items(&self) -> impl Iterator<Item = u32> {
        self.lines.iter().flat_map(|line| line.tags.used().map(|entry| line.items[entry]))
    }
}

impl Line {
    /// The entry and the number of the item that `is` it.
    #[inline(always)]
    fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<(usize, u32)> {
        for entry in self.tags.equal_to(tag(hash)) {
            let item = self.items[entry];
            if is(item) {
                return Some((entry, item));
            }
        }
        None
    }

    /// Puts an item into an empty entry if there is one.
    #[inline(always)]
    fn put(&mut self, hash: u64, item: u32) -> bool {
        let Some(entry) = self.tags.equal_to(0).next() else { return false };
        self.tags.set(entry, tag(hash));
        self.items[entry] = item;
        true
    }
}

/// See the module.
pub(crate) struct Index {
    /// Page number by the first `depth` bits of the hash.
    directory: Vec<u32>,
    depth: u32,
    #[expect(clippy::vec_box, reason = "a page of a kilobyte must not move when the list of them grows")]
    pages: Vec<Box<Page>>,
    /// For hashes that splitting cannot part; empty unless ids are made to collide.
    overflow: Vec<(u64, u32)>,
}

/// In every call `is` tells whether an item with an equal tag is the one that is meant, and `hash_of`
/// the hash of any item. What ends in `_at_home` is for the usual case that everything is in the first
/// line looked at; it never calls a function, so that its caller's values stay in registers.
impl Index {
    pub(crate) fn new() -> Index {
        let pages = vec![Page::new(1), Page::new(1)];
        Index { directory: vec![0, 1], depth: 1, pages, overflow: Vec::new() }
    }

    #[inline(always)]
    fn page_of(&self, hash: u64) -> usize {
        self.directory[(hash >> (64 - self.depth)) as usize] as usize
    }

    #[inline(always)]
    fn home_line(&mut self, hash: u64) -> &mut Line {
        let number = self.page_of(hash);
        &mut self.pages[number].lines[home(hash)]
    }

    /// The item of a hash, if it is in its line.
    #[inline(always)]
    pub(crate) fn find_at_home(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        self.pages[self.page_of(hash)].lines[home(hash)].find(hash, is).map(|(_, item)| item)
    }

    /// Adds an item if its line has room and shows that it is not in the index yet; else nothing changes.
    #[inline(always)]
    pub(crate) fn insert_at_home(&mut self, hash: u64, item: u32, is: impl Fn(u32) -> bool) -> bool {
        let line = self.home_line(hash);
        line.find(hash, is).is_none() && line.tags.displaced == 0 && line.put(hash, item)
    }

    /// Takes the item of a hash out, if it is in its line.
    #[inline(always)]
    pub(crate) fn take_at_home(&mut self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let line = self.home_line(hash);
        let (entry, item) = line.find(hash, is)?;
        line.tags.set(entry, 0);
        Some(item)
    }

    /// The item of a hash.
    pub(crate) fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let item = self.find_at_home(hash, &is);
        item.or_else(|| self.find_displaced(self.page_of(hash), hash, is).map(|(_, item)| item))
    }

    /// Adds an item, unless one of its hash is there already: then that one is the error.
    pub(crate) fn insert(
        &mut self,
        hash: u64,
        item: u32,
        is: impl Fn(u32) -> bool,
        hash_of: impl Fn(u32) -> u64,
    ) -> Result<(), u32> {
        match self.find(hash, is) {
            Some(live) => Err(live),
            None => {
                self.add(hash, item, hash_of);
                Ok(())
            }
        }
    }

    /// Takes the item of a hash out.
    pub(crate) fn take(&mut self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let item = self.take_at_home(hash, &is);
        item.or_else(|| self.take_displaced(self.page_of(hash), hash, is))
    }

    /// Looks behind the home of a hash: line and entry, if it is in the page, and item.
    fn find_displaced(
        &self,
        number: usize,
        hash: u64,
        is: impl Fn(u32) -> bool,
    ) -> Option<(Option<(usize, usize)>, u32)> {
        let (page, mut line) = (&self.pages[number], home(hash));
        // Once round the page at most: what has overflown is counted, too.
        for _ in 0..LINES {
            if page.lines[line].tags.displaced == 0 {
                break;
            }
            line = next(line);
            if let Some((entry, item)) = page.lines[line].find(hash, &is) {
                return Some((Some((line, entry)), item));
            }
        }
        let overflown = self.overflow.iter().find(|(other, item)| *other == hash && is(*item));
        overflown.map(|(_, item)| (None, *item))
    }

    fn take_displaced(&mut self, number: usize, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let (place, item) = self.find_displaced(number, hash, is)?;
        let Some((last, entry)) = place else {
            // The line stays counted as displaced from: one look too many is no harm.
            self.overflow.retain(|(_, other)| *other != item);
            return Some(item);
        };
        let lines = &mut self.pages[number].lines;
        lines[last].tags.set(entry, 0);
        let mut line = home(hash);
        while line != last {
            lines[line].tags.displaced -= 1;
            line = next(line);
        }
        Some(item)
    }

    fn add(&mut self, hash: u64, item: u32, hash_of: impl Fn(u32) -> u64) {
        loop {
            let number = self.page_of(hash);
            let page = &mut self.pages[number];
            if page.lines[home(hash)].put(hash, item) {
                return;
            }
            if page.items().count() < PAGE_FULL {
                return page.push(hash, item);
            }
            if page.depth >= MAX_DEPTH {
                // Behind all lines of the page: a search that ends at its home would not come by.
                let displaced = &mut page.lines[home(hash)].tags.displaced;
                *displaced = displaced.saturating_add(1);
                return self.overflow.push((hash, item));
            }
            self.split(number, hash, &hash_of);
        }
    }

    fn split(&mut self, number: usize, hash: u64, hash_of: impl Fn(u32) -> u64) {
        let depth = self.pages[number].depth + 1;
        if depth > self.depth {
            self.directory = self.directory.iter().flat_map(|page| [*page, *page]).collect();
            self.depth = depth;
        }
        let (mut low, mut high) = (Page::new(depth), Page::new(depth));
        for item in self.pages[number].items() {
            let hash = hash_of(item);
            let page = if hash >> (64 - depth) & 1 == 0 { &mut low } else { &mut high };
            page.push(hash, item);
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
#[path = "index_tests.rs"]
mod tests;
