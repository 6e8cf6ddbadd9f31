//! Finds segments as they appear and vanish: by inotify, and by scanning the folder in case that misses some.

use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use tt_shm_os::{Namespace, SHM_DIR, parse_segment_name};

/// The time between two scans of the folder, in case inotify missed something.
const RESCAN_NS: u64 = 1_000_000_000;
/// The inotify events read per look. A flood of files in /dev/shm must not keep us here; the rest waits for
/// the next look.
const MAX_EVENTS: usize = 4096;

/// The requests taken from one scan of the folder, which anybody can fill with files that look like them. A
/// new one is noticed when it appears.
const MAX_REQUESTS: usize = 256;

/// What changed in the folder.
#[derive(Debug, Default)]
pub(crate) struct Sightings {
    pub(crate) appeared: Vec<String>,
    pub(crate) vanished: Vec<String>,
    /// The names of all segments, if the folder was scanned; sorted, so that rows come in the same order.
    pub(crate) listing: Option<BTreeSet<String>>,
    /// The names of files that request a new window of peaks.
    pub(crate) requests: Vec<String>,
    /// Whether anything changed in the folder, relevant or not.
    pub(crate) stirred: bool,
    /// Whether everything was seen; the rest waits for the next look.
    pub(crate) complete: bool,
    /// Whether names may have come and gone unnoticed since the last look.
    pub(crate) untold: bool,
}

/// Watches /dev/shm for one namespace.
#[derive(Debug)]
pub(crate) struct Discovery {
    namespace: Namespace,
    request_prefix: String,
    inotify: Option<OwnedFd>,
    /// The time between two scans of the folder.
    period: u64,
    next_rescan: u64,
    /// Whether inotify covered the time since the last look.
    told: bool,
}

impl Discovery {
    pub(crate) fn new(namespace: Namespace, request_prefix: String) -> Discovery {
        Discovery { namespace, request_prefix, inotify: None, period: RESCAN_NS, next_rescan: 0, told: false }
    }

    /// Starts to watch for changes. Where inotify is not available, every look scans the folder.
    pub(crate) fn watch(&mut self) {
        if self.inotify.is_none() && self.period > 0 {
            self.inotify = watch().ok();
            self.period = if self.inotify.is_some() { RESCAN_NS } else { 0 };
            // Changes since the last look were not reported.
            self.next_rescan = 0;
        }
    }

    /// The descriptor to wait on for the next change; none if the folder is not watched or inotify is not
    /// available.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inotify.as_ref().map(AsFd::as_fd)
    }

    /// Returns what changed since the last look.
    pub(crate) fn look(&mut self, now: u64) -> Sightings {
        let mut sightings = Sightings { untold: !self.told, complete: true, ..Sightings::default() };
        self.told = self.inotify.is_some();
        self.read_events(&mut sightings);
        if sightings.untold || now >= self.next_rescan {
            self.next_rescan = now.saturating_add(self.period);
            self.rescan(&mut sightings);
        }
        sightings
    }

    fn read_events(&self, sightings: &mut Sightings) {
        let Some(inotify) = &self.inotify else { return };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(inotify, &mut buffer);
        for _ in 0..MAX_EVENTS {
            // EAGAIN means there is nothing more. After any other error the rescan takes over.
            let Ok(event) = reader.next() else { return };
            sightings.stirred = true;
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                sightings.untold = true;
                return;
            }
            let Some(name) = event.file_name().and_then(|name| name.to_str().ok()) else { continue };
            let gone = event.events().intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM);
            if name.starts_with(&self.request_prefix) {
                sightings.requests.extend((!gone).then(|| name.to_owned()));
            } else if self.is_ours(name) {
                let list = if gone { &mut sightings.vanished } else { &mut sightings.appeared };
                list.push(name.to_owned());
            }
        }
        sightings.complete = false;
    }

    fn rescan(&self, sightings: &mut Sightings) {
        // A folder that cannot be read now is read again in a second.
        let Ok(entries) = std::fs::read_dir(SHM_DIR) else { return };
        let mut listing = BTreeSet::new();
        for entry in entries {
            let Ok(entry) = entry else { return };
            let Ok(name) = entry.file_name().into_string() else { continue };
            if self.is_ours(&name) {
                listing.insert(name);
            } else if name.starts_with(&self.request_prefix) && sightings.requests.len() < MAX_REQUESTS {
                sightings.requests.push(name);
            }
        }
        sightings.listing = Some(listing);
    }

    fn is_ours(&self, name: &str) -> bool {
        parse_segment_name(name).is_some_and(|name| name.namespace == self.namespace)
    }
}

fn watch() -> rustix::io::Result<OwnedFd> {
    let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::DELETE | WatchFlags::MOVED_FROM;
    // A process that ends and leaves its segment to its run touches the file.
    let flags = flags | WatchFlags::ATTRIB;
    inotify::add_watch(&inotify, SHM_DIR, flags)?;
    Ok(inotify)
}
