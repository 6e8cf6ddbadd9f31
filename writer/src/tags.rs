//! One byte of each item's hash for a line of the index, so that all of them are compared at once.

use wide::u8x16;

/// The number of items in a line.
pub(crate) const ENTRIES: usize = 12;
const ALL: u32 = (1 << ENTRIES) - 1;

/// Sixteen bytes: a tag for each entry, 0 if it is empty, and a count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct Tags {
    tags: [u8; ENTRIES],
    /// The number of items that belong in this line or before it and lie after it, because it was full.
    pub(crate) displaced: u8,
    reserved: [u8; 3],
}

/// A set of entries, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entries(u32);

impl Iterator for Entries {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let entry = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(entry)
    }
}

impl Tags {
    /// The entries with this tag.
    #[inline(always)]
    pub(crate) fn equal_to(&self, tag: u8) -> Entries {
        Entries(equal_bytes(self, tag) & ALL)
    }

    /// The first empty entry, if nothing that belongs here was displaced.
    #[inline(always)]
    pub(crate) fn empty_at_home(&self) -> Option<usize> {
        // The count is the byte after the tags.
        let zeros = equal_bytes(self, 0);
        if zeros & 1 << ENTRIES == 0 { None } else { Entries(zeros & ALL).next() }
    }

    /// The entries that are not empty.
    pub(crate) fn used(&self) -> Entries {
        Entries(!equal_bytes(self, 0) & ALL)
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, entry: usize, tag: u8) {
        self.tags[entry] = tag;
    }
}

/// A bit for each byte that equals `byte`.
#[inline(always)]
fn equal_bytes(tags: &Tags, byte: u8) -> u32 {
    let tags: [u8; 16] = bytemuck::must_cast(*tags);
    u8x16::new(tags).simd_eq(u8x16::splat(byte)).to_bitmask()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_tags_are_found() {
        let mut tags = Tags { displaced: 7, ..Tags::default() };
        tags.set(0, 7);
        tags.set(5, 9);
        tags.set(11, 7);
        assert_eq!(tags.equal_to(7).collect::<Vec<_>>(), [0, 11]);
        assert_eq!(tags.used().collect::<Vec<_>>(), [0, 5, 11]);
        assert_eq!(tags.equal_to(0).count(), ENTRIES - 3);
        assert_eq!(tags.empty_at_home(), None);
        tags.displaced = 0;
        assert_eq!(tags.empty_at_home(), Some(1));
    }
}
