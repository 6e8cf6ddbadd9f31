//! Deciding what to do with a file that looks like a segment: follow it, refuse it, or reclaim it.

use std::collections::BTreeSet;
use std::path::Path;

use rustix::fs::Stat;
use shm_layout::control::Anomaly;
use shm_layout::protocol::observe::Slot;
use shm_layout::table::{MAX_PROCESSES, ProcessStats, notice_kind, process_flags, process_state};
use shm_layout::{Counters, text};
use tt_shm_os::{ClockKind, monotonic_ns, parse_segment_name, path_of};
use tt_shm_reader::{FileError, OpenError, Segment, is_held};

use crate::aggregator::Aggregator;
use crate::model::figures::{Share, own_peaks};
use crate::model::notice::{About, Holdings};
use crate::model::slice::Span;
use crate::segments::clock::Step;
use crate::segments::discover::Sightings;
use crate::segments::follower::{Follower, SeenBefore, last_counters};
use crate::segments::unseen::check_unseen;
use crate::segments::{readback, reap};

/// The segments that each user other than our own may have, so that one user cannot take all process rows.
const FOREIGN_SEGMENTS: usize = MAX_PROCESSES / 2;
/// The segments in the private /dev/shm of one container.
const PRIVATE_SEGMENTS: usize = MAX_PROCESSES / 8;
/// The bytes that the segments of one other user may map. Address space, not memory.
const FOREIGN_BYTES: u64 = 1 << 40;
/// The files opened per poll, so that a poll takes a bounded time; the rest waits.
pub(crate) const MAX_OPENS: usize = 64;
/// The names that wait to be opened. Names beyond this are forgotten, and found again by the next scan of the
/// folder if they are still there.
pub(crate) const MAX_PENDING: usize = 4096;
/// The refused names that are tried again at each scan of the folder.
const MAX_RETRIES: usize = 256;
/// The names whose fate is remembered. Beyond this it is determined again each time, for a bounded number per
/// scan.
const MAX_KNOWN: usize = 1 << 16;
/// The refusals logged between two scans of the folder. All are counted.
const MAX_REFUSAL_LINES: u32 = 32;
/// The time between two checks of a segment's lock.
pub(crate) const CHECK_NS: u64 = 250_000_000;

/// What was decided about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Followed,
    /// Refused for its content; tried again when the file has changed. The flag tells whether a process may
    /// be alive behind it.
    Refused(Mark, bool),
    /// Refused for lack of quota or system resources; tried again at every scan of the folder.
    Waiting,
    /// Not readable; tried again when that has changed.
    Hidden(Mark),
    /// Left behind by a dead process, and not ours to remove.
    LeftAlone,
}

/// Identifies a state of a file: inode, mode, length, and when its content and its metadata last changed. A
/// store through a mapping does not show here, so a file that is refused and then filled is not noticed;
/// honest segments are complete before they get a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    inode: (u64, u64),
    mode: u32,
    len: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Mark {
    /// The mark of the file at a path. A file that is gone has a default mark, which differs from all others.
    fn of(path: &Path) -> Mark {
        rustix::fs::lstat(path).as_ref().map(Mark::from).unwrap_or_default()
    }

    pub(crate) fn inode(&self) -> reap::Inode {
        self.inode
    }
}

impl From<&Stat> for Mark {
    fn from(stat: &Stat) -> Mark {
        Mark {
            inode: (stat.st_dev, stat.st_ino),
            mode: stat.st_mode,
            len: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
        }
    }
}

