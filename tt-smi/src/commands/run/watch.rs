//! Finds the segments of the run as they appear, and keeps them: a mapping stays readable after its process has
//! ended and its file is gone, so what is in it at the end is exact.

use std::collections::{HashMap, HashSet};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tt_shm_os::{Namespace, SHM_DIR, parse_segment_name};
use tt_shm_reader::{Segment, segment_paths};

use super::lineage::{Kin, kin};

/// What was found so far; shared by who finds and who follows.
#[derive(Clone, Default)]
pub(super) struct Found(Arc<Mutex<Inner>>);

#[derive(Default)]
pub(super) struct Inner {
    /// Of the run, in the order in which they appeared.
    pub(super) kept: Vec<Segment>,
    /// Pids of those that ended before it could be told whose they were.
    pub(super) unknown: Vec<u32>,
    verdicts: HashMap<u64, Kin>,
    /// Names that are settled.
    names: HashSet<String>,
}

impl Found {
    /// Whether a segment is of this run.
    pub(super) fn is_ours(&self, segment: &Segment) -> bool {
        self.with(|inner| inner.judge(segment)) == Kin::Ours
    }

    fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        // Nothing in here is left half done by a panic.
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
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
                Ok(segment) => match inner.judge(&segment) {
                    Kin::Ours => inner.kept.push(segment),
                    Kin::Foreign => {}
                    Kin::Unknown => inner.unknown.push(pid),
                },
                Err(error) if error.is_not_found() => inner.unknown.push(pid),
                // Another user's, or no segment: our own can be opened.
                Err(_) => {}
            }
        });
    }
}

impl Inner {
    fn judge(&mut self, segment: &Segment) -> Kin {
        *self.verdicts.entry(segment.identity()).or_insert_with(|| match segment.pid_here() {
            Some(pid) => kin(Path::new("/proc"), pid, std::process::id()),
            None => Kin::Unknown,
        })
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
