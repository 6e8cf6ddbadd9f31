//! Which files processes share memory through.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read;

use tt_shm_os::Procfs;

use super::TooMany;
use crate::file::FileId;

/// Lists that are read in a poll: one takes the kernel some 100 us, and anybody may put pids into a file.
const MAX_LISTS: usize = 64;
/// Bytes of a list: a Python with ttnn has 50 KB.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Shared mappings of processes, read once per poll.
#[derive(Debug, Default)]
pub(super) struct Mappings(HashMap<u32, Option<HashSet<FileId>>>);

impl Mappings {
    pub(super) fn begin(&mut self) {
        self.0.clear();
    }

    /// Whether a process maps a file; `None` if that may not be known.
    pub(super) fn has(&mut self, procfs: &Procfs, pid: u32, file: FileId) -> Result<Option<bool>, TooMany> {
        if self.0.len() >= MAX_LISTS && !self.0.contains_key(&pid) {
            return Err(TooMany);
        }
        let shared = self.0.entry(pid).or_insert_with(|| read(procfs, pid));
        Ok(shared.as_ref().map(|files| files.contains(&file)))
    }
}

fn read(procfs: &Procfs, pid: u32) -> Option<HashSet<FileId>> {
    let mut bytes = Vec::new();
    File::open(procfs.path(pid, "maps")).ok()?.take(MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
    let is_whole = bytes.len() as u64 <= MAX_BYTES;
    let lines = bytes.split(|byte| *byte == b'\n');
    is_whole.then(|| lines.filter_map(|line| shared_file(&String::from_utf8_lossy(line))).collect())
}

/// The file of a line such as `7f94-7f97 rw-s 00000000 00:1b 141937   /dev/shm/name`, if the mapping is shared. The name
/// comes last and has its line breaks escaped, so that no name pretends to be a line.
fn shared_file(line: &str) -> Option<FileId> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let is_shared = fields.next()?.ends_with('s');
    let (major, minor) = fields.nth(1)?.split_once(':')?;
    let number = |digits| u32::from_str_radix(digits, 16).ok();
    let file = FileId { major: number(major)?, minor: number(minor)?, inode: fields.next()?.parse().ok()? };
    is_shared.then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_shared_mappings() {
        let file = FileId { major: 0, minor: 0x1b, inode: 141_937 };
        let line =
            "7f9401250000-7f9401253000 rw-s 00000000 00:1b 141937          /dev/shm/x y\\012z (deleted)";
        assert_eq!(shared_file(line), Some(file));
        for other in [
            &line.replace("rw-s", "rw-p"),
            "",
            "7f-8f rw-s",
            "7f-8f rw-s 0 1b 7",
            "7f-8f rw-s 0 0:1b x",
            "a s 0 0:+ 1",
        ] {
            assert_eq!(shared_file(other), None, "{other}");
        }
    }
}
