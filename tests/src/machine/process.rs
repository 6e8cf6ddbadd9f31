//! A process of a made-up machine.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// What procfs has of a process.
#[derive(Clone, Debug)]
pub struct FakeProcess {
    /// Its pid.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// Its arguments, with blanks between.
    pub command: String,
    /// When it was started, in clock ticks since boot.
    pub start_ticks: u64,
    /// Clock ticks in user and in kernel mode.
    pub cpu_ticks: (u64, u64),
    /// Memory of the host.
    pub resident_kib: u64,
    /// The path of its control group.
    pub group: String,
}

impl FakeProcess {
    /// A process of user 1000, in no container.
    pub fn new(pid: u32, command: &str) -> FakeProcess {
        FakeProcess {
            pid,
            uid: 1000,
            command: command.to_owned(),
            start_ticks: 5000,
            cpu_ticks: (200, 50),
            resident_kib: 4096,
            group: "/user.slice/user-1000.slice/session-2.scope".to_owned(),
        }
    }

    /// In another control group.
    #[must_use]
    pub fn in_group(self, group: &str) -> FakeProcess {
        FakeProcess { group: group.to_owned(), ..self }
    }

    pub(super) fn write(&self, proc: &Path, holds: &[u32]) {
        let FakeProcess { pid, uid, start_ticks, resident_kib, group, .. } = self;
        let (folder, (user, kernel)) = (proc.join(pid.to_string()), self.cpu_ticks);
        fs::create_dir_all(folder.join("fd")).expect("a tree that can be written");
        let file = |name: &str, text: String| {
            fs::write(folder.join(name), text).expect("a tree that can be written")
        };
        let comm = self.command.split(' ').next().unwrap_or_default();
        let zeros = "0 ".repeat(9);
        file("stat", format!("{pid} ({comm}) S 1 {zeros}{user} {kernel} 0 0 20 0 1 0 {start_ticks} 0 0\n"));
        let users = format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n");
        file("status", format!("Name:\t{comm}\n{users}VmRSS:\t{resident_kib} kB\n"));
        file("cmdline", self.command.replace(' ', "\0") + "\0");
        file("cgroup", format!("0::{group}\n"));
        let targets = holds.iter().map(|number| format!("/dev/tenstorrent/{number}"));
        for (descriptor, target) in ["/dev/null".to_owned()].into_iter().chain(targets).enumerate() {
            symlink(target, folder.join(format!("fd/{descriptor}"))).expect("a new link");
        }
    }
}
