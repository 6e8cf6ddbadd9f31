//! Finds the segments of the run as they appear, and keeps them until their processes have ended, when their contents
//! are final. These are copied and the segment is released, so that a run needs memory only for running processes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tt_shm_os::{Namespace, Procfs, SHM_DIR, monotonic_ns, parse_segment_name};
use tt_shm_reader::{Class, Counters, DeviceEntry, FileError, OpenError, Segment, segment_paths};

use super::membership::{Kin, RunId, kin};
use crate::escape::Foreign;
use crate::segments::shown_pid;

/// Interval of liveness checks.
const SWEEP: Duration = Duration::from_millis(100);
/// Interval while a process is about to end: its memory is needed for those that come after it.
const SOON: Duration = Duration::from_millis(2);
/// How long an ended process waits for the aggregation to find it, so that its events are merged.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// With less free space in /dev/shm, about that of five processes, memory goes before exactness: ended processes wait
/// for nobody, and the aggregation follows no more segments. Peaks are ranges then.
const TIGHT: u64 = 8 << 20;

/// What was found so far; shared by the watch and the aggregation.
#[derive(Clone)]
pub(super) struct Found {
    run: RunId,
    inner: Arc<Mutex<FoundProcesses>>,
}

#[derive(Default)]
pub(super) struct FoundProcesses {
    /// Processes of the run that have not been seen to end.
    kept: Vec<Kept>,
    /// What the report needs of the ended ones, by order of appearance.
    ended: Vec<(usize, Observed)>,
    /// Pids that ended before it was known whether they belong to the run.
    unknown: Vec<u32>,
    verdicts: HashMap<u64, Kin>,
    /// Names that are settled.
    names: HashSet<String>,
    /// Identities of segments that the aggregation follows or has followed.
    followed: HashSet<u64>,
    /// How often the aggregation has looked for segments.
    polls: u64,
}

/// A segment of the run.
struct Kept {
    segment: Segment,
    /// Its order of appearance.
    number: usize,
    /// When it was seen dead, and how often the aggregation had looked by then.
    dead_since: Option<(Instant, u64)>,
}

/// How a sweep treats processes that have ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sweep {
    /// Checks those that closed their segment, which costs no system call for the others.
    Closed,
    /// Checks all.
    All,
    /// Checks all, and does not wait for the aggregation, which is over.
    Last,
}

impl Found {
    pub(super) fn new(run: RunId) -> Found {
        Found { run, inner: Arc::default() }
    }

    /// Whether to follow a segment: it belongs to this run, and there is room in /dev/shm.
    pub(super) fn is_to_follow(&self, segment: &Segment) -> bool {
        self.with(|inner| inner.judge(self.run, segment)) == Kin::Ours && !is_tight()
    }

    /// Records which segments the aggregation follows.
    pub(super) fn add_followed(&self, identities: impl Iterator<Item = u64>) {
        self.with(|inner| {
            inner.followed.extend(identities);
            inner.polls += 1;
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut FoundProcesses) -> T) -> T {
        // A panic leaves nothing in here half done.
        work(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Releases the processes that have ended: copies what the report needs, unmaps the memory, and removes the file
    /// if it is this run's to remove (see `docs/layout.md`, Liveness). Returns whether to come again soon.
    pub(super) fn sweep(&self, sweep: Sweep) -> bool {
        self.with(|inner| {
            let FoundProcesses { kept, ended, followed, polls, .. } = inner;
            let mut is_closing = false;
            let mut index = 0;
            while let Some(one) = kept.get_mut(index) {
                let is_over = one.is_dead(sweep, &mut is_closing) && one.has_waited(sweep, followed, *polls);
                is_closing |= one.dead_since.is_some() && !is_over;
                if !is_over {
                    index += 1;
                    continue;
                }
                let Kept { segment, number, .. } = kept.swap_remove(index);
                ended.push((number, Observed::new(&segment)));
                if is_to_remove(self.run, &segment) {
                    remove(&segment);
                }
            }
            is_closing
        })
    }

    /// Everything that was found.
    pub(super) fn take(&self) -> FoundProcesses {
        self.with(std::mem::take)
    }

    /// Opens a segment and keeps it if it belongs to this run.
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
                        inner.kept.push(Kept { segment, number, dead_since: None });
                    }
                    Kin::Foreign => {}
                    Kin::Unknown => inner.unknown.push(pid),
                },
                // Already gone, or too many open files.
                Err(error @ OpenError::File(FileError::Open { .. })) if !error.is_permission_denied() => {
                    inner.unknown.push(pid);
                }
                // Another user's, or not a segment: the run's own can be opened.
                Err(_) => {}
            }
        });
    }
}

