//! Finds the segments of the run as they appear, and keeps them: a mapping stays readable after its process has
//! ended and its file is gone, so what is in it at the end is exact.

use std::collections::{HashMap, HashSet};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tt_shm_os::{Namespace, SHM_DIR, monotonic_ns, parse_segment_name};
use tt_shm_reader::{FileError, OpenError, Segment, segment_paths};

use super::lineage::{Kin, kin};
use super::run_id::RunId;

/// What was found so far; shared by who finds and who follows.
#[derive(Clone)]
pub(super) struct Found {
    run: RunId,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
pub(super) struct Inner {
    /// Of the run, in the order in which they appeared.
    pub(super) kept: Vec<Segment>,
    /// Pids of those that ended before it could be told whose they were.
    pub(super) unknown: Vec<u32>,
    verdicts: HashMap<u64, Kin>,
    /// Names that are settled.
    names: HashSet<String>,
    /// Which of `kept` may have to be removed by us.
    to_remove: Vec<usize>,
    /// When each was last seen alive, CLOCK_MONOTONIC, by identity.
    pub(super) alive_at: HashMap<u64, u64>,
    /// Identities of those that were seen dead.
    ended: HashSet<u64>,
}

impl Found {
    pub(super) fn new(run: RunId) -> Found {
        Found { run, inner: Arc::default() }
    }

    /// Whether a segment is of this run.
    pub(super) fn is_ours(&self, segment: &Segment) -> bool {
        self.with(|inner| inner.judge(self.run, segment)) == Kin::Ours
    }

    fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        // Nothing in here is left half done by a panic.
        work(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks who lives. A process that ended counts as holding what it held until that is noticed: what is known of the
    /// time after it was last seen alive is not certain.
    pub(super) fn look_who_lives(&self) {
        self.with(|inner| {
            let Inner { kept, alive_at, ended, .. } = inner;
            for segment in kept {
                let (identity, now) = (segment.identity(), monotonic_ns());
                if !ended.contains(&identity) && segment.is_alive().unwrap_or(false) && !segment.is_closed() {
                    alive_at.insert(identity, now);
                } else {
                    ended.insert(identity);
                }
            }
        });
    }

    /// Removes what processes left to us that ended in an orderly way: see `docs/layout.md`, Liveness. What those
    /// leave that were killed is not for us to decide.
    pub(super) fn remove_ended(&self) {
        self.with(|inner| {
            let Inner { kept, to_remove, .. } = inner;
            to_remove.retain(|index| kept.get(*index).is_some_and(|segment| !remove_if_ended(segment)));
        });
    }

    /// Everything that was found.
    pub(super) fn take(&self) -> Inner {
        self.with(std::mem::take)
    }

    /// Opens a segment and keeps it if it is of this run.
    fn consider(&self, path: &Path, name: &str) {
        self.with(|inner| {
            if !inner.names.insert(name.to_owned()) {
                return;
            }
            let pid = parse_segment_name(name).map_or(0, |name| name.pid);
            match Segment::open(path) {
                Ok(segment) => match inner.judge(self.run, &segment) {
                    Kin::Ours => {
                        if self.run.is_of(&segment) {
                            inner.to_remove.push(inner.kept.len());
                        }
                        inner.kept.push(segment);
                    }
                    Kin::Foreign => {}
                    Kin::Unknown => inner.unknown.push(pid),
                },
                // Gone already, or too many files are open.
                Err(error @ OpenError::File(FileError::Open { .. })) if !error.is_permission_denied() => {
                    inner.unknown.push(pid);
                }
                // Another user's, or no segment: our own can be opened.
                Err(_) => {}
            }
        });
    }
}

impl Inner {
    /// By its number; of one that has none of ours (its environment was cleared, or it is of a run within the run)
    /// its parents tell.
    fn judge(&mut self, run: RunId, segment: &Segment) -> Kin {
        if run.is_of(segment) {
            return Kin::Ours;
        }
        *self.verdicts.entry(segment.identity()).or_insert_with(|| match segment.pid_here() {
            Some(pid) => kin(Path::new("/proc"), pid, std::process::id()),
            None => Kin::Unknown,
        })
    }
}

/// Removes the file of a process that has ended; says whether there is nothing more to do.
fn remove_if_ended(segment: &Segment) -> bool {
    if segment.is_alive().unwrap_or(true) {
        return false;
    }
    let path = tt_shm_os::path_of(segment.file_name());
    let named = rustix::fs::lstat(&path).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == segment.inode());
    if named && segment.is_closed() {
        // Somebody else was faster.
        let _ = rustix::fs::unlink(&path);
    }
    true
}

/// Watches /dev/shm for new segments of a namespace.
pub(super) struct Watch {
    namespace: Namespace,
    inotify: OwnedFd,
    found: Found,
}

impl Watch {
    /// From now on. What is there already is not of a run that has not begun.
    pub(super) fn new(namespace: &Namespace, found: Found) -> std::io::Result<Watch> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        inotify::add_watch(&inotify, SHM_DIR, WatchFlags::CREATE | WatchFlags::MOVED_TO)?;
        let there = segment_paths(namespace)?;
        let names = there.iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
        found.with(|inner| inner.names.extend(names));
        Ok(Watch { namespace: namespace.clone(), inotify, found })
    }

    /// Looks until the other end of `stop` is closed, and once more.
    pub(super) fn run(&self, stop: &OwnedFd) {
        loop {
            let mut fds = [&self.inotify, stop].map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN));
            // Interrupted by a signal, or anything else: looking too often does no harm.
            let _ = poll(&mut fds, None);
            let ended = !fds[1].revents().is_empty();
            self.look();
            if ended {
                self.rescan();
                return;
            }
        }
    }

    fn look(&self) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        while let Ok(event) = reader.next() {
            if event.events().contains(inotify::ReadFlags::QUEUE_OVERFLOW) {
                self.rescan();
            }
            let Some(name) = event.file_name().and_then(|name| name.to_str().ok()) else { continue };
            if parse_segment_name(name).is_some_and(|name| name.namespace == self.namespace) {
                self.found.consider(&tt_shm_os::path_of(name), name);
            }
        }
    }

    fn rescan(&self) {
        for path in segment_paths(&self.namespace).unwrap_or_default() {
            if let Some(name) = path.file_name().and_then(|name| name.to_str()) {
                self.found.consider(&path, name);
            }
        }
    }
}
