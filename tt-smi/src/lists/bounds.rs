//! Limits on how much of a list one process can fill. Names are ids in the segment and text in the list, so a process
//! can repeat a long one in every row.

use std::collections::HashMap;

use crate::escape::{Foreign, is_harmful};
use crate::units::plural;

/// Most rows of one process that are listed.
pub(crate) const MOST_ROWS: usize = 1 << 17;
/// Most bytes of names, as JSON writes them, that the rows of one process get in full: 160 for each of 100 000.
const MOST_NAME_BYTES: usize = 16 << 20;
/// Characters of a name that are kept beyond that.
const CUT_NAME: usize = 32;

/// The remaining allowance for the names of a process.
#[derive(Default)]
pub(crate) struct Names {
    bytes: usize,
    short: HashMap<Foreign, Foreign>,
    cut: u64,
}

impl Names {
    /// The name, or its beginning if the allowance is used up.
    pub(crate) fn fit(&mut self, name: Foreign) -> Foreign {
        let bytes = written(name.raw());
        if bytes <= CUT_NAME {
            return name;
        }
        if self.bytes + bytes <= MOST_NAME_BYTES {
            self.bytes += bytes;
            return name;
        }
        self.cut += 1;
        self.short.entry(name).or_insert_with_key(short).clone()
    }

    /// What was cut, in words.
    pub(crate) fn doubt(&self, pid: u32) -> Option<String> {
        let names = plural(self.cut, "name");
        (self.cut > 0)
            .then(|| format!("pid {pid}: {names} cut to {CUT_NAME} characters (over 16 MiB of names)"))
    }
}

/// Bytes of a text as JSON writes it.
fn written(text: &str) -> usize {
    // The usual case: a list has a hundred thousand of them.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.len();
    }
    text.chars().map(|c| if is_harmful(c) { 6 } else { c.len_utf8() }).sum()
}

fn short(name: &Foreign) -> Foreign {
    let mut short: String = name.raw().chars().take(CUT_NAME).collect();
    short.push('…');
    short.into()
}

/// Says that a process has more rows than are listed.
pub(crate) fn left_out(pid: u32, more: u64) -> Option<String> {
    (more > 0).then(|| format!("{more} more of pid {pid} left out (over {MOST_ROWS} rows of one process)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_honest_rows_are_whole_and_endless_ones_are_not() {
        let mut names = Names::default();
        let honest = Foreign::from("a".repeat(150));
        assert!((0..100_000).all(|_| names.fit(honest.clone()) == honest));
        assert_eq!(names.doubt(7), None);
        let hostile = Foreign::from("\u{1b}".repeat(1024));
        let shown: usize = (0..100_000).map(|_| names.fit(hostile.clone()).raw().chars().count()).sum();
        assert!(shown < 5 << 20, "{shown}");
        assert_eq!(names.fit("short".into()), "short".into(), "what is short anyway is never cut");
        assert!(names.doubt(7).unwrap().contains("names cut to 32 characters"));
    }
}
