//! Who holds a device, from the descriptors of processes. Links are read, never opened.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Entries of a procfs, descriptors of all processes, and of one process.
const MAX_PROCESSES: usize = 1 << 17;
const MAX_LINKS: usize = 1 << 20;

/// Where devices have their files. A process in a container has them at the same place.
const DEVICES: &str = "/dev/tenstorrent/";

/// Descriptors of devices.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    /// By device and process.
    pub(super) handles: BTreeMap<(u32, u32), u32>,
    /// Processes whose descriptors may not be listed.
    pub(super) denied: u32,
    pub(super) is_cut: bool,
}

impl Descriptors {
    /// Of all processes that can be seen.
    pub(super) fn of_all(proc: &Path) -> Descriptors {
        let mut found = Descriptors::default();
        let Ok(entries) = fs::read_dir(proc) else { return found };
        let mut links = MAX_LINKS;
        for (count, entry) in entries.flatten().enumerate() {
            if count == MAX_PROCESSES || links == 0 {
                found.is_cut = true;
                break;
            }
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            let add = |device| *found.handles.entry((device, pid)).or_default() += 1;
            match each_device(&entry.path(), &mut links, add) {
                Err(error) if error.kind() == ErrorKind::PermissionDenied => found.denied += 1,
                // It has ended.
                _ => {}
            }
        }
        found
    }
}

/// Whether a process has a descriptor of a device, as far as can be seen.
pub(super) fn holds(proc: &Path, pid: u32, number: u32) -> bool {
    let mut is_holder = false;
    let found =
        each_device(&proc.join(pid.to_string()), &mut { MAX_LINKS }, |device| is_holder |= device == number);
    found.is_ok() && is_holder
}

/// The device of each descriptor of a process that is of one; `links` is how many may be read.
fn each_device(process: &Path, links: &mut usize, mut add: impl FnMut(u32)) -> io::Result<()> {
    for entry in fs::read_dir(process.join("fd"))?.take(*links) {
        *links -= 1;
        // A descriptor may be closed meanwhile.
        let target = entry.and_then(|entry| fs::read_link(entry.path()));
        target.ok().and_then(|path| device_of(path.to_str()?)).into_iter().for_each(&mut add);
    }
    Ok(())
}

/// `/dev/tenstorrent/3` is device 3.
fn device_of(target: &str) -> Option<u32> {
    let digits = target.strip_prefix(DEVICES)?;
    let number: u32 = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_links() {
        assert_eq!(device_of("/dev/tenstorrent/31"), Some(31));
        for other in
            ["/dev/tenstorrent/", "/dev/tenstorrent/+1", "/dev/tenstorrent/1 (deleted)", "/dev/null", ""]
        {
            assert_eq!(device_of(other), None, "{other}");
        }
    }
}
