//! The model as rows: what the table holds, and what an embedded aggregator shows.

use shm_layout::table::{Bucket, MAX_USAGES};
use tt_shm_os::monotonic_ns;
use tt_shm_reader::{Freshness, TableSnapshot};

use crate::aggregator::{Aggregator, LONG_SLEEP};
use crate::segments::attach::Fate;

impl Aggregator {
    /// Everything that is known now: the same that a reader gets from the table.
    pub fn snapshot(&self) -> TableSnapshot {
        let model = &self.model;
        let devices = model.devices.iter();
        let devices = devices.filter_map(|(row, g, device)| Some((row, model.device_stats(g, device?))));
        let processes = model.processes.iter();
        let processes = processes.filter_map(|(row, g, p)| Some((row, model.process_stats(g, p?))));
        let usages = model.usages.iter();
        let usages =
            usages.take(MAX_USAGES).filter_map(|(row, g, usage)| Some((row, model.usage_stats(g, usage?))));
        TableSnapshot {
            generation: model.generation(),
            consistent: true,
            devices: devices.collect(),
            processes: processes.collect(),
            usages: usages.collect(),
            notices: model.notices.newest_first(),
            failures: model.failures.newest_first(),
            events: model.totals.events,
            missed: model.totals.missed,
            late: model.totals.late,
            lost: model.totals.lost,
            as_of: model.as_of,
            refused: self.refused(),
            window_since: model.window.since,
            windows: model.window.count,
            overflow: model.overflow(),
            unseen: self.unseen(),
            publish_errors: 0,
            incomplete_since: None,
            clock_steps: model.clock.steps(),
            awake_since: model.clock.awake_since(),
            gap: model.window.gap,
            freshness: self.freshness(),
        }
    }

    /// A device's history at a resolution (0 a minute, 1 an hour, 2 a day), oldest first.
    pub fn history(&self, device: usize, resolution: usize) -> Vec<Bucket> {
        self.model.devices.get(device).map_or(Vec::new(), |device| device.history.buckets(resolution))
    }

    /// Files refused at this moment.
    pub(crate) fn refused(&self) -> u64 {
        self.known.values().filter(|fate| matches!(fate, Fate::Refused(..) | Fate::Waiting)).count() as u64
    }

    /// Segments that may hold memory and could not be read.
    pub(crate) fn unread(&self) -> u64 {
        let may_hold =
            |fate: &&Fate| matches!(fate, Fate::Hidden(_) | Fate::Refused(_, true) | Fate::Waiting);
        let kept_out = self.known.values().filter(may_hold).count();
        let broken = self.followers.iter().filter(|follower| follower.broken).count();
        let unopened = self.pending.iter().filter(|name| !self.known.contains_key(*name)).count();
        (kept_out + broken + unopened) as u64 + self.unseen()
    }

    fn freshness(&self) -> Freshness {
        let (heartbeat_ns, now) = (self.model.now, monotonic_ns());
        Freshness {
            heartbeat_ns,
            age_ns: now.saturating_sub(heartbeat_ns),
            closed: false,
            interval_ns: LONG_SLEEP.as_nanos() as u64,
        }
    }
}
