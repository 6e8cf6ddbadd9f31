//! Finds the segments of the run as they appear, and keeps them until their processes have ended: what is in one then
//! is exact. It is copied, and the segment let go, so that a run needs memory for those only that live.

use std::collections::{HashMap, HashSet};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tt_shm_os::{Namespace, SHM_DIR, parse_segment_name};
use tt_shm_reader::{FileError, OpenError, Segment, segment_paths};

use super::lineage::{Kin, kin};
use super::observed::Observed;
use super::run_id::RunId;

/// Between two looks who lives.
const SWEEP: Duration = Duration::from_millis(100);
/// Before the next look if a process is about to end: its memory is needed for those that come after it.
const SOON: Duration = Duration::from_millis(2);
/// How long a process that has ended waits for the aggregation to find it, so that its events are merged.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// With less room in /dev/shm, about that of five processes, memory goes before exactness: who has ended waits for
/// nobody, and the aggregation takes on nobody whose memory it would hold back. Peaks are ranges then.
const TIGHT: u64 = 8 << 20;

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
    /// Identities of segments that the aggregation follows or followed.
    followed: HashSet<u64>,
    /// How often the aggregation looked for segments.
    polls: u64,
}

/// A segment of the run.
struct Kept {
    segment: Segment,
    /// The how many-th it is.
    number: usize,
    /// Whether its file is ours to remove: it has our number.
    is_ours: bool,
    /// When it was seen dead, and how often the aggregation had looked by then.
    dead_since: Option<(Instant, u64)>,
}

/// How a sweep deals with those that have ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sweep {
    /// Asks those that closed their segment, which costs no system call for the others.
    Closed,
    /// Asks all.
    All,
    /// Asks all, and nobody waits for the aggregation, which is over.
    Last,
}

impl Found {
    pub(super) fn new(run: RunId) -> Found {
        Found { run, inner: Arc::default() }
    }

    /// Whether to follow a segment: it is of this run, and there is room in /dev/shm beside it.
    pub(super) fn is_to_follow(&self, segment: &Segment) -> bool {
        self.with(|inner| inner.judge(self.run, segment)) == Kin::Ours && !is_tight()
    }

    /// Notes who is followed after a look of the aggregation.
    pub(super) fn add_followed(&self, identities: impl Iterator<Item = u64>) {
        self.with(|inner| {
            inner.followed.extend(identities);
            inner.polls += 1;
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        // Nothing in here is left half done by a panic.
        work(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets those go that have ended: what the report needs is copied, the memory is unmapped,
    /// and the file removed if it is ours to remove (see `docs/layout.md`, Liveness). Says whether to come again soon.
    pub(super) fn sweep(&self, sweep: Sweep) -> bool {
        self.with(|inner| {
            let Inner { kept, ended, followed, polls, .. } = inner;
            let mut is_closing = false;
            let mut index = 0;
            while let Some(one) = kept.get_mut(index) {
                let is_over = one.is_dead(sweep, &mut is_closing) && one.has_waited(sweep, followed, *polls);
                is_closing |= one.dead_since.is_some() && !is_over;
                if !is_over {
                    index += 1;
                    continue;
                }
                let Kept { segment, number, is_ours, .. } = kept.swap_remove(index);
                ended.push((number, Observed::new(&segment)));
                if is_ours {
                    remove(&segment);
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
                        inner.kept.push(Kept { segment, number, is_ours, dead_since: None });
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
    /// What would have been found of a run of these.
    #[cfg(test)]
    pub(super) fn of(ended: Vec<Observed>, unknown: Vec<u32>) -> Inner {
        Inner { ended: ended.into_iter().enumerate().collect(), unknown, ..Inner::default() }
    }

    /// All processes in the order in which they appeared, and pids of those that could not be told.
    pub(super) fn into_observed(self) -> (Vec<Observed>, Vec<u32>) {
        let mut all = self.ended;
        let alive = self.kept.iter().map(|kept| (kept.number, Observed::new(&kept.segment)));
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
    /// Whether it has ended.
    fn is_dead(&mut self, sweep: Sweep, is_closing: &mut bool) -> bool {
        let is_closed = self.segment.is_closed();
        if sweep == Sweep::Closed && !is_closed && self.dead_since.is_none() {
            return false;
        }
        let is_alive = self.segment.is_alive().unwrap_or(true);
        // Its last moment; until the lock is gone another of its threads may still write.
        *is_closing |= is_alive && is_closed;
        !is_alive
    }

    /// Whether the aggregation has found it, or will not.
    fn has_waited(&mut self, sweep: Sweep, followed: &HashSet<u64>, polls: u64) -> bool {
        let (since, before) = *self.dead_since.get_or_insert_with(|| (Instant::now(), polls));
        // Two: the first may have been under way.
        let is_late = || polls >= before + 2 || since.elapsed() > MAX_WAIT || is_tight();
        sweep == Sweep::Last || followed.contains(&self.segment.identity()) || is_late()
    }
}

/// Whether there is little room in /dev/shm.
fn is_tight() -> bool {
    rustix::fs::statvfs(SHM_DIR).is_ok_and(|fs| fs.f_bavail.saturating_mul(fs.f_frsize) < TIGHT)
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
        // A process that ends and leaves its segment to us touches it.
        let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ATTRIB;
        inotify::add_watch(&inotify, SHM_DIR, flags)?;
        let there = segment_paths(namespace)?;
        let names = there.iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
        found.with(|inner| inner.names.extend(names));
        Ok(Watch { namespace: namespace.clone(), inotify, found })
    }

    /// Looks until the other end of `stop` is closed, and once more.
    pub(super) fn run(&self, stop: &OwnedFd) {
        let (mut swept, mut wait) = (Instant::now(), SWEEP);
        loop {
            let mut fds = [&self.inotify, stop].map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN));
            let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
            // Interrupted by a signal, or anything else: looking too often does no harm.
            let _ = poll(&mut fds, Some(&limit));
            let ended = !fds[1].revents().is_empty();
            self.look();
            if ended {
                self.rescan();
                return;
            }
            let all = swept.elapsed() >= SWEEP;
            if all {
                swept = Instant::now();
            }
            let is_closing = self.found.sweep(if all { Sweep::All } else { Sweep::Closed });
            wait = if is_closing { SOON } else { SWEEP };
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
