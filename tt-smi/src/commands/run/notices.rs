//! What the tap says of itself, from inside the command's processes: lines `PID KIND TEXT` in a file without a name, which
//! they reach through this process. It ends with this process, however that ends, and nobody else can open it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, memfd_create};
use serde::Serialize;

use crate::escape::Foreign;

/// Tells the tap where to write.
pub(super) const NOTES_ENV: &str = "TT_SHM_TAP_NOTES";
/// More is not read: whoever has the name could write any amount.
const MOST_BYTES: usize = 256 << 10;

/// Something that the tap noticed in one process or several.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Notice {
    /// Whether something that these processes allocated was not seen.
    pub(super) unobserved: bool,
    /// What was noticed.
    pub(super) text: Foreign,
    /// Pids of these processes, as they call themselves.
    pub(super) pids: Vec<u32>,
}

/// The file.
pub(super) struct Notices(File);

impl Notices {
    pub(super) fn new() -> io::Result<Notices> {
        Ok(Notices(memfd_create("tt-smi-notices", MemfdFlags::CLOEXEC)?.into()))
    }

    /// The name under which descendants can open it.
    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// What was said until now.
    pub(super) fn read(&self) -> Vec<Notice> {
        let length = self.0.metadata().map_or(0, |file| file.len());
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(MOST_BYTES).min(MOST_BYTES)];
        match self.0.read_at(&mut bytes, 0) {
            Ok(read) => bytes.truncate(read),
            Err(_) => return Vec::new(),
        }
        parse(&String::from_utf8_lossy(&bytes))
    }
}

/// Lines that say the same are one notice. Those that are not the tap's are left out.
fn parse(text: &str) -> Vec<Notice> {
    let mut notices: BTreeMap<(bool, &str), Vec<u32>> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.splitn(3, ' ');
        let (Some(pid), Some(kind), Some(text)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let unobserved = match kind {
            "unobserved" => true,
            "note" => false,
            _ => continue,
        };
        let Ok(pid) = pid.parse() else { continue };
        let pids = notices.entry((unobserved, text)).or_default();
        if !pids.contains(&pid) {
            pids.push(pid);
        }
    }
    // What was not seen comes first.
    let notices = notices.into_iter().rev();
    notices.map(|((unobserved, text), pids)| Notice { unobserved, text: text.into(), pids }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_say_the_same_are_one_notice() {
        let text = "7 note a b\n8 unobserved no room\n9 note a b\n7 note a b\nx note a\n7 other a\n7 note\n\nrubbish";
        let notice = |unobserved, text: &str, pids: &[u32]| Notice {
            unobserved,
            text: text.into(),
            pids: pids.to_vec(),
        };
        assert_eq!(parse(text), [notice(true, "no room", &[8]), notice(false, "a b", &[7, 9])]);
    }

    #[test]
    fn whoever_has_the_name_can_append() {
        let notices = Notices::new().unwrap();
        assert_eq!(notices.read(), []);
        for line in ["1 note one\n", "2 note two\n"] {
            let mut file = std::fs::OpenOptions::new().append(true).open(notices.path()).unwrap();
            io::Write::write_all(&mut file, line.as_bytes()).unwrap();
        }
        assert_eq!(notices.read().len(), 2);
    }
}
