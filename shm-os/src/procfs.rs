//! The files of a process in procfs: the one place that knows what stands in them.

use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Of a stat or status file, which have a few kilobytes.
const MAX_BYTES: u64 = 64 * 1024;
/// Of a file that grows with the machine.
const MAX_LIST_BYTES: u64 = 256 * 1024;

/// A procfs.
#[derive(Clone, Debug)]
pub struct Procfs {
    root: PathBuf,
}

impl Default for Procfs {
    fn default() -> Procfs {
        Procfs::at("/proc")
    }
}

impl Procfs {
    /// One that is mounted elsewhere.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Procfs {
        Procfs { root: root.into() }
    }

    /// The path of a file of a process, which is a pid or `self`.
    pub fn path(&self, process: impl Display, file: &str) -> PathBuf {
        self.root.join(process.to_string()).join(file)
    }

    /// The first bytes of a file of a process; nothing if there is no such process, or none to be seen from here.
    pub fn start_of(&self, process: impl Display, file: &str, most: u64) -> Vec<u8> {
        read_start(&self.path(process, file), most)
    }

    /// What `stat` says of a process; `None` if there is no such process, or none to be seen from here.
    pub fn stat(&self, process: impl Display) -> Option<Stat> {
        Stat::parse(&String::from_utf8_lossy(&self.start_of(process, "stat", MAX_BYTES)))
    }

    /// What `status` says of a process; `None` if there is no such process, or none to be seen from here.
    pub fn status(&self, process: impl Display) -> Option<Status> {
        let text = self.start_of(process, "status", MAX_BYTES);
        (!text.is_empty()).then(|| Status::new(String::from_utf8_lossy(&text)))
    }

    /// When the machine was started, in seconds since 1970: `btime` of `stat`, which is not among the first lines. It
    /// follows when the clock is set.
    #[must_use]
    pub fn boot_time(&self) -> Option<u64> {
        let text = self.start_of(".", "stat", MAX_LIST_BYTES);
        let text = String::from_utf8_lossy(&text);
        text.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok())
    }

    /// Whether a procfs is mounted with the option `hidepid`, with which other users' processes have no folder or no
    /// content.
    #[must_use]
    pub fn is_hiding(&self) -> bool {
        let mounts = self.start_of("self", "mountinfo", MAX_LIST_BYTES);
        String::from_utf8_lossy(&mounts).lines().any(|line| {
            // `36 35 98:0 / /proc rw - proc proc rw,hidepid=2`: the mount point is field 5, the options are the last.
            let is_proc = line.split(' ').nth(4) == Some("/proc");
            let options = line.rsplit(' ').next().unwrap_or_default().split(',');
            let mut levels = options.filter_map(|option| option.strip_prefix("hidepid="));
            is_proc && levels.any(|level| !["0", "off"].contains(&level))
        })
    }
}

/// The first bytes of a file, or nothing: a command line may have megabytes.
fn read_start(path: &Path, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        // A process that ends meanwhile leaves what was read before, and the next look finds it gone.
        let _ = file.take(most).read_to_end(&mut bytes);
    }
    bytes
}

/// A line of `/proc/PID/stat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Name of the program: changes when another is executed.
    pub comm: String,
    /// `R`, `S`, `T` and so on.
    pub state: char,
    /// Its parent; 0 if that is outside of this PID namespace.
    pub parent: u32,
    /// When it was started, in clock ticks since boot: a reused pid has another.
    pub start_ticks: u64,
    /// Time on a processor, of all its threads, in clock ticks.
    pub cpu_ticks: u64,
}

impl Stat {
    /// The name in field 2 may hold blanks and parentheses, and no field after it can, so the last closing
    /// parenthesis ends it.
    #[must_use]
    pub fn parse(line: &str) -> Option<Stat> {
        let (head, rest) = line.rsplit_once(')')?;
        let (_, comm) = head.split_once('(')?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        // Fields 14 and 15, in user and in kernel mode; the parent is field 4.
        let user: u64 = fields.nth(14 - 5)?.parse().ok()?;
        let cpu_ticks = user.saturating_add(fields.next()?.parse().ok()?);
        // Field 22.
        let start_ticks = fields.nth(22 - 16)?.parse().ok()?;
        Some(Stat { comm: comm.to_owned(), state, parent, start_ticks, cpu_ticks })
    }
}

/// The lines of `/proc/PID/status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status(String);

impl Status {
    /// Of this text.
    pub fn new(text: impl Into<String>) -> Status {
        Status(text.into())
    }

