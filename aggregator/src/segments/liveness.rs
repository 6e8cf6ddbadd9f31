//! Checking which processes are alive, and reclaiming what dead or broken ones held.

use std::path::PathBuf;

use shm_layout::RUN_GRACE_NS;
use shm_layout::table::{notice_kind, process_flags, process_state};
use tt_shm_os::{monotonic_ns, path_of};
use tt_shm_reader::Segment;

use crate::aggregator::Aggregator;
use crate::model::notice::{About, Holdings};
use crate::segments::attach::{CHECK_NS, Fate, MAX_PENDING};
use crate::segments::reap;

/// How long the row of an ended process stays.
const SHOW_ENDED_NS: u64 = 60_000_000_000;
/// The most rows of ended processes.
const MAX_ENDED: usize = 128;
/// How long to wait for the last events of a dead process. They are there at once; only a segment that
/// somebody still writes to without its lock never ends.
const MAX_DYING_NS: u64 = 2_000_000_000;

/// A file that its run is expected to remove. If the run is gone, the aggregator does.
#[derive(Debug)]
pub(crate) struct LeftToRun {
    path: PathBuf,
    inode: reap::Inode,
    until: u64,
}

impl Aggregator {
    /// Asks the kernel which processes are alive, each a few times per second.
    pub(crate) fn check_liveness(&mut self, now: u64) {
        for index in 0..self.followers.len() {
            let follower = &self.followers[index];
            if follower.died.is_some() || (now < follower.next_check && !follower.segment.is_closed()) {
                continue;
            }
            self.look_at(index);
        }
    }

    /// Asks the kernel whether a process is alive, and reads what it reports besides its events. Both at once: whoever
    /// asks puts off the next check, and if that were without reading, a device whose history asks as often as the
    /// check is due would keep it from ever being read.
    fn look_at(&mut self, index: usize) {
        self.followers[index].look();
        self.refresh(index);
    }

    /// Whether there is a dead process whose memory has not been reclaimed.
    pub(crate) fn has_dead(&self) -> bool {
        let unburied = self.followers.iter().any(|follower| follower.died.is_some());
        unburied || !self.dead.is_empty() || self.lost.is_some()
    }

    /// Folds processes that lived and died unfollowed. Requested windows must be open before: the processes
    /// may have been alive in them.
    pub(crate) fn fold_dead(&mut self) {
        for (segment, noticed) in std::mem::take(&mut self.dead) {
            self.report_dead(&segment, noticed);
        }
        if let Some(life) = self.lost.take() {
            self.model.fold_lost(life);
        }
    }

    /// Checks whether all processes are alive that are on a device about which something is to be published
    /// that holds only then; returns whether one is not.
    pub(crate) fn find_dead_holders(&mut self, folded_through: u64) -> bool {
        let mut asked: Vec<usize> = Vec::new();
        for row in 0..self.model.devices.high_water() {
            let Some(device) = self.model.devices.get_mut(row) else { continue };
            if device.take_ask(folded_through) {
                let usages = device.usages.iter().filter_map(|usage| self.model.usages.get(*usage));
                asked.extend(usages.map(|usage| usage.process));
            }
        }
        if asked.is_empty() {
            return false;
        }
        asked.sort_unstable();
        let mut found = false;
        for index in 0..self.followers.len() {
            if asked.binary_search(&self.followers[index].process).is_ok() {
                self.look_at(index);
                found |= self.followers[index].died.is_some();
            }
        }
        found
    }

    /// Reclaims what dead processes held. First folds all of their events, and all events of others from
    /// before their end was noticed, because these happened while the memory was held. Returns how far
    /// everything is folded.
    pub(crate) fn bury_dead(&mut self) -> u64 {
        let followed = self.followers.iter().filter_map(|follower| follower.died);
        let unfollowed = self.dead.iter().map(|(_, noticed)| *noticed).chain(self.lost.map(|life| life.to));
        let noticed = followed.chain(unfollowed).max().unwrap_or(self.model.now);
        let folded_through = self.follow(monotonic_ns(), noticed);
        // A window that was requested while they were alive begins with what they held, even if a flood of
        // events keeps the merge from getting that far. What is folded of the time before counts in it like a
        // late event.
        self.begin_windows(noticed);
        let now = monotonic_ns();
        let mut index = 0;
        while let Some(follower) = self.followers.get(index) {
            let waited = |died: u64| follower.is_done() || now > died.saturating_add(MAX_DYING_NS);
            if follower.died.is_some_and(waited) {
                self.refresh(index);
                self.reclaim(index, now);
            } else {
                index += 1;
            }
        }
        self.fold_dead();
        folded_through
    }

