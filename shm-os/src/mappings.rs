//! Unlinked files that another process has mapped, and how to open them.

use std::fs;
use std::io;
use std::path::PathBuf;

/// The number of mappings examined, of a process that may have any number.
const MAX_MAPPINGS: usize = 256;

/// The paths by which the unlinked files can be opened that a process has mapped shared from their beginning.
///
/// Listing needs the rights of a debugger (the same user, or root); opening such a path needs CAP_SYS_ADMIN
/// or CAP_CHECKPOINT_RESTORE. A segment was created without a name (O_TMPFILE), so the kernel calls its
/// mapping "deleted" whether or not it has a name now.
pub fn nameless_mappings(pid: u32) -> io::Result<Vec<PathBuf>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let paths = maps.lines().filter_map(range_of_nameless).take(MAX_MAPPINGS);
    Ok(paths.map(|range| PathBuf::from(format!("/proc/{pid}/map_files/{range}"))).collect())
}

/// Parses the addresses of a line such as `7f10-7f20 rw-s 00000000 00:1a 12 /dev/shm/#12 (deleted)`.
fn range_of_nameless(line: &str) -> Option<String> {
    let mut fields = line.split_ascii_whitespace();
    let (range, mode, offset) = (fields.next()?, fields.next()?, fields.next()?);
    let shared = mode.ends_with('s') && u64::from_str_radix(offset, 16) == Ok(0);
    if !shared || !line.ends_with(" (deleted)") {
        return None;
    }
    // The names in map_files have no leading zeros, which the list may have.
    let (start, end) = range.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(format!("{:x}-{:x}", number(start)?, number(end)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shared_files_without_a_name_are_found() {
        let line = "00407000-00417000 rw-s 00000000 00:1a 12     /dev/shm/#12 (deleted)";
        assert_eq!(range_of_nameless(line).as_deref(), Some("407000-417000"));
        for other in [
            "",
            "00407000-00417000 rw-p 00000000 00:1a 12     /dev/shm/#12 (deleted)",
            "00407000-00417000 rw-s 00001000 00:1a 12     /dev/shm/#12 (deleted)",
            "00407000-00417000 rw-s 00000000 00:1a 12     /dev/shm/named",
            "nonsense rw-s 00000000 00:1a 12 x (deleted)",
        ] {
            assert_eq!(range_of_nameless(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_mapping_of_our_own_is_found() {
        let file = crate::scratch::file(4096);
        let _map = crate::WriteMap::new(&file, 4096).unwrap();
        assert!(!nameless_mappings(std::process::id()).unwrap().is_empty());
    }
}
