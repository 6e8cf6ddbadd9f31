//! The rings of several processes, merged by time.

use std::io;
use std::time::{Duration, Instant};

use tt_shm_os::Namespace;
use tt_shm_reader::{Segment, segment_paths};

use super::{Seen, Tail};
use crate::directory::Directory;
use crate::private;
use crate::segments::shown_pid;

/// Most events of one process per read, whatever the size of its ring.
const MOST_OF_ONE: u64 = 1 << 16;
/// Most events of all processes per read, unless there are very many processes.
const MOST_OF_ALL: u64 = 1 << 20;
/// Events per read that each of very many processes gets in any case.
const LEAST_OF_ONE: u64 = 1 << 10;

/// How often new processes in containers are looked for: it takes asking the driver who holds a device.
const LOOK_INTO_CONTAINERS: Duration = Duration::from_secs(1);

/// The rings that are followed.
#[derive(Debug)]
pub struct Watch {
    namespace: Namespace,
    /// The processes to follow; all if empty.
    pids: Vec<u32>,
    directory: Directory,
    /// When the private folders of containers were looked at.
    looked: Instant,
    /// One for each process.
    pub tails: Vec<Tail>,
}

impl Watch {
    /// Follows the processes of a namespace, or only those named; no ring yet.
    pub fn new(namespace: &Namespace, pids: &[u32], directory: Directory) -> Watch {
        let (namespace, pids) = (namespace.clone(), pids.to_vec());
        Watch { namespace, pids, directory, looked: Instant::now(), tails: Vec::new() }
    }

    /// Follows these from now on, each from where `begin` starts.
    pub fn add(&mut self, segments: Vec<Segment>, begin: impl Fn(Segment) -> Tail) {
        let wanted: Vec<Tail> =
            segments.into_iter().filter(|segment| self.wants(segment)).map(begin).collect();
        self.tails.extend(wanted);
    }

    fn wants(&self, segment: &Segment) -> bool {
        self.pids.is_empty() || self.pids.contains(&shown_pid(segment))
    }

    /// Finds new processes; their events are shown from the first one on.
    pub fn rescan(&mut self) -> io::Result<()> {
        for path in segment_paths(&self.namespace)? {
            let known = |tail: &Tail| path.file_name().is_some_and(|name| name == tail.segment.file_name());
            if self.tails.iter().any(known) {
                continue;
            }
            // Refused or just gone: reported once at the start, not repeatedly.
            let Ok(segment) = Segment::open(&path) else { continue };
            self.add_new(segment);
        }
        if self.looked.elapsed() >= LOOK_INTO_CONTAINERS {
            self.looked = Instant::now();
            for segment in private::open_all(&self.namespace).into_iter().flatten() {
                let known = |tail: &Tail| tail.segment.identity() == segment.identity();
                if !self.tails.iter().any(known) {
                    self.add_new(segment);
                }
            }
        }
        Ok(())
    }

    fn add_new(&mut self, segment: Segment) {
        if self.wants(&segment) && segment.is_alive().unwrap_or(false) {
            self.tails.push(Tail::from_start(segment));
        }
    }

    /// The devices known so far.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Indices of the rings whose processes have ended. Ask before the last read, then [`Watch::retire`] them.
    pub fn ended(&self) -> Vec<bool> {
        self.tails.iter().map(|tail| !tail.is_alive()).collect()
    }

    /// Removes the rings that had ended.
    pub fn retire(&mut self, ended: &[bool]) -> Vec<Tail> {
        let mut place = 0..;
        let is_over = |_: &mut Tail| place.next().is_some_and(|place| ended.get(place) == Some(&true));
        self.tails.extract_if(.., is_over).collect()
    }

    /// New events of all rings, by time.
    pub fn read(&mut self) -> Vec<Seen> {
        let mut seen: Vec<Seen> = Vec::new();
        let most = (MOST_OF_ALL / self.tails.len().max(1) as u64).clamp(LEAST_OF_ONE, MOST_OF_ONE);
        for tail in &mut self.tails {
            let events = tail.read(most);
            if !events.is_empty() && tail.has_unknown_device(&self.directory) {
                self.directory.add_segment(&tail.segment);
            }
            seen.extend(tail.describe(&events, &self.directory));
        }
        // Stable: events of one process stay in their order also if their times are equal.
        seen.sort_by_key(|event| event.time);
        seen
    }
}
