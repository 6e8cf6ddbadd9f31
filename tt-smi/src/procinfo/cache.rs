//! A cache of process information, refreshed once a second.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tt_shm_os::Procfs;

use super::{ProcInfo, RunState, parent, read};
use crate::driver::HolderCache;

/// Time between two reads of a process: states change rarely, and the screen asks often.
const REFRESH: Duration = Duration::from_secs(1);
/// A process that was not asked for this long is dropped.
const FORGET: Duration = Duration::from_secs(10);

/// Information about processes. A lookup is free except once a second, when it reads one short file, and the rest only
/// if the pid now belongs to another process.
#[derive(Debug, Default)]
pub struct Cache {
    procfs: Procfs,
    entries: HashMap<u32, Entry>,
    tidied: Option<Instant>,
    holders: HolderCache,
}

#[derive(Debug)]
struct Entry {
    info: Option<ProcInfo>,
    comm: String,
    looked: Instant,
    asked: Instant,
}

impl Cache {
    /// Reads another procfs than this machine's.
    pub fn of(procfs: Procfs) -> Cache {
        Cache { procfs, ..Cache::default() }
    }

    /// Information about a process; `None` if it is not visible.
    pub fn get(&mut self, pid: u32) -> Option<&ProcInfo> {
        if let Some(people) = super::recorded::people() {
            return people.get(&pid);
        }
        self.get_at(pid, Instant::now())
    }

    /// Who holds the devices.
    pub(crate) fn holders(&mut self) -> &mut HolderCache {
        &mut self.holders
    }

    fn get_at(&mut self, pid: u32, now: Instant) -> Option<&ProcInfo> {
        self.tidy(now);
        let procfs = &self.procfs;
        let entry = self.entries.entry(pid).or_insert_with(|| Entry::new(procfs, pid, now));
        if now.duration_since(entry.looked) >= REFRESH {
            entry.refresh(procfs, pid, now);
        }
        entry.asked = now;
        entry.info.as_ref()
    }

    fn tidy(&mut self, now: Instant) {
        if now.duration_since(*self.tidied.get_or_insert(now)) >= FORGET {
            self.tidied = Some(now);
            self.entries.retain(|_, entry| now.duration_since(entry.asked) < FORGET);
        }
    }
}

impl Entry {
    fn new(procfs: &Procfs, pid: u32, now: Instant) -> Entry {
        let comm = procfs.stat(pid).map(|stat| stat.comm).unwrap_or_default();
        Entry { info: read(procfs, pid), comm, looked: now, asked: now }
    }

    /// A different start time means another process; a different name another program, with other arguments.
    fn refresh(&mut self, procfs: &Procfs, pid: u32, now: Instant) {
        let stat = procfs.stat(pid);
        match (&mut self.info, stat) {
            (Some(info), Some(stat)) if info.start_ticks == stat.start_ticks && self.comm == stat.comm => {
                (info.state, info.parent) = (RunState::of(&stat), parent(&stat));
                self.looked = now;
            }
            _ => *self = Entry::new(procfs, pid, now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A procfs with one process, removed at the end.
    struct Fake(tempfile::TempDir);

    impl Fake {
        fn new() -> Fake {
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir(folder.path().join("42")).unwrap();
            Fake(folder)
        }

        fn path(&self, file: &str) -> std::path::PathBuf {
            self.0.path().join("42").join(file)
        }

        fn set(&self, comm: &str, state: char, start: u64, command: &str) {
            let zeros = "0 ".repeat(17);
            let stat = format!("42 ({comm}) {state} 7 {zeros}{start} 0 0\n");
            std::fs::write(self.path("stat"), stat).unwrap();
            std::fs::write(self.path("cmdline"), command).unwrap();
        }
    }

    #[track_caller]
    fn check(cache: &mut Cache, now: Instant, state: RunState, command: &str) {
        let info = cache.get_at(42, now).unwrap();
        assert_eq!((info.state, info.command.as_ref().unwrap().raw()), (state, command));
    }

    #[test]
    fn state_is_renewed_each_second_and_the_rest_when_it_is_another() {
        let fake = Fake::new();
        fake.set("a", 'S', 5, "first");
        let mut cache = Cache::of(Procfs::at(fake.0.path()));
        let start = Instant::now();
        check(&mut cache, start, RunState::Running, "first");
        fake.set("a", 'T', 5, "changed by itself");
        check(&mut cache, start + REFRESH / 2, RunState::Running, "first");
        check(&mut cache, start + REFRESH, RunState::Stopped, "first");
        fake.set("b", 'S', 5, "executed");
        check(&mut cache, start + 2 * REFRESH, RunState::Running, "executed");
        fake.set("b", 'S', 6, "reused");
        check(&mut cache, start + 3 * REFRESH, RunState::Running, "reused");
        std::fs::remove_file(fake.path("stat")).unwrap();
        assert_eq!(cache.get_at(42, start + 4 * REFRESH), None);
        assert_eq!(cache.get_at(43, start + 4 * REFRESH + FORGET), None);
        assert_eq!(cache.entries.len(), 1, "who is not asked for is forgotten");
    }
}
