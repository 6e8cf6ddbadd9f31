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
    /// What it calls itself in the PID namespace of its container.
    pub inner_pid: Option<u32>,
    /// What it maps, as procfs lists it; `None` if that may not be read.
    pub maps: Option<String>,
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
            inner_pid: None,
            maps: Some(String::new()),
        }
    }

    /// In another control group.
    #[must_use]
    pub fn in_group(self, group: &str) -> FakeProcess {
        FakeProcess { group: group.to_owned(), ..self }
    }

    /// In a container, where it calls itself so.
    #[must_use]
    pub fn calling_itself(self, inner_pid: u32) -> FakeProcess {
        FakeProcess { inner_pid: Some(inner_pid), ..self }
    }

    /// Started at another time.
    #[must_use]
    pub fn started_at(self, start_ticks: u64) -> FakeProcess {
        FakeProcess { start_ticks, ..self }
    }

    /// Shares memory through a file.
    #[must_use]
    pub fn mapping(self, file: &Path) -> FakeProcess {
        let stat = rustix::fs::stat(file).expect("the file is there");
        let (major, minor) = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
        let place = format!("{major:02x}:{minor:02x} {}", stat.st_ino);
        let line = format!("7f9401250000-7f9401253000 rw-s 00000000 {place}  {}\n", file.display());
        FakeProcess { maps: Some(self.maps.unwrap_or_default() + &line), ..self }
    }

    /// May not be looked into.
    #[must_use]
    pub fn closed_to_others(self) -> FakeProcess {
        FakeProcess { maps: None, ..self }
    }

    pub(crate) fn write(&self, proc: &Path, holds: &[u32]) {
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
        let inner = self.inner_pid.map(|inner| format!("\t{inner}")).unwrap_or_default();
        let pids = format!("NSpid:\t{pid}{inner}\n");
        file("status", format!("Name:\t{comm}\n{users}{pids}VmRSS:\t{resident_kib} kB\n"));
        self.maps.iter().for_each(|maps| file("maps", maps.clone()));
        file("cmdline", self.command.replace(' ', "\0") + "\0");
        file("cgroup", format!("0::{group}\n"));
        let targets = holds.iter().map(|number| format!("/dev/tenstorrent/{number}"));
        for (descriptor, target) in ["/dev/null".to_owned()].into_iter().chain(targets).enumerate() {
            symlink(target, folder.join(format!("fd/{descriptor}"))).expect("a new link");
        }
    }
}