impl Aggregator {
    /// Looks for files that appeared or vanished; returns whether there were any.
    pub(crate) fn find(&mut self, now: u64) -> bool {
        let Sightings { appeared, mut vanished, listing, requests, stirred, complete, untold } =
            self.discovery.look(now);
        self.stirred = stirred;
        if untold && !self.starting && !self.config.published {
            self.doubt_since_last_find();
        }
        self.note_step(now);
        if let Some(listing) = listing {
            self.refusal_lines = 0;
            check_unseen(self, now);
            vanished.extend(self.known.keys().filter(|name| !listing.contains(*name)).cloned());
            self.queue_listing(listing);
        }
        let found = !appeared.is_empty() || !vanished.is_empty();
        // A process that ends touches its file, which may be seen only after it was reclaimed and its file
        // removed.
        let done: BTreeSet<String> = vanished.into_iter().filter(|name| self.vanish(name, now)).collect();
        self.pending.extend(appeared);
        self.pending.retain(|name| !done.contains(name));
        self.pending.truncate(MAX_PENDING);
        for _ in 0..MAX_OPENS {
            let Some(name) = self.pending.pop_front() else { break };
            self.last_considered.clone_from(&name);
            self.consider(name, now);
        }
        let found = self.find_in_containers(now) || found;
        self.stirred |= self.containers.stirred();
        if complete && self.pending.is_empty() && !self.containers.is_waiting() {
            self.last_find = now;
        }
        let asked = |name: &String| crate::table::reset::take_request(name, self.uid);
        // All requests are taken; one window serves all that came at the same time.
        if self.config.accept_resets && requests.iter().filter(|name| asked(name)).count() > 0 {
            self.reset_window();
        }
        found
    }

    /// Reports that a clock stepped.
    fn note_step(&mut self, now: u64) {
        let Some((step, since)) = self.model.clock.take_step() else { return };
        self.model.doubt_order(Span { from: since, to: now });
        let what = match step {
            Step::Back => "went back: earlier times are not known".to_owned(),
            Step::Ahead(ns) => format!("ran ahead by {ns} ns: times around that moment are uncertain"),
            Step::Behind(ns) => format!("fell behind by {ns} ns: times around that moment are uncertain"),
        };
        let why = format!("the clock of events {what} (suspended, migrated, or not a stable clock)");
        let generation = self.model.mark_changed();
        let about = About { pid: 0, uid: self.uid, file: "" };
        self.model.notices.reason(generation, notice_kind::CLOCK, about, now, &why);
        self.config.log.line(format_args!("{why}"));
    }

    /// Queues unknown names, then some of the refused ones; of each, those of our own user first. Each scan
    /// continues behind the last name considered, so every file gets its turn however many files somebody
    /// makes and however they sort.
    fn queue_listing(&mut self, listing: BTreeSet<String>) {
        let (mut fresh, mut waiting) = (Vec::new(), Vec::new());
        for name in listing {
            match self.known.get(&name) {
                None => fresh.push(name),
                Some(Fate::Waiting | Fate::Refused(..) | Fate::Hidden(_)) => waiting.push(name),
                Some(Fate::Followed | Fate::LeftAlone) => {}
            }
        }
        // The sort is stable: within each half the names stay in order.
        for names in [&mut fresh, &mut waiting] {
            let turn = |name: &String| (self.is_foreign(name), *name <= self.last_considered);
            names.sort_by_cached_key(turn);
        }
        waiting.truncate(MAX_RETRIES);
        // Names that still waited are in the listing.
        self.pending = fresh.into();
        self.pending.truncate(MAX_PENDING - MAX_RETRIES);
        self.pending.extend(waiting);
    }

    fn is_foreign(&self, name: &str) -> bool {
        rustix::fs::lstat(path_of(name)).map_or(true, |stat| stat.st_uid != self.uid)
    }

    /// Handles a name that is gone. Its process may still be alive (systemd removes files of users who logged
    /// out). Returns whether the file was known.
    fn vanish(&mut self, name: &str, now: u64) -> bool {
        let path = path_of(name);
        let mut followers = self.followers.iter_mut().filter(|follower| !follower.segment.is_private());
        let follower = followers.find(|follower| follower.segment.file_name() == name);
        if let Some(follower) = follower {
            if reap::inode_at(&path) == Some(follower.segment.inode()) {
                return false;
            }
            follower.next_check = now;
            let generation = self.model.mark_changed();
            if let Some(process) = self.model.processes.change(generation, follower.process) {
                process.stats.flags |= process_flags::UNLINKED;
            }
        }
        self.known.remove(name).is_some()
    }

