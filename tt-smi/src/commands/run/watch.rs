//! Finds the segments of the run as they appear, and keeps them until their processes have ended: what is in one then
//! is exact. It is copied, and the segment let go, so that a run needs memory for those only that live.

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
use super::observed::Observed;
use super::run_id::RunId;

/// Sweeps that wait for a process which has ended to be followed. More would be of no use: the aggregation found its
/// file, or never will.
const MAX_WAITS: u32 = 3;

/// What was found so far; shared by who finds and who follows.
#[derive(Clone)]
pub(super) struct Found {
    run: RunId,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
pub(super) struct Inner {
    /// Of processes of the run that were not seen to end.
    kept: Vec<Kept>,
    /// Of the others what the report needs, by the number in which they appeared.
    ended: Vec<(usize, Observed)>,
    /// Pids of those that ended before it could be told whose they were.
    unknown: Vec<u32>,
    verdicts: HashMap<u64, Kin>,
    /// Names that are settled.
    names: HashSet<String>,
}

/// A segment of the run.
struct Kept {
    segment: Segment,
    /// The how many-th it is.
    number: usize,
    /// When it was last seen alive, CLOCK_MONOTONIC.
    alive_at: u64,
    /// Whether its file is ours to remove: it has our number.
    is_ours: bool,
    /// Sweeps since it was seen dead, that waited for it to be followed.
    waited: u32,
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

    /// Notes who lives, and lets those go that have ended: what the report needs is copied, the memory is unmapped,
    /// and the file removed if it is ours to remove (see `docs/layout.md`, Liveness). One that is not in `followed` yet
    /// gets some sweeps more, so that its events are merged. Asks all only if `all`, else those that closed their segment,
    /// which costs no system call. Says whether to come again soon.
    ///
    /// A process that ended counts as holding what it held until that is noticed: what is known of the time after
    /// it was last seen alive is not certain.
    pub(super) fn sweep(&self, followed: &HashSet<u64>, all: bool) -> bool {
        self.with(|inner| {
            let mut is_closing = false;
            let mut index = 0;
            while let Some(kept) = inner.kept.get_mut(index) {
                index += 1;
                if !kept.is_over(followed, all, &mut is_closing) {
                    continue;
                }
                index -= 1;
                let kept = inner.kept.swap_remove(index);
                inner.ended.push((kept.number, Observed::new(&kept.segment, kept.alive_at)));
                if kept.is_ours {
                    remove(&kept.segment);
                }
            }
            is_closing
        })
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
                        let number = inner.kept.len() + inner.ended.len();
                        let is_ours = self.run.is_of(&segment);
                        inner.kept.push(Kept { segment, number, alive_at: 0, is_ours, waited: 0 });
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
    /// All processes in the order in which they appeared, and pids of those that could not be told.
    pub(super) fn into_observed(self) -> (Vec<Observed>, Vec<u32>) {
        let mut all = self.ended;
        let alive = self.kept.iter().map(|kept| (kept.number, Observed::new(&kept.segment, kept.alive_at)));
        all.extend(alive);
        all.sort_by_key(|(number, _)| *number);
        (all.into_iter().map(|(_, process)| process).collect(), self.unknown)
    }

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

impl Kept {
    /// Whether it has ended and may be let go.
    fn is_over(&mut self, followed: &HashSet<u64>, all: bool, is_closing: &mut bool) -> bool {
        let is_closed = self.segment.is_closed();
        if !all && !is_closed {
            return false;
        }
        let now = monotonic_ns();
        if self.segment.is_alive().unwrap_or(true) {
            match is_closed {
                // Its last moment; until the lock is gone another of its threads may still write.
                true => *is_closing = true,
                false => self.alive_at = now,
            }
            return false;
        }
        self.waited += 1;
        let is_over = followed.contains(&self.segment.identity()) || self.waited > MAX_WAITS;
        *is_closing |= !is_over;
        is_over
    }
}

/// Removes a file, if the path still names this one.
fn remove(segment: &Segment) {
    let path = tt_shm_os::path_of(segment.file_name());
    if rustix::fs::lstat(&path).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == segment.inode()) {
        // Somebody else was faster.
        let _ = rustix::fs::unlink(&path);
    }
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
