//! What may be a leak: groups of allocations that only ever become more.
//!
//! A group is what one process allocates in one class at one place in the code; where that is not recorded, under
//! one name and of about one size. It is a suspect if
//!
//! - its number has risen at least [`RISES`] times, at one look each, and has never fallen meanwhile,
//! - that began at least [`AT_LEAST_NS`] ago, and
//! - it goes on: the last rise is no longer ago than a minute, or twice the usual time between two rises.
//!
//! Any fall begins the count anew: caches and pools go up and down. What is loaded once, such as weights, rises
//! too, but ends; it is no suspect any more a minute later. A list that is not exact is no evidence: it leaves
//! its process as it was. Who did not look for over [`BLIND_NS`] does not know what fell meanwhile and begins
//! anew. All that remains a suspicion: a cache that is still filling looks the same.

use std::collections::HashMap;

use tt_shm_reader::Class;

use super::allocations::{Item, Listing};
use super::groups::{Key, power, quoted};
use crate::escape::Foreign;

/// Rises before anybody is suspected.
pub const RISES: u64 = 5;
/// How long they must have taken.
pub const AT_LEAST_NS: u64 = 60_000_000_000;
/// A longer time without a look makes all that was known worthless.
pub const BLIND_NS: u64 = 60_000_000_000;
/// Looks at shorter distances are not worth their time.
const BETWEEN_NS: u64 = 900_000_000;

/// What the allocations of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Their process.
    pub pid: u32,
    /// Their class.
    pub class: Class,
    /// Where they come from.
    pub place: Place,
}

/// Where allocations come from, as far as that is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The place in the code.
    Site(Foreign),
    /// Their name, if they have one, and their size down to a power of two.
    Like(Option<Foreign>, u64),
}

impl Origin {
    fn of(item: &Item) -> Origin {
        let like = || Place::Like(item.name.clone(), power(item.size));
        let place = item.site.clone().map_or_else(like, Place::Site);
        Origin { pid: item.pid, class: item.class, place }
    }

    /// The query that asks for these.
    pub fn query(&self) -> String {
        let place = match &self.place {
            Place::Site(site) => format!("site={}", quoted(site)),
            Place::Like(name, size) => {
                format!("{} {}", Key::Name(name.clone()).query(), Key::Size(*size).query())
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

/// A group since it last fell.
#[derive(Clone, Copy, Debug)]
struct Track {
    since_ns: u64,
    first: Tally,
    last: Tally,
    rises: u64,
    rose_ns: u64,
}

/// A group that may be a leak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// What it is.
    pub origin: Origin,
    /// Live now.
    pub count: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// More than when it began to rise.
    pub more: u64,
    /// Bytes more.
    pub more_bytes: u64,
    /// How long it has been rising.
    pub for_ns: u64,
}

/// What was seen of all groups.
#[derive(Debug, Default)]
pub struct Suspects {
    tracks: HashMap<Origin, Track>,
    looked_ns: Option<u64>,
}

impl Suspects {
    /// Takes in what is live at a time; ignored if that is right after the last one.
    pub fn look(&mut self, listing: &Listing, now_ns: u64) {
        let since = self.looked_ns.map(|looked| now_ns.saturating_sub(looked));
        if since.is_some_and(|since| since < BETWEEN_NS) {
            return;
        }
        if since.is_some_and(|since| since > BLIND_NS) {
            self.tracks.clear();
        }
        self.looked_ns = Some(now_ns);
        let mut tallies: HashMap<Origin, Tally> = HashMap::new();
        for item in &listing.items {
            let tally = tallies.entry(Origin::of(item)).or_default();
            tally.count += 1;
            tally.bytes = tally.bytes.saturating_add(item.size);
        }
        let is_exact = |pid: &u32| !listing.inexact_pids.contains(pid);
        self.tracks.retain(|origin, _| tallies.contains_key(origin) || !is_exact(&origin.pid));
        for (origin, tally) in tallies.into_iter().filter(|(origin, _)| is_exact(&origin.pid)) {
            let track = self.tracks.entry(origin).or_insert_with(|| Track::new(tally, now_ns));
            track.take(tally, now_ns);
        }
    }

    /// Who is suspected at this time, those that grew most first.
    pub fn suspects(&self) -> Vec<Suspect> {
        let now_ns = self.looked_ns.unwrap_or(0);
        let suspected = self.tracks.iter().filter(|(_, track)| track.is_suspect(now_ns));
        let mut suspects: Vec<Suspect> =
            suspected.map(|(origin, track)| track.suspect(origin, now_ns)).collect();
        let rank = |suspect: &Suspect| (suspect.more_bytes, suspect.more, suspect.origin.pid);
        suspects.sort_by_key(|suspect| std::cmp::Reverse(rank(suspect)));
        suspects
    }

    /// Whether something belongs to a group that is suspected.
    pub fn is_suspect(&self, item: &Item) -> bool {
        let track = self.tracks.get(&Origin::of(item));
        track.is_some_and(|track| track.is_suspect(self.looked_ns.unwrap_or(0)))
    }
}

impl Track {
    fn new(tally: Tally, now_ns: u64) -> Track {
        Track { since_ns: now_ns, first: tally, last: tally, rises: 0, rose_ns: now_ns }
    }

    fn take(&mut self, tally: Tally, now_ns: u64) {
        match tally.count.cmp(&self.last.count) {
            std::cmp::Ordering::Less => *self = Track::new(tally, now_ns),
            std::cmp::Ordering::Equal => self.last = tally,
            std::cmp::Ordering::Greater => {
                (self.rises, self.rose_ns) = (self.rises + 1, now_ns);
                self.last = tally;
            }
        }
    }

    fn is_suspect(&self, now_ns: u64) -> bool {
        let rising_ns = self.rose_ns.saturating_sub(self.since_ns);
        let usual_ns = rising_ns / self.rises.max(1);
        let quiet_ns = now_ns.saturating_sub(self.rose_ns);
        self.rises >= RISES && rising_ns >= AT_LEAST_NS && quiet_ns <= AT_LEAST_NS.max(2 * usual_ns)
    }

    fn suspect(&self, origin: &Origin, now_ns: u64) -> Suspect {
        Suspect {
            origin: origin.clone(),
            count: self.last.count,
            bytes: self.last.bytes,
            more: self.last.count.saturating_sub(self.first.count),
            more_bytes: self.last.bytes.saturating_sub(self.first.bytes),
            for_ns: now_ns.saturating_sub(self.since_ns),
        }
    }
}

#[cfg(test)]
mod tests;