    fn consider(&mut self, name: String, now: u64) {
        let path = path_of(&name);
        // Taken before the file is opened, so that a change meanwhile is noticed.
        let mark = Mark::of(&path);
        let before = self.known.get(&name).copied();
        match before {
            None | Some(Fate::Waiting) => {}
            Some(Fate::Refused(old, _) | Fate::Hidden(old)) if old != mark => {}
            Some(Fate::Refused(_, true)) if !is_held(&path) => {
                // The same file, but its process is no longer alive.
                self.known.insert(name, Fate::Refused(mark, false));
                return;
            }
            Some(_) => return,
        }
        let (fate, why) = match Segment::open(&path) {
            Ok(segment) => self.admit(segment, now),
            Err(error) if error.is_not_found() => return self.lose(),
            Err(error) if error.is_permission_denied() => (Fate::Hidden(mark), None),
            // Possibly too many open files, or no memory for a mapping.
            Err(error @ OpenError::File(FileError::Open { .. } | FileError::Map { .. })) => {
                (Fate::Waiting, Some(reason(&error, &path)))
            }
            Err(error) => (Fate::Refused(mark, error.may_live(&path)), Some(reason(&error, &path))),
        };
        // Report it once, not with every try.
        let again = before == Some(Fate::Waiting) && fate == Fate::Waiting;
        match why {
            Some(why) if !again => self.refuse(&name, &why, now),
            None if before.is_some() => {
                let generation = self.model.mark_changed();
                self.model.notices.withdraw(generation, &name);
            }
            _ => {}
        }
        if fate == Fate::Followed || self.known.len() < MAX_KNOWN {
            self.known.insert(name, fate);
        }
    }

    pub(crate) fn admit(&mut self, segment: Segment, now: u64) -> (Fate, Option<String>) {
        if self.followers.iter().any(|follower| follower.segment.inode() == segment.inode()) {
            return (Fate::Followed, None);
        }
        if !self.config.only.wants(&segment) {
            return (Fate::LeftAlone, None);
        }
        if let Some(why) = self.over_cap(&segment) {
            return (Fate::Waiting, Some(why));
        }
        if self.starting {
            let started = segment.header().anchor_monotonic_ns;
            self.model.window.reach_back(if segment.shares_clock() { started } else { now });
        }
        match segment.is_alive() {
            Ok(true) => self.attach(segment, now),
            Ok(false) if self.can_replay(&segment) => self.replay(segment, now),
            Ok(false) => {
                self.dead.push((segment, monotonic_ns()));
                (Fate::LeftAlone, None)
            }
            Err(error) => (Fate::Waiting, Some(format!("cannot query its lock: {error}"))),
        }
    }

    /// Whether the ring holds the whole life of a process that has ended, all of it since the aggregator
    /// started.
    fn can_replay(&self, segment: &Segment) -> bool {
        let words = segment.words();
        let whole = words.head() < words.ring.len() as u64;
        whole && !self.starting && started_at(segment) >= self.model.started
    }

    /// Follows a process that has already ended, from its first event to its last.
    fn replay(&mut self, segment: Segment, now: u64) -> (Fate, Option<String>) {
        let attached = self.attach(segment, now);
        if let Some(follower) = self.followers.last_mut().filter(|_| attached.0 == Fate::Followed) {
            (follower.died, follower.seen_alive) = (Some(monotonic_ns()), 0);
        }
        attached
    }

    fn over_cap(&self, segment: &Segment) -> Option<String> {
        let all = self.followers.len();
        if all >= MAX_PROCESSES {
            return Some(format!("{all} segments are followed already, which is the maximum"));
        }
        let uid = segment.uid();
        let is_own = uid == self.uid && !segment.is_private();
        if !is_own && all as u64 >= foreign_descriptors() {
            return Some(format!(
                "{all} segments use all open files (ulimit -n) that are not reserved for uid {}",
                self.uid
            ));
        }
        if segment.is_private() {
            return self.over_private_cap(segment);
        }
        let theirs = || self.followers.iter().filter(|follower| follower.segment.uid() == uid);
        let bytes: u64 = theirs().map(|follower| follower.segment.header().total_len).sum();
        if uid == self.uid || (theirs().count() < FOREIGN_SEGMENTS && bytes < FOREIGN_BYTES) {
            return None;
        }
        Some(format!("uid {uid} has {} segments of {bytes} bytes already", theirs().count()))
    }

