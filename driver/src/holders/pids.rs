//! The driver's own list of who holds a device: one pid per open descriptor.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::absence::{Absence, Reading};

/// Bytes of a list: some ten thousand descriptors.
const MAX_BYTES: usize = 128 * 1024;

/// A list of pids.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Pids {
    /// Descriptors by process.
    pub(super) handles: BTreeMap<u32, u32>,
    /// Descriptors of processes that have no pid here.
    pub(super) invisible: u32,
    pub(super) malformed: u32,
    pub(super) is_cut: bool,
}

pub(super) fn read(path: &Path) -> Reading<Pids> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| Absence::of(&error, path))?;
    Ok(Pids::parse(&bytes))
}

impl Pids {
    fn parse(bytes: &[u8]) -> Pids {
        let mut pids = Pids { is_cut: bytes.len() > MAX_BYTES, ..Pids::default() };
        let mut whole = &bytes[..bytes.len().min(MAX_BYTES)];
        if pids.is_cut {
            // The last line may be the beginning of a longer one.
            whole = &whole[..whole.iter().rposition(|byte| *byte == b'\n').unwrap_or(0)];
        }
        for line in whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match str::from_utf8(line).ok().and_then(|line| line.trim().parse().ok()) {
                Some(0) => pids.invisible += 1,
                Some(pid) if pid <= i32::MAX as u32 => *pids.handles.entry(pid).or_default() += 1,
                _ => pids.malformed += 1,
            }
        }
        pids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_counted_per_process() {
        let pids = Pids::parse(b"42\n7\n42\n0\n0\n");
        assert_eq!(pids.handles, BTreeMap::from([(7, 1), (42, 2)]));
        assert_eq!((pids.invisible, pids.malformed, pids.is_cut), (2, 0, false));
        assert_eq!(Pids::parse(b""), Pids::default());
    }

    #[test]
    fn other_lines_are_counted_and_long_lists_are_cut() {
        let pids = Pids::parse(b"x\n-1\n4294967295\n\xff\n99999999999\n5");
        assert_eq!((pids.handles.len(), pids.malformed), (1, 5));
        let long = Pids::parse(&b"1234567\n".repeat(MAX_BYTES));
        assert!(long.is_cut && long.malformed == 0 && long.handles.len() == 1);
    }
}
