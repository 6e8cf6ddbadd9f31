//! Leak suspects: groups of allocations that only ever grow.
//!
//! A group is what one process allocates in one class at one call site or, if that is not recorded, under one name and
//! of about one size. It is a suspect over time if
//!
//! - its count rose in at least [`RISES`] reads, and never fell in between,
//! - that took at least [`AT_LEAST_NS`], and
//! - it is still rising: the last rise is at most a minute ago, or twice the usual time between two rises.
//!
//! If its process marks the ends of steps, it is a suspect over steps if the same holds for the allocations that
//! outlived the last step, with [`STEPS`] steps in place of the minute. Allocations made and freed within a step do not
//! count, however many of them a read sees. Only steps followed by a read count: what was freed between the end of a
//! step and the read is unknown, and in a few reads chance could look like a rise.
//!
//! Any fall restarts the count: caches and pools go up and down. What is loaded once, such as weights, rises too, but
//! stops; it is no longer a suspect a minute, or that many steps, later. A list that is not exact is no evidence and
//! leaves the state of its process unchanged. After more than [`BLIND_NS`] without a read everything restarts, because
//! falls may have been missed. A suspect is not proof: a cache that is still filling looks the same.

pub mod steps;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use tt_shm_reader::Class;

use super::allocations::{Item, Listing};
use super::groups::{GroupKey, power, quoted};
use crate::escape::{Foreign, fit};
use crate::units::{age, plural};
use steps::StepEnd;

/// Number of rises that make a suspect.
pub const RISES: u64 = 5;
/// How long they must have taken.
pub const AT_LEAST_NS: u64 = 60_000_000_000;
/// How many steps they must have taken, if steps are marked: those followed by a read.
pub const STEPS: u64 = 10;
/// After a longer time without a read, everything restarts.
pub const BLIND_NS: u64 = 60_000_000_000;
/// Reads at shorter intervals are ignored.
const BETWEEN_NS: u64 = 900_000_000;

/// What the allocations of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeakOrigin {
    pub pid: u32,
    pub class: Class,
    /// Where they come from.
    pub place: Place,
}

/// Where allocations come from, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The call site.
    Site(Foreign),
    /// Their name, if they have one, and their size down to a power of two.
    Like(Option<Foreign>, u64),
}

impl LeakOrigin {
    fn of(item: &Item) -> LeakOrigin {
        let like = || Place::Like(item.name.clone(), power(item.size));
        let place = item.site.clone().map_or_else(like, Place::Site);
        LeakOrigin { pid: item.pid, class: item.class, place }
    }

    /// The query that matches these.
    pub fn query(&self) -> String {
        let place = match &self.place {
            Place::Site(site) => format!("site={}", quoted(site)),
            Place::Like(name, size) => {
                format!("{} {}", GroupKey::Name(name.clone()).query(), GroupKey::Size(*size).query())
            }
        };
        format!("pid={} class={} {place}", self.pid, self.class.name())
    }
}

/// Number and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    count: u64,
    bytes: u64,
}

/// A count since it last fell, over time or over steps.
#[derive(Clone, Copy, Debug)]
struct Course {
    since: u64,
    first: Tally,
    last: Tally,
    rises: u64,
    rose: u64,
}

/// A group.
#[derive(Clone, Copy, Debug)]
struct Track {
    /// All of it, by nanoseconds.
    time: Course,
    /// What outlived a step, by the number of steps.
    steps: Option<Course>,
}

/// A process that marks its steps.
#[derive(Clone, Copy, Debug)]
struct Stepped {
    end: StepEnd,
    /// Number of steps followed by a read.
    looks: u64,
    /// Whether this is the first read after the step.
    is_new: bool,
}

/// The live allocations of a group.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    all: Tally,
    /// Of these, older than the end of the last step.
    outlived: Tally,
}

/// A group that may be a leak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    pub origin: LeakOrigin,
    /// Live now.
    pub count: u64,
    pub bytes: u64,
    /// More than when it began to rise.
    pub more: u64,
    /// Bytes more.
    pub more_bytes: u64,
    /// How long it has been rising.
    pub for_ns: u64,
    /// Number of steps, if it is a suspect over steps; the figures are then those of what outlived them.
    pub steps: Option<u64>,
}

