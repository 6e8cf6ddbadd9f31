//! Interned names: text that another process wrote, found through numbers that it wrote.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use shm_layout::control::NAME_COUNT;
use shm_layout::{MAX_NAME_LEN, Word};

use crate::segment::Segment;

impl Segment {
    /// The name with this number, as events and rows carry it. `None` for 0, for a number that was not
    /// assigned, and for one whose place or length is impossible.
    ///
    /// Invalid UTF-8 is replaced. Not trusted: escape control characters before displaying it.
    pub fn name(&self, id: u16) -> Option<String> {
        let bytes = self.name_bytes_of(id)?;
        Some(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
    }

    /// [`Segment::name`] as the bytes that the process gave, which need not be UTF-8.
    pub fn name_bytes_of(&self, id: u16) -> Option<Vec<u8>> {
        if id == 0 {
            return None;
        }
        let words = self.words();
        let count = Word::load(words.control.get(NAME_COUNT)?);
        // Acquire: pairs with the release store by which the writer publishes a name.
        AtomicU64::fence_acquire();
        if u64::from(id) >= count {
            return None;
        }
        let index = Word::load(words.name_index.get(usize::from(id))?);
        let (offset, len) = ((index >> 32) as usize, index as u32 as usize);
        self.read_bytes(offset, len)
    }

    /// Copies `len` bytes of the names, unless they are too many or not all available.
    fn read_bytes(&self, offset: usize, len: usize) -> Option<Vec<u8>> {
        if len > MAX_NAME_LEN {
            return None;
        }
        let words = self.name_bytes(offset.checked_add(len)?.div_ceil(8))?.get(offset / 8..)?;
        let bytes = words.iter().flat_map(|word| Word::load(word).to_le_bytes());
        Some(bytes.skip(offset % 8).take(len).collect())
    }
}

/// A cache of names: thousands of allocations share a few. They share the text too: millions of rows with one
/// long name must not cost a reader gigabytes.
pub(crate) struct Names<'a> {
    segment: &'a Segment,
    /// By number; `None` if it was not looked up yet. Not a hash map: looking up a row's name would cost more than
    /// reading the row.
    known: Vec<Option<Option<Arc<str>>>>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(segment: &'a Segment) -> Names<'a> {
        Names { segment, known: Vec::new() }
    }

    /// See [`Segment::name`].
    #[inline]
    pub(crate) fn get(&mut self, id: u16) -> Option<Arc<str>> {
        if id == 0 {
            return None;
        }
        let place = usize::from(id);
        if place >= self.known.len() {
            self.known.resize(place + 1, None);
        }
        self.known[place].get_or_insert_with(|| self.segment.name(id).map(Arc::from)).clone()
    }
}
