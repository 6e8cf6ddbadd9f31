//! What the report needs of a process. Copied out of its segment when it has ended, so that the memory can be released:
//! a run of many processes must not fill /dev/shm.

use std::collections::BTreeMap;
use std::sync::Arc;

use tt_shm_reader::{Class, Counters, DeviceEntry, Segment};

use crate::escape::Foreign;
use crate::segments::shown_pid;

/// A process of the run.
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
    pub(super) leaks: Vec<Held>,
    /// `None` if its live allocations could not be read.
    pub(super) leaks_exact: Option<bool>,
}

/// Live allocations of one class with the same name and call site.
pub(super) struct Held {
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
        let held = |((device, class, name, site), (bytes, count)): ((_, _, Option<Arc<str>>, _), _)| {
            let site: Option<Arc<str>> = site;
            Held { device, class, name: name.map(Foreign::from), site: site.map(Foreign::from), bytes, count }
        };
        let mut leaks: Vec<Held> = groups.into_iter().map(held).collect();
        leaks.sort_by_key(|held| std::cmp::Reverse(held.bytes));
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
        }
    }

    /// Its counters on a chip, one per entry: each allocator of a chip has an entry.
    pub(super) fn on(&self, chip_id: u64) -> impl Iterator<Item = &Counters> {
        let known = self.devices.iter().zip(self.counters.iter().flatten());
        known.filter(move |(entry, _)| entry.chip_id == chip_id).map(|(_, counters)| counters)
    }
}