impl FoundProcesses {
    /// The result of a run of these.
    #[cfg(test)]
    pub(super) fn of(ended: Vec<Observed>, unknown: Vec<u32>) -> FoundProcesses {
        FoundProcesses {
            ended: ended.into_iter().enumerate().collect(),
            unknown,
            ..FoundProcesses::default()
        }
    }

    /// All processes in order of appearance, and the pids that could not be assigned.
    pub(super) fn into_observed(self) -> (Vec<Observed>, Vec<u32>) {
        let mut all = self.ended;
        let alive = self.kept.iter().map(|kept| (kept.number, Observed::new(&kept.segment)));
        all.extend(alive);
        all.sort_by_key(|(number, _)| *number);
        (all.into_iter().map(|(_, process)| process).collect(), self.unknown)
    }

    /// Decided by its number; without it (its environment was cleared, or it is part of a nested run) by its parents.
    fn judge(&mut self, run: RunId, segment: &Segment) -> Kin {
        if run.is_of(segment) {
            return Kin::Ours;
        }
        *self.verdicts.entry(segment.identity()).or_insert_with(|| match segment.pid_here() {
            Some(pid) => kin(&Procfs::default(), pid, std::process::id()),
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
        // It is ending; until the lock is gone another of its threads may still write.
        *is_closing |= is_alive && is_closed;
        !is_alive
    }

    /// Whether the aggregation has found it, or never will.
    fn has_waited(&mut self, sweep: Sweep, followed: &HashSet<u64>, polls: u64) -> bool {
        let (since, before) = *self.dead_since.get_or_insert_with(|| (Instant::now(), polls));
        // Two: the first may already have been under way.
        let is_late = || polls >= before + 2 || since.elapsed() > MAX_WAIT || is_tight();
        sweep == Sweep::Last || followed.contains(&self.segment.identity()) || is_late()
    }
}

/// Whether /dev/shm is nearly full.
fn is_tight() -> bool {
    rustix::fs::statvfs(SHM_DIR).is_ok_and(|fs| fs.f_bavail.saturating_mul(fs.f_frsize) < TIGHT)
}

/// Whether the file of a process that has ended is ours to remove: it has our number, or it is left to no other run.
fn is_to_remove(run: RunId, segment: &Segment) -> bool {
    run.is_of(segment) || !segment.header().is_left_to_run(monotonic_ns())
}

/// Removes a file, if the path still names this one.
pub(in crate::commands) fn remove(segment: &Segment) {
    let path = tt_shm_os::path_of(segment.file_name());
    if rustix::fs::lstat(&path).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == segment.inode()) {
        // Already removed by another process.
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
    /// Starts now. Existing segments cannot belong to a run that has not begun.
    pub(super) fn new(namespace: &Namespace, found: Found) -> std::io::Result<Watch> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        // A process that ends and leaves its segment to the run touches it.
        let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ATTRIB;
        inotify::add_watch(&inotify, SHM_DIR, flags)?;
        let there = segment_paths(namespace)?;
        let names = there.iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
        found.with(|inner| inner.names.extend(names));
        Ok(Watch { namespace: namespace.clone(), inotify, found })
    }

    /// Watches until the other end of `stop` is closed, and looks once more.
    pub(super) fn run(&self, stop: &OwnedFd) {
        let (mut swept, mut wait) = (Instant::now(), SWEEP);
        loop {
            let mut fds = [&self.inotify, stop].map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN));
            let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
            // Interrupted by a signal, or anything else: an extra look does no harm.
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

/// What the report needs of a process. Copied out of its segment when it has ended, so that the memory can be released: a
/// run of many processes must not fill /dev/shm.
pub(super) struct Observed {
    /// Identity of its segment.
    pub(super) identity: u64,
    pub(super) pid: u32,
    /// Owner of its segment.
    pub(super) uid: u32,
    pub(super) name: Foreign,
    /// Whether it is still running: what it holds may yet be freed.
    pub(super) alive: bool,
    pub(super) devices: Vec<DeviceEntry>,
    /// In the order of `devices`; `None` if they could not be read.
    pub(super) counters: Option<Vec<Counters>>,
    /// Largest first.
    pub(super) leaks: Vec<Unfreed>,
    /// `None` if its live allocations could not be read.
    pub(super) leaks_exact: Option<bool>,
    /// Comparisons with the allocator, and how many of them found a difference.
    pub(super) self_checks: [u64; 2],
    /// Whether it held memory that it could not report.
    pub(super) partial: bool,
}

/// Live allocations of one class with the same name and call site.
pub(super) struct Unfreed {
    /// Index in [`Observed::devices`].
    pub(super) device: u8,
    pub(super) class: Class,
    pub(super) name: Option<Foreign>,
    pub(super) site: Option<Foreign>,
    pub(super) bytes: u64,
    pub(super) count: u64,
}

impl Observed {
    /// Its current state: final once the process has ended.
    pub(super) fn new(segment: &Segment) -> Observed {
        let live = segment.allocations();
        let mut groups: BTreeMap<_, (u64, u64)> = BTreeMap::new();
        for one in live.list {
            let Some(class) = Class::from_code(one.row.class) else { continue };
            let key: (u8, Class, Option<Arc<str>>, Option<Arc<str>>) =
                (one.row.device, class, one.name, one.site);
            let (bytes, count) = groups.entry(key).or_default();
            (*bytes, *count) = (bytes.saturating_add(one.row.size), *count + 1);
        }
        let unfreed = |((device, class, name, site), (bytes, count)): ((_, _, Option<Arc<str>>, _), _)| {
            let site: Option<Arc<str>> = site;
            Unfreed {
                device,
                class,
                name: name.map(Foreign::from),
                site: site.map(Foreign::from),
                bytes,
                count,
            }
        };
        let mut leaks: Vec<Unfreed> = groups.into_iter().map(unfreed).collect();
        leaks.sort_by_key(|unfreed| std::cmp::Reverse(unfreed.bytes));
        Observed {
            identity: segment.identity(),
            pid: shown_pid(segment),
            uid: segment.uid(),
            name: segment.process_name().into(),
            alive: segment.is_alive().unwrap_or(true),
            devices: segment.devices(),
            counters: segment.counters().ok().map(|now| now.counters).filter(|_| !segment.is_lost()),
            leaks,
            leaks_exact: (!segment.is_lost()).then_some(live.exact && live.unlisted == 0),
            self_checks: segment.self_checks(),
            partial: segment.is_partial(),
        }
    }

    /// Whether its sums differed from those of the device's allocator, or are a part of what it held.
    pub(super) fn is_doubtful(&self) -> bool {
        self.self_checks[1] > 0 || self.partial
    }

    /// Its counters on a chip, one per entry: each allocator of a chip has an entry.
    pub(super) fn on(&self, chip_id: u64) -> impl Iterator<Item = &Counters> {
        let known = self.devices.iter().zip(self.counters.iter().flatten());
        known.filter(move |(entry, _)| entry.chip_id == chip_id).map(|(_, counters)| counters)
    }
}