    /// Whoever owns it: root of a container may be root here.
    fn over_private_cap(&self, segment: &Segment) -> Option<String> {
        let private = || self.followers.iter().map(|follower| &follower.segment).filter(|s| s.is_private());
        let (device, _) = segment.inode();
        let beside = || private().filter(|other| other.inode().0 == device);
        let bytes: u64 = beside().map(|other| other.header().total_len).sum();
        let (all, beside) = (private().count(), beside().count());
        let fits = all < FOREIGN_SEGMENTS && beside < PRIVATE_SEGMENTS && bytes < FOREIGN_BYTES;
        (!fits).then(|| {
            format!("its container has {beside} segments of {bytes} bytes already, all containers {all}")
        })
    }

    fn attach(&mut self, segment: Segment, now: u64) -> (Fate, Option<String>) {
        let header = segment.header();
        let code = u32::try_from(header.clock_kind).unwrap_or(0);
        let clock = ClockKind::from_code(code).unwrap_or(ClockKind::Monotonic);
        let clock = Some(clock).filter(|_| segment.is_time_known());
        let Some(row) = self.model.add_process(process_stats(&segment), clock) else {
            return (Fate::Waiting, Some("there is no free row for another process".to_owned()));
        };
        self.config.log.line(format_args!(
            "attach pid {} uid {} {:?} ({}) at event {}",
            segment.pid(),
            segment.uid(),
            segment.process_name(),
            segment.file_name(),
            segment.words().head(),
        ));
        if !segment.shares_clock() {
            self.note_other_clock(&segment, now);
        }
        let before = self.model.followed_before.get(&segment.identity());
        let before = before.map(|stats| SeenBefore { position: stats.position, time: stats.last_event });
        let life = (started_at(&segment), now);
        self.followers.push(Follower::new(segment, row, clock, before, life));
        (Fate::Followed, None)
    }

    /// Reports which times of a process in another time namespace are not known.
    fn note_other_clock(&mut self, segment: &Segment, now: u64) {
        let why = if segment.is_time_known() {
            "it is in another time namespace: its start time is not known"
        } else {
            "it is in another time namespace and has no clock of its own: none of its times are known, and peaks are \
             ranges while it reports"
        };
        let about = About { pid: u64::from(segment.pid()), uid: segment.uid(), file: segment.file_name() };
        let generation = self.model.mark_changed();
        self.model.notices.reason(generation, notice_kind::CLOCK, about, now, why);
        self.config.log.line(format_args!("{}: {why}", segment.file_name()));
    }

    fn refuse(&mut self, file: &str, why: &str, now: u64) {
        let pid = parse_segment_name(file).map_or(0, |name| u64::from(name.pid));
        let uid = rustix::fs::lstat(path_of(file)).map_or(0, |stat| stat.st_uid);
        self.note_refusal(About { pid, uid, file }, why, now);
    }

    pub(crate) fn note_refusal(&mut self, about: About<'_>, why: &str, now: u64) {
        let file = about.file;
        let generation = self.model.mark_changed();
        self.model.notices.reason(generation, notice_kind::REFUSED, about, now, why);
        self.refusal_lines += 1;
        if self.refusal_lines <= MAX_REFUSAL_LINES {
            self.config.log.line(format_args!("refuse {file}: {}", why.escape_debug()));
        }
    }

    /// Folds a segment whose process died before it was followed: its memory is not part of any sum, but may
    /// have been part of a peak.
    pub(crate) fn report_dead(&mut self, segment: &Segment, now: u64) {
        let owner = process_stats(segment);
        if segment.is_time_known() {
            readback::keep_failures_of_dead(&mut self.model, segment, &owner, now);
        }
        let counters = last_counters(segment);
        self.fold_unfollowed(segment, &owner, counters.as_deref(), now);
        let seen = self.model.followed_before.get(&owner.identity).map(|stats| stats.position);
        let news = seen.map(|position| segment.words().read_slot(position + 1));
        if matches!(news, Some(Slot::Pending)) {
            // The earlier aggregator saw all of its events.
            self.model.followed_before.remove(&owner.identity);
        }
        let mut held = Holdings::default();
        counters.unwrap_or_default().iter().for_each(|counters| held.add(counters));
        self.report_reclaim(segment, &held, now);
        self.reap(segment);
    }