    fn reclaim(&mut self, index: usize, now: u64) {
        let follower = self.followers.swap_remove(index);
        let held = self.model.holdings(follower.process);
        let noticed = follower.died.unwrap_or(now);
        let closed = follower.segment.closed_at().filter(|_| follower.clock.is_some());
        let closed = closed.map(|ticks| self.model.clock.to_ns(follower.clock, ticks));
        // Whatever it claims: no segment is closed before its last event or after its end was noticed.
        let last_event =
            self.model.processes.get(follower.process).map_or(0, |process| process.stats.last_event);
        let closed = closed.map(|closed| closed.min(noticed).max(last_event));
        let observer = self.config.observer.as_deref_mut();
        if follower.is_done() {
            self.model.bury(follower.process, closed, follower.seen_alive, noticed);
            if let Some(observer) = observer {
                observer.ended(&follower.segment, closed.unwrap_or(noticed));
            }
        } else {
            // Something writes to it without the lock: what is not folded by now never will be.
            self.model.disown(follower.process, follower.attached);
            if let Some(observer) = observer {
                observer.broke(&follower.segment);
            }
        }
        let generation = self.model.mark_changed();
        if let Some(process) = self.model.processes.change(generation, follower.process) {
            process.stats.state = process_state::ENDED;
            process.stats.ended = now;
            process.stats.flags &= !process_flags::UNLINKED;
            process.stats.flags |= if follower.segment.is_closed() { process_flags::CLOSED } else { 0 };
        }
        self.report_reclaim(&follower.segment, &held, now);
        self.reap(&follower.segment);
    }

    /// Reports what a dead process held, unless it closed its segment and held nothing.
    pub(crate) fn report_reclaim(&mut self, segment: &Segment, held: &Holdings, now: u64) {
        let (pid, uid, file) = (segment.pid(), segment.uid(), segment.file_name());
        let closed = segment.is_closed();
        if !(closed && held.is_empty()) {
            let generation = self.model.mark_changed();
            self.model.notices.reclaimed(generation, About { pid: u64::from(pid), uid, file }, now, held);
        }
        let how = if closed { "closed" } else { "died" };
        let held = held.describe();
        self.config.log.line(format_args!("end pid {pid} uid {uid} ({file}) {how}, reclaimed: {held}"));
    }

    /// Removes the file of a dead process if it is ours to remove; otherwise remembers to leave it alone.
    pub(crate) fn reap(&mut self, segment: &Segment) {
        // It is in a container, where nothing is ours.
        if segment.is_private() {
            return;
        }
        let ours = self.uid == 0 || self.uid == segment.uid();
        let path = path_of(segment.file_name());
        let inode = segment.inode();
        let gone = reap::inode_at(&path) != Some(inode);
        let may = self.config.reap && ours;
        let left = segment.header().is_left_to_run(self.model.now);
        // It stays known until its removal is noticed, so that earlier notifications about it are ignored.
        self.known.insert(segment.file_name().to_owned(), Fate::LeftAlone);
        if gone || (may && !left && reap::reap(&path, inode)) {
            return;
        }
        // Beyond this number, the next tracker finds them.
        if may && left && self.left_to_runs.len() < MAX_PENDING {
            let until = segment.header().anchor_monotonic_ns.saturating_add(RUN_GRACE_NS);
            self.left_to_runs.push(LeftToRun { path, inode, until });
        }
    }

    /// Stops following a segment with impossible values. Its figures leave all totals, and nothing else
    /// changes.
    pub(crate) fn break_off(&mut self, index: usize, why: &str) {
        let follower = &mut self.followers[index];
        follower.give_up();
        let (process, pid, uid) = (follower.process, follower.segment.pid(), follower.segment.uid());
        let (file, attached) = (follower.segment.file_name().to_owned(), follower.attached);
        self.model.disown(process, attached);
        if let Some(observer) = self.config.observer.as_deref_mut() {
            observer.broke(&follower.segment);
        }
        let (generation, now) = (self.model.mark_changed(), self.model.now);
        if let Some(process) = self.model.processes.change(generation, process) {
            process.stats.flags |= process_flags::BROKEN;
        }
        let about = About { pid: u64::from(pid), uid, file: &file };
        self.model.notices.reason(generation, notice_kind::BROKEN, about, now, why);
        self.config.log.line(format_args!("broken pid {pid} uid {uid} ({file}): {why}"));
    }

    /// Frees the rows of processes that ended long ago, and of the oldest if there are too many.
    pub(crate) fn expire(&mut self, now: u64) {
        if now < self.next_expiry {
            return;
        }
        self.next_expiry = now + CHECK_NS;
        self.left_to_runs.retain(|file| {
            let over = now >= file.until;
            if over {
                reap::reap(&file.path, file.inode);
            }
            !over
        });
        let values = self.model.processes.values();
        let mut ended: Vec<(u64, usize)> =
            values.filter(|(_, p)| p.stats.ended != 0).map(|(row, p)| (p.stats.ended, row)).collect();
        ended.sort_unstable();
        let surplus = ended.len().saturating_sub(MAX_ENDED);
        for (number, (time, row)) in ended.into_iter().enumerate() {
            if number < surplus || now > time.saturating_add(SHOW_ENDED_NS) {
                let generation = self.model.mark_changed();
                self.model.processes.remove(generation, row);
            }
        }
    }
}