    /// What stands behind a name and its colon. The only line before these that others choose the text of, the name
    /// of the program, has its line breaks escaped.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }

    /// The real and the saved user id: the first and the third number of a line such as `Uid: 1000 0 0 0`.
    #[must_use]
    pub fn owners(&self) -> Option<[u32; 2]> {
        let mut ids = self.field("Uid")?.split_ascii_whitespace();
        let real = ids.next()?.parse().ok()?;
        Some([real, ids.nth(1)?.parse().ok()?])
    }

    /// What the process calls itself: the last number of a line such as `NSpid: 4711 1`.
    #[must_use]
    pub fn innermost_pid(&self) -> Option<u32> {
        self.field("NSpid")?.split_ascii_whitespace().next_back()?.parse().ok()
    }

    /// Whether the process is in another PID namespace than this procfs, where it has another pid: then `NSpid` has
    /// more than one number.
    #[must_use]
    pub fn is_in_inner_namespace(&self) -> bool {
        self.field("NSpid").is_some_and(|pids| pids.split_ascii_whitespace().count() > 1)
    }

    /// The signals that are ignored: signal 1 is the lowest bit.
    #[must_use]
    pub fn ignored_signals(&self) -> Option<u64> {
        u64::from_str_radix(self.field("SigIgn")?, 16).ok()
    }

    /// A line such as `VmHWM: 1024 kB`, in bytes.
    #[must_use]
    pub fn bytes(&self, name: &str) -> Option<u64> {
        let kilobytes: u64 = self.field(name)?.strip_suffix(" kB")?.parse().ok()?;
        kilobytes.checked_mul(1024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_pretend_to_be_other_fields() {
        let rest = " T 7 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 99 100";
        for name in ["cat", "a b", "a) R 1 (b", ")", "((("] {
            let stat = Stat::parse(&format!("42 ({name}){rest}\n")).unwrap();
            assert_eq!((stat.comm.as_str(), stat.state, stat.parent), (name, 'T', 7));
            assert_eq!((stat.cpu_ticks, stat.start_ticks), (11 + 12, 4711));
        }
        for bad in ["", "42", "42 (cat)", "42 (cat) S", "42 (cat) S 1 2 3", "42 cat) S 1"] {
            assert_eq!(Stat::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn owners_are_the_real_and_the_saved_one() {
        let owners = |text: &str| Status::new(text).owners();
        assert_eq!(owners("Name:\tUid: 9\nUid:\t1000\t0\t7\t0\nGid:\t5\n"), Some([1000, 7]));
        for bad in
            ["", "Uid:\n", "Uid:\t1\t2\n", "Uid:\tx\t2\t3\t4\n", "Gid:\t1\t1\t1\t1\n", "Uids:\t1 2 3 4"]
        {
            assert_eq!(owners(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn the_innermost_pid_is_the_last() {
        let pid = |text: &str| Status::new(text).innermost_pid();
        assert_eq!(pid("Name:\tx\nNSpid:\t4711\t12\t1\nNSpgid:\t9\n"), Some(1));
        assert_eq!(pid("NSpid:\t4711\n"), Some(4711));
        let is_inner = |text: &str| Status::new(text).is_in_inner_namespace();
        assert!(is_inner("NSpid:\t4711\t1\n") && !is_inner("NSpid:\t4711\n") && !is_inner(""));
        for bad in ["", "NSpid:\n", "NSpid:\tx\n", "Pid:\t3\n"] {
            assert_eq!(pid(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn numbers_of_other_lines() {
        let status = Status::new("VmHWM:\t    1024 kB\nSigIgn:\t0000000000001001\n");
        assert_eq!((status.bytes("VmHWM"), status.ignored_signals()), (Some(1 << 20), Some(0x1001)));
        assert_eq!((status.bytes("VmRSS"), status.bytes("SigIgn")), (None, None));
    }

    #[test]
    fn this_process_is_found_and_nobody_is_not() {
        let (procfs, pid) = (Procfs::default(), std::process::id());
        let stat = procfs.stat(pid).unwrap();
        assert_eq!(procfs.stat("self").map(|own| own.start_ticks), Some(stat.start_ticks));
        assert_eq!(stat.parent, std::os::unix::process::parent_id());
        let uid = rustix::process::getuid().as_raw();
        assert_eq!(procfs.status(pid).unwrap().owners().map(|[real, _]| real), Some(uid));
        assert_eq!((procfs.stat(u32::MAX), procfs.status(u32::MAX)), (None, None));
    }
}