impl Suspect {
    /// Where they are made, or what they are called; at most `width` columns of a name of somebody else's.
    pub(crate) fn called(&self, width: usize) -> String {
        match &self.origin.place {
            Place::Site(site) => format!("at {}", fit(site, width)),
            Place::Like(Some(name), _) => fit(name, width),
            Place::Like(None, _) => "buffers without a name".to_owned(),
        }
    }

    /// A duration, or a number of steps.
    pub(crate) fn over(&self) -> String {
        self.steps.map_or_else(|| age(self.for_ns), |steps| plural(steps, "step"))
    }
}

/// A hash of addresses and sizes that nobody chooses to collide.
#[derive(Default)]
struct Quick(u64);

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, number: u64) {
        // The high bits of a product depend on all bits; the table uses low and high ones.
        let mixed = (self.0.rotate_left(26) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}

/// The state of all groups.
#[derive(Debug, Default)]
pub struct Suspects {
    tracks: HashMap<LeakOrigin, Track>,
    looked_ns: Option<u64>,
    /// By process.
    steps: HashMap<u32, Stepped>,
}

impl Suspects {
    /// Takes in a list and the steps that had ended by then; ignored if it is too soon after the last one.
    pub fn look(&mut self, listing: &Listing, ends: &[StepEnd], now_ns: u64) {
        let since = self.looked_ns.map(|looked| now_ns.saturating_sub(looked));
        if since.is_some_and(|since| since < BETWEEN_NS) {
            return;
        }
        if since.is_some_and(|since| since > BLIND_NS) {
            self.tracks.clear();
        }
        self.looked_ns = Some(now_ns);
        self.steps = ends.iter().map(|end| (end.pid, self.stepped(*end))).collect();
        let groups = self.groups(listing);
        let is_exact = |pid: &u32| !listing.inexact_pids.contains(pid);
        self.tracks.retain(|origin, _| groups.contains_key(origin) || !is_exact(&origin.pid));
        for (origin, found) in groups.into_iter().filter(|(origin, _)| is_exact(&origin.pid)) {
            let steps = self.steps.get(&origin.pid);
            let track = self.tracks.entry(origin).or_insert_with(|| Track::new(found, now_ns));
            track.take(found, now_ns, steps);
        }
    }

    /// The live allocations of each group. Names of a listing are shared, so they are told apart by where they are, and
    /// read once for each group instead of once for each allocation.
    fn groups(&self, listing: &Listing) -> HashMap<LeakOrigin, Found> {
        let place = |text: &Option<Foreign>| text.as_ref().map_or(0, |text| text.raw().as_ptr() as usize);
        let mut found: HashMap<_, (&Item, Found), BuildHasherDefault<Quick>> = HashMap::default();
        let mut steps: Option<(u32, Option<u64>)> = None;
        for item in &listing.items {
            let size = if item.site.is_none() { power(item.size) } else { 0 };
            let name = if item.site.is_none() { place(&item.name) } else { 0 };
            let key = (place(&item.site), name, size, u64::from(item.pid) << 8 | item.class as u64);
            let (_, found) = found.entry(key).or_insert_with(|| (item, Found::default()));
            found.all.add(item);
            let ended_ns = match steps {
                Some((pid, ended_ns)) if pid == item.pid => ended_ns,
                _ => self.steps.get(&item.pid).map(|steps| steps.end.age_ns),
            };
            steps = Some((item.pid, ended_ns));
            if ended_ns.is_some_and(|ended_ns| item.age_ns >= ended_ns) {
                found.outlived.add(item);
            }
        }
        let mut groups: HashMap<LeakOrigin, Found> = HashMap::new();
        for (item, found) in found.into_values() {
            let group = groups.entry(LeakOrigin::of(item)).or_default();
            group.all.join(found.all);
            group.outlived.join(found.outlived);
        }
        groups
    }

    fn stepped(&self, end: StepEnd) -> Stepped {
        let before = self.steps.get(&end.pid);
        let is_new = before.is_none_or(|before| before.end.ended != end.ended);
        Stepped { end, looks: before.map_or(0, |before| before.looks) + u64::from(is_new), is_new }
    }

    /// Number of steps of a group's process followed by a read.
    fn looks(&self, origin: &LeakOrigin) -> Option<u64> {
        self.steps.get(&origin.pid).map(|steps| steps.looks)
    }

    /// The current suspects, largest growth first.
    pub fn suspects(&self) -> Vec<Suspect> {
        let now_ns = self.looked_ns.unwrap_or(0);
        let suspect =
            |(origin, track): (&LeakOrigin, &Track)| track.suspect(origin, now_ns, self.looks(origin));
        let mut suspects: Vec<Suspect> = self.tracks.iter().filter_map(suspect).collect();
        let rank = |suspect: &Suspect| (suspect.more_bytes, suspect.more, suspect.origin.pid);
        suspects.sort_by_key(|suspect| std::cmp::Reverse(rank(suspect)));
        suspects
    }

    /// Whether an allocation belongs to a suspect.
    pub fn is_suspect(&self, item: &Item) -> bool {
        let origin = LeakOrigin::of(item);
        let (now_ns, looks) = (self.looked_ns.unwrap_or(0), self.looks(&origin));
        self.tracks.get(&origin).is_some_and(|track| track.is_suspect(now_ns, looks))
    }
}

impl Tally {
    fn add(&mut self, item: &Item) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(item.size);
    }

    fn join(&mut self, other: Tally) {
        self.count += other.count;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    fn more_than(self, first: Tally) -> Tally {
        Tally { count: self.count.saturating_sub(first.count), bytes: self.bytes.saturating_sub(first.bytes) }
    }
}

impl Course {
    fn new(tally: Tally, at: u64) -> Course {
        Course { since: at, first: tally, last: tally, rises: 0, rose: at }
    }

    fn take(&mut self, tally: Tally, at: u64) {
        match tally.count.cmp(&self.last.count) {
            std::cmp::Ordering::Less => *self = Course::new(tally, at),
            std::cmp::Ordering::Equal => self.last = tally,
            std::cmp::Ordering::Greater => {
                (self.rises, self.rose) = (self.rises + 1, at);
                self.last = tally;
            }
        }
    }

    /// Whether it has risen often enough, for long enough, and is still rising.
    fn is_suspect(&self, at: u64, least: u64) -> bool {
        let rising = self.rose.saturating_sub(self.since);
        let usual = rising / self.rises.max(1);
        let quiet = at.saturating_sub(self.rose);
        self.rises >= RISES && rising >= least && quiet <= least.max(2 * usual)
    }
}

impl Track {
    fn new(found: Found, now_ns: u64) -> Track {
        Track { time: Course::new(found.all, now_ns), steps: None }
    }

    fn take(&mut self, found: Found, now_ns: u64, steps: Option<&Stepped>) {
        self.time.take(found.all, now_ns);
        match (&mut self.steps, steps) {
            (steps, None) => *steps = None,
            // Within a step there is nothing to compare.
            (Some(course), Some(steps)) if steps.is_new => course.take(found.outlived, steps.looks),
            (Some(_), Some(_)) => {}
            (none, Some(steps)) => *none = Some(Course::new(found.outlived, steps.looks)),
        }
    }

    fn over_steps(&self, looks: Option<u64>) -> Option<(Course, u64)> {
        let (course, looks) = (self.steps?, looks?);
        course.is_suspect(looks, STEPS).then(|| (course, looks.saturating_sub(course.since)))
    }

    fn is_suspect(&self, now_ns: u64, looks: Option<u64>) -> bool {
        self.time.is_suspect(now_ns, AT_LEAST_NS) || self.over_steps(looks).is_some()
    }

    fn suspect(&self, origin: &LeakOrigin, now_ns: u64, looks: Option<u64>) -> Option<Suspect> {
        let over_steps = self.over_steps(looks);
        if over_steps.is_none() && !self.time.is_suspect(now_ns, AT_LEAST_NS) {
            return None;
        }
        let course = over_steps.map_or(self.time, |(course, _)| course);
        let more = course.last.more_than(course.first);
        Some(Suspect {
            origin: origin.clone(),
            count: self.time.last.count,
            bytes: self.time.last.bytes,
            more: more.count,
            more_bytes: more.bytes,
            for_ns: now_ns.saturating_sub(self.time.since),
            steps: over_steps.map(|(_, steps)| steps),
        })
    }
}

#[cfg(test)]
mod tests;
