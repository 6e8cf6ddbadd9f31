//! Interned names: stored once, then referred to by number.

use crate::segment::{GROWTH, Segment};
use shm_layout::control;
use shm_layout::{MAX_NAME_LEN, MAX_NAMES, Word};
use std::collections::HashMap;

const PAGE: usize = 4096;

pub(crate) struct Names {
    numbers: HashMap<Box<[u8]>, u16>,
    count: u64,
    /// The bytes of the name area that are used, and how many may be written.
    used: usize,
    populated: usize,
    index_populated: usize,
    /// Whether the last new name did not fit.
    refused: bool,
}

/// As much of a name as a segment holds. If that is UTF-8, no character is cut in two.
pub(crate) fn cut(name: &[u8]) -> &[u8] {
    let Some(head) = name.get(..MAX_NAME_LEN) else { return name };
    match std::str::from_utf8(head) {
        // It ends in the middle of a character.
        Err(error) if name.len() > head.len() && error.error_len().is_none() => &head[..error.valid_up_to()],
        _ => head,
    }
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

    /// Interns a name that was [`cut`]; `None` if there is no room for it.
    pub(crate) fn intern(&mut self, segment: &Segment, name: &[u8]) -> Option<u16> {
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

    fn add(&mut self, segment: &Segment, name: &[u8]) -> Option<u16> {
        let number = u16::try_from(self.count).ok().filter(|_| self.count < MAX_NAMES)?;
        self.make_room(segment, name.len())?;
        let words = segment.words();
        for (word, bytes) in words.name_bytes[self.used / 8..].iter().zip(name.chunks(8)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_between_characters() {
        let ascii = "a".repeat(MAX_NAME_LEN);
        assert_eq!(cut(b""), b"");
        assert_eq!(cut(ascii.as_bytes()), ascii.as_bytes());
        assert_eq!(cut(format!("{ascii}b").as_bytes()), ascii.as_bytes());
        for character in ["\u{e9}", "\u{20ac}", "\u{1f9ee}"] {
            for before in 1..=character.len() {
                // This many bytes of the character are within the limit.
                let kept = "a".repeat(MAX_NAME_LEN - before);
                let whole = before == character.len();
                let expected = if whole { format!("{kept}{character}") } else { kept.clone() };
                assert_eq!(cut(format!("{kept}{character}tail").as_bytes()), expected.as_bytes());
            }
        }
    }

    #[test]
    fn what_is_no_text_is_cut_at_the_limit() {
        assert_eq!(cut(&[0xff; MAX_NAME_LEN + 1]), [0xff; MAX_NAME_LEN]);
        // One that is short enough is not cut, whatever it ends with.
        let mut ends_early = vec![b'a'; MAX_NAME_LEN];
        ends_early[MAX_NAME_LEN - 1] = 0xe2;
        assert_eq!(cut(&ends_early), ends_early);
        let mut broken = [b'a'; MAX_NAME_LEN + 9];
        broken[3] = 0xff;
        assert_eq!(cut(&broken), &broken[..MAX_NAME_LEN]);
    }
}
