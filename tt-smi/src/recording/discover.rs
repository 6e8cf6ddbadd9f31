//! Finds the segments of a namespace as they appear, also in private folders of containers, and who their processes are.

use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tt_shm_os::{Namespace, Procfs, SHM_DIR, monotonic_ns, parse_segment_name};
use tt_shm_reader::{Segment, segment_paths};
use tt_shm_record::{Recorder, Who};

use crate::{private, procinfo, users};

/// The interval at which /dev/shm is listed: files that could not be opened may be readable by now.
const RESCAN: Duration = Duration::from_millis(500);
/// The interval at which private folders of containers are looked at.
const PRIVATE: Duration = Duration::from_secs(1);
/// The most characters of a command line that are recorded.
const MAX_COMMAND: usize = 4096;

pub(super) struct Discover {
    namespace: Namespace,
    inotify: OwnedFd,
    /// Files that are followed, were followed, or are not worth it.
    settled: HashSet<String>,
    /// Segments that were found, by identity.
    identities: HashSet<u64>,
    /// Files that could not be opened, each reported once.
    refused: HashSet<String>,
    begun_ns: u64,
    scanned: Option<Instant>,
    looked_private: Option<Instant>,
}

impl Discover {
    pub(super) fn new(namespace: &Namespace) -> std::io::Result<Discover> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        inotify::add_watch(&inotify, SHM_DIR, WatchFlags::CREATE | WatchFlags::MOVED_TO)?;
        Ok(Discover {
            namespace: namespace.clone(),
            inotify,
            settled: HashSet::new(),
            identities: HashSet::new(),
            refused: HashSet::new(),
            begun_ns: monotonic_ns(),
            scanned: None,
            looked_private: None,
        })
    }

    /// Becomes readable when a file appears.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }

    /// Gives new segments to the recorder.
    pub(super) fn look(&mut self, recorder: &mut Recorder) {
        let mut names = self.appeared();
        if self.scanned.is_none_or(|at| at.elapsed() >= RESCAN) {
            self.scanned = Some(Instant::now());
            names = self.listed();
            // A name is not used twice; what is gone need not be remembered.
            let there: HashSet<&String> = names.iter().collect();
            self.settled.retain(|name| there.contains(name));
        }
        for name in names {
            if !self.settled.contains(&name) {
                self.consider(recorder, name);
            }
        }
        if self.looked_private.is_none_or(|at| at.elapsed() >= PRIVATE) {
            self.looked_private = Some(Instant::now());
            for segment in private::open_all(&self.namespace).into_iter().flatten() {
                self.add(recorder, segment);
            }
        }
    }

    fn listed(&self) -> Vec<String> {
        let paths = segment_paths(&self.namespace).unwrap_or_default();
        paths.iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect()
    }

    /// The names of files that appeared since the last look.
    fn appeared(&mut self) -> Vec<String> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        let mut names = Vec::new();
        while let Ok(event) = reader.next() {
            if event.events().contains(inotify::ReadFlags::QUEUE_OVERFLOW) {
                self.scanned = None;
            }
            let Some(name) = event.file_name().and_then(|name| name.to_str().ok()) else { continue };
            if parse_segment_name(name).is_some_and(|name| name.namespace == self.namespace) {
                names.push(name.to_owned());
            }
        }
        names
    }

    fn consider(&mut self, recorder: &mut Recorder, name: String) {
        match Segment::open(Path::new(&tt_shm_os::path_of(&name))) {
            Ok(segment) => {
                self.settled.insert(name);
                self.add(recorder, segment);
            }
            Err(error) if error.is_not_found() => {}
            Err(error) => {
                if self.refused.insert(name) {
                    eprintln!("tt-smi: not recorded: {error}");
                }
            }
        }
    }

    fn add(&mut self, recorder: &mut Recorder, segment: Segment) {
        // What was dead before the recording began is not part of it.
        let is_old = segment.header().anchor_monotonic_ns < self.begun_ns && segment.shares_clock();
        if is_old && !segment.is_alive().unwrap_or(true) {
            return;
        }
        if self.identities.insert(segment.identity()) {
            let who = who(&segment);
            recorder.add(Arc::new(segment), who);
        }
    }
}

/// Who a process is, as far as the system confirms it.
fn who(segment: &Segment) -> Who {
    let unconfirmed = Who {
        user: users::name_of(segment.uid()).map(|name| name.raw().to_owned()),
        start_time: Some(segment.header().start_time).filter(|time| *time != 0),
        file_name: Some(segment.file_name().to_owned()),
        ..Who::default()
    };
    let procfs = Procfs::default();
    let Some(pid) = segment.pid_here() else { return unconfirmed };
    let Some(info) = procinfo::read(&procfs, pid) else { return unconfirmed };
    let groups = info.groups;
    let container = groups.container.as_ref();
    Who {
        pid_here: Some(pid),
        command_line: info.command.map(|command| command.raw().chars().take(MAX_COMMAND).collect()),
        container_kind: container.and_then(|container| container.runtime).map(str::to_owned),
        container_id: container.map(|container| container.id.clone()),
        pod: groups.pod_uid,
        job: groups.slurm_job.map(|job| job.to_string()),
        parent: info.parent,
        ..unconfirmed
    }
}
