//! Finds segments as they appear and vanish: inotify, and a look at the folder behind it.

use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use tt_shm_os::{Namespace, SHM_DIR, parse_segment_name};

/// Between two looks at the whole folder, in case inotify missed something.
const RESCAN_NS: u64 = 1_000_000_000;
/// Reads of the inotify queue per look. A flood of files in /dev/shm must not keep us here; what is left
/// over waits for the next look.
const MAX_EVENTS: usize = 4096;

/// Requests taken from one look at the whole folder, which anybody can fill with files that look like them. A
/// new one is noticed by its appearance.
const MAX_REQUESTS: usize = 256;

/// What changed in the folder.
#[derive(Debug, Default)]
pub(crate) struct Sightings {
    pub(crate) appeared: Vec<String>,
    pub(crate) vanished: Vec<String>,
    /// Every segment's name, if the whole folder was read; sorted, so that rows come in the same order.
    pub(crate) listing: Option<BTreeSet<String>>,
    /// Names of files that ask for a new window of peaks.
    pub(crate) requests: Vec<String>,
    /// Whether anything happened in the folder, be it ours or not.
    pub(crate) stirred: bool,
    /// Whether all that there is to see was seen; the rest waits for the next look.
    pub(crate) complete: bool,
    /// Whether names may have come and gone since the last look without a trace.
    pub(crate) untold: bool,
}

/// Watches /dev/shm for one namespace.
#[derive(Debug)]
pub(crate) struct Discovery {
    namespace: Namespace,
    request_prefix: String,
    inotify: Option<OwnedFd>,
    /// Between two looks at the whole folder.
    period: u64,
    next_rescan: u64,
    /// Whether everything since the last look was told.
    told: bool,
}

impl Discovery {
    pub(crate) fn new(namespace: Namespace, request_prefix: String) -> Discovery {
        Discovery { namespace, request_prefix, inotify: None, period: RESCAN_NS, next_rescan: 0, told: false }
    }

    /// Notices changes at once from now on. Where inotify is not to be had, by reading the folder each time.
    pub(crate) fn watch(&mut self) {
        if self.inotify.is_none() && self.period > 0 {
            self.inotify = watch().ok();
            self.period = if self.inotify.is_some() { RESCAN_NS } else { 0 };
            // What changed since the last look, nobody was told.
            self.next_rescan = 0;
        }
    }

    /// What to wait on for the next change; nothing if it is not watched, or inotify is not to be had.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inotify.as_ref().map(AsFd::as_fd)
    }

    /// What changed since the last look.
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
            // Would block: nothing more. Any other error: the rescan is behind it.
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
    // A process of a run that ends and leaves its segment to the run touches it.
    let flags = flags | WatchFlags::ATTRIB;
    inotify::add_watch(&inotify, SHM_DIR, flags)?;
    Ok(inotify)
}