    /// Folds a process that lived and ended while nobody followed it. Without plausible counters it may have
    /// held any amount.
    fn fold_unfollowed(
        &mut self,
        segment: &Segment,
        owner: &ProcessStats,
        counters: Option<&[Counters]>,
        now: u64,
    ) {
        let (clock, window) = (segment.calibration(), self.model.window);
        let to_ns = |ticks: u64| if segment.is_time_known() { clock.to_monotonic_ns(ticks) } else { 0 };
        let end = segment.closed_at().filter(|_| segment.is_time_known());
        let end = end.map_or(now, |ticks| to_ns(ticks).min(now));
        let life = Span { from: self.model.unfollowed_since(owner.identity, owner.started), to: end };
        let Some(counters) = counters else { return self.model.fold_lost(life) };
        for (entry, counters) in segment.devices().iter().zip(counters) {
            let Some(device) = self.model.device_row(entry, segment.uid()) else { continue };
            let share = Share { identity: owner.identity, pid: owner.pid, counters };
            let times = own_peaks(counters).map(|own| if own.ticks == 0 { 0 } else { to_ns(own.ticks) });
            let times = times.map(|time| Some(time).filter(|time| *time <= now && window.has(*time)));
            self.model.fold_unfollowed(device, &share, life, &times);
        }
    }

    /// Counts a file that was gone before it could be opened: a process ended that nobody followed.
    pub(crate) fn lose(&mut self) {
        self.model.totals.lost += 1;
        self.doubt_since_last_find();
    }

    /// Doubts the time since the last look for files: processes may have come and gone unnoticed.
    pub(crate) fn doubt_since_last_find(&mut self) {
        let life = Span { from: self.last_find, to: monotonic_ns() };
        self.lost = Some(self.lost.map_or(life, |lost| lost.union(life)));
    }

    /// Refreshes what a segment reports besides its events.
    pub(crate) fn refresh(&mut self, index: usize) {
        let Some(follower) = self.followers.get_mut(index) else { return };
        for (device, entry) in follower.changed_devices() {
            self.model.update_claim(follower.process, device, &entry);
        }
        let segment = &follower.segment;
        let Some(process) = self.model.processes.get(follower.process) else { return };
        let mut stats = process.stats;
        for (count, anomaly) in stats.anomalies.iter_mut().zip(segment.anomalies()) {
            *count = anomaly;
        }
        stats.unlisted = segment.unlisted();
        [stats.self_checks, stats.self_checks_different] = segment.self_checks();
        stats.flags &= !(process_flags::DEGRADED | process_flags::PARTIAL);
        stats.flags |= if segment.is_degraded() { process_flags::DEGRADED } else { 0 };
        stats.flags |= if segment.is_partial() { process_flags::PARTIAL } else { 0 };
        let is_doubtful = stats.self_checks_different > 0 || segment.is_partial();
        if stats != process.stats {
            let (generation, row) = (self.model.mark_changed(), follower.process);
            if let Some(process) = self.model.processes.change(generation, row) {
                process.stats = stats;
            }
        }
        if is_doubtful {
            self.model.distrust(follower.process);
        } else {
            self.model.trust(follower.process);
        }
    }
}

/// The descriptors that the segments of other users may use; the rest is for our own.
fn foreign_descriptors() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or(u64::MAX, |limit| limit - limit / 8)
}

const _: () = assert!(Anomaly::ALL.len() <= 16);

/// When a segment was created. In another time namespace that is a time of another clock: 0, before
/// everything known.
fn started_at(segment: &Segment) -> u64 {
    if segment.shares_clock() { segment.header().anchor_monotonic_ns } else { 0 }
}

fn process_stats(segment: &Segment) -> ProcessStats {
    let header = segment.header();
    ProcessStats {
        state: process_state::ALIVE,
        identity: segment.identity(),
        pid: u64::from(segment.pid()),
        pid_namespace: header.pid_namespace,
        uid: u64::from(segment.uid()),
        started: started_at(segment),
        name: text::encode(&segment.process_name()),
        source: header.source,
        on_behalf_of: header.on_behalf_of,
        start_time: header.start_time,
        ..bytemuck::Zeroable::zeroed()
    }
}

/// The reason without the path, which the notice has in another field and little room for.
pub(crate) fn reason(error: &OpenError, path: &Path) -> String {
    match error {
        OpenError::Layout { cause, .. } => cause.to_string(),
        error => error.to_string().replace(&path.display().to_string(), "it"),
    }
}
