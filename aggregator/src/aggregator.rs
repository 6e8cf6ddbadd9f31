//! The aggregator itself: one poll looks at everything once.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use shm_layout::table::{Bucket, TelemetryBucket};
use tt_shm_os::monotonic_ns;
use tt_shm_reader::{Segment, TableSnapshot};

use crate::config::Config;
use crate::driver::DriverWatch;
use crate::error::StartError;
use crate::merge::fold_batch::fold_batch;
use crate::merge::streams::merge;
use crate::model::Model;
use crate::model::slice::Span;
use crate::model::snapshot::snapshot;
use crate::observe::observe_batch;
use crate::regions::RegionWatch;
use crate::segments::attach::{Fate, MAX_OPENS, MAX_PENDING};
use crate::segments::clock::Clock;
use crate::segments::containers::Containers;
use crate::segments::discover::Discovery;
use crate::segments::follower::{Drained, Follower};
use crate::segments::liveness::LeftToRun;
use crate::segments::readback;
use crate::segments::recount::{UncountedNotices, offer_room};
use crate::segments::unseen::{Unseen, find_nameless};
use crate::table::adopt::Adopted;
use crate::table::reset;

/// How long to sleep between polls while something is happening.
const SHORT_SLEEP: Duration = Duration::from_millis(1);
/// How long to sleep between polls at most.
pub(crate) const LONG_SLEEP: Duration = Duration::from_millis(50);
/// How long after the last event the sleeps stay short.
const BUSY_NS: u64 = 50_000_000;
/// How long a poll keeps draining rings that have more. A process that fills its ring faster than it is
/// folded cannot delay the others for longer than this.
const MAX_FOLLOW_NS: u64 = 20_000_000;
/// How far a process that fills its ring faster than it is folded may hold back the folding of the others.
const MAX_HELD_BACK_NS: u64 = 2_000_000_000;
/// How often a poll checks which holders are alive, each time after reclaiming what the dead ones held.
const MAX_LOOKS_AT_HOLDERS: usize = 4;

/// What a poll found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Events folded.
    pub events: u64,
    /// Whether any row changed, so that publishing has something to write.
    pub changed: bool,
}

/// Follows every segment of a namespace and keeps the statistics of devices and processes.
///
/// It has no thread and publishes nothing: call [`Aggregator::poll`] repeatedly, and between calls
/// [`Aggregator::wait`] for [`Aggregator::sleep_hint`]. A poll takes bounded time and memory, whatever the
/// segments hold.
#[derive(Debug)]
pub struct Aggregator {
    pub(crate) config: Config,
    pub(crate) uid: u32,
    pub(crate) model: Model,
    pub(crate) followers: Vec<Follower>,
    pub(crate) known: HashMap<String, Fate>,
    pub(crate) pending: VecDeque<String>,
    /// The file name that was considered last.
    pub(crate) last_considered: String,
    pub(crate) discovery: Discovery,
    pub(crate) next_expiry: u64,
    /// Files of ended processes that their run is expected to remove.
    pub(crate) left_to_runs: Vec<LeftToRun>,
    pub(crate) refusal_lines: u32,
    /// Segments of processes that ended before they could be followed, with the time at which that was
    /// noticed. They are still to be folded.
    pub(crate) dead: Vec<(Segment, u64)>,
    /// When processes were alive whose files are gone. Still to be folded.
    pub(crate) lost: Option<Span>,
    /// When files were last looked for and all that were found had been opened.
    pub(crate) last_find: u64,
    /// Whether the aggregator is starting, so that what is found now was there before it.
    pub(crate) starting: bool,
    /// Processes that are alive, or may be, and cannot be read.
    pub(crate) unseen: Vec<Unseen>,
    /// Whether the last poll saw any change in /dev/shm.
    pub(crate) stirred: bool,
    /// The times for which new windows of peaks were requested and are not open yet.
    pub(crate) windows_due: VecDeque<u64>,
    uncounted_notices: UncountedNotices,
    pub(crate) driver: Option<DriverWatch>,
    regions: Option<RegionWatch>,
    pub(crate) containers: Containers,
    busy_until: u64,
    sleep: Duration,
}

impl Aggregator {
    /// Starts following. Takes some milliseconds, after which every existing segment is counted.
    pub fn new(config: Config) -> Result<Aggregator, StartError> {
        Aggregator::resume(config, None)
    }

    /// Starts following where an earlier aggregator of the same namespace left off.
    pub fn resume(config: Config, adopted: Option<Adopted>) -> Result<Aggregator, StartError> {
        std::fs::read_dir(tt_shm_os::SHM_DIR).map_err(StartError::Folder)?;
        let uid = rustix::process::geteuid().as_raw();
        let mut discovery =
            Discovery::new(config.namespace.clone(), reset::request_prefix(&config.namespace, uid));
        if config.watch {
            discovery.watch();
        }
        // Before the files of ended processes are removed.
        let missing = adopted.as_ref().map_or(Vec::new(), |adopted| adopted.missing(&config.namespace));
        let mut model = Model::new(Clock::begin(), uid, monotonic_ns());
        if let Some(adopted) = adopted {
            adopted.install(&mut model);
            shm_layout::point!(AdoptInstalled);
        }
        let driver = config.driver.clone().map(DriverWatch::new);
        let regions = config.regions.clone().map(RegionWatch::new);
        let mut aggregator = Aggregator {
            config,
            uid,
            model,
            followers: Vec::new(),
            known: HashMap::new(),
            pending: VecDeque::new(),
            last_considered: String::new(),
            discovery,
            next_expiry: 0,
            left_to_runs: Vec::new(),
            refusal_lines: 0,
            dead: Vec::new(),
            lost: None,
            last_find: 0,
            starting: true,
            unseen: Vec::new(),
            stirred: false,
            windows_due: VecDeque::new(),
            uncounted_notices: UncountedNotices::default(),
            driver,
            regions,
            containers: Containers::default(),
            busy_until: 0,
            sleep: SHORT_SLEEP,
        };
        if aggregator.config.watch {
            aggregator.containers.start_watching();
        }
        // Find all of them before anything is folded: events of the last one would be late otherwise.
        for _ in 0..MAX_PENDING / MAX_OPENS {
            aggregator.model.failures.begin_poll();
            aggregator.find(monotonic_ns());
            aggregator.fold_dead();
            if aggregator.pending.is_empty() && !aggregator.containers.is_waiting() {
                break;
            }
        }
        find_nameless(&mut aggregator, missing, monotonic_ns());
        aggregator.starting = false;
        aggregator.begin();
        Ok(aggregator)
    }

    /// Folds what is in the rings now. Waits once for everything: until the clocks are measured, and until
    /// earlier events, and counters that are read now, are old enough to be folded.
    fn begin(&mut self) {
        self.followers.iter_mut().for_each(Follower::begin);
        let read = Instant::now();
        self.model.clock.measure();
        std::thread::sleep(self.settling_time().saturating_sub(read.elapsed()));
        self.doubt_adopted_of_gone();
        self.poll();
        // Counters that could not be read while their process changed them, or of which more is in the ring, were read
        // too late to be folded yet.
        let merged = self.model.advanced_to;
        if self.followers.iter().any(Follower::is_behind) || !passed(&self.followers, merged).is_empty() {
            self.settle();
        }
        // Refresh all of them: a caller that polls only once gets no later chance.
        (0..self.followers.len()).for_each(|index| self.refresh(index));
        // Not earlier: so far the sums were those of the processes that had been read.
        self.model.begin_history(monotonic_ns());
        self.model.end_generation();
    }

    /// Doubts adopted figures from the first event on that the earlier aggregator did not see. Such an event
    /// may have been committed after its last look, or during ours, and still have happened before it. Its
    /// rows may contain more than it vouched for, so the doubt is not limited to the gap.
    fn doubt_adopted(&mut self) {
        let clock = &self.model.clock;
        let news = self.followers.iter_mut().filter_map(|follower| follower.take_news(clock));
        if let Some(from) = news.min() {
            self.doubt_adopted_since(from);
        }
    }

    /// Doubts adopted figures because of processes that are gone: all that is known is that unseen events are
    /// not earlier than the last one seen.
    fn doubt_adopted_of_gone(&mut self) {
        let is_here =
            |identity: u64| self.followers.iter().any(|follower| follower.segment.identity() == identity);
        let gone = self.model.followed_before.values().filter(|stats| !is_here(stats.identity));
        if let Some(from) = gone.map(|stats| stats.last_event).min() {
            self.doubt_adopted_since(from);
        }
    }

    fn doubt_adopted_since(&mut self, from: u64) {
        let to = self.model.started;
        if from < to {
            self.model.doubt_order(Span { from, to });
        }
    }

    /// Starts to watch for new segments, if [`Config::watch`] was not set.
    pub fn watch(&mut self) {
        self.discovery.watch();
        if !self.containers.is_watching() {
            self.containers.start_watching();
        }
    }

    /// Polls until everything that is in the rings now has been folded.
    pub fn settle(&mut self) {
        self.poll();
        std::thread::sleep(self.settling_time());
        self.poll();
    }

    /// The time after which what was seen in a ring can be folded.
    fn settling_time(&self) -> Duration {
        // Twice the window: clocks that were only just measured may differ slightly.
        self.config.merge_window * 2
    }

    /// Looks at everything once: new and vanished segments, rings, locks.
    pub fn poll(&mut self) -> Activity {
        // Read the time before anything else: an event that this poll does not see happens later than `now`.
        let now = monotonic_ns();
        self.model.now = now;
        self.model.clock.correct(now);
        self.model.free_retired();
        self.model.failures.begin_poll();
        let before = self.model.totals.events;
        let found = self.find(now);
        self.check_liveness(now);
        let mut folded_through = self.follow(now, now.saturating_sub(self.merge_window()));
        // A new peak is published only if every process whose memory is part of it is known to have been
        // alive then.
        for _ in 0..MAX_LOOKS_AT_HOLDERS {
            if !self.has_dead() && !self.find_dead_holders(folded_through) {
                break;
            }
            folded_through = self.bury_dead();
        }
        self.expire(now);
        offer_room(&mut self.model, &self.followers, folded_through);
        // Not later than the last look for files: processes that started after that are not followed yet.
        let known = self.followers.iter().map(|follower| follower.known_until(folded_through));
        self.model.as_of = known.fold(folded_through.min(self.last_find), u64::min);
        self.model.set_passed(passed(&self.followers, folded_through.max(self.model.advanced_to)));
        if let Some(driver) = &mut self.driver {
            driver.poll(&mut self.model);
        }
        if let Some(regions) = &mut self.regions {
            regions.poll(&mut self.model);
        }
        let unread = self.unread() > 0;
        self.model.set_unread(unread);
        self.uncounted_notices.update(&mut self.model, &self.followers, &mut self.config.log, now);
        self.model.advance(folded_through);
        let activity =
            Activity { events: self.model.totals.events - before, changed: self.model.end_generation() };
        self.plan_sleep(now, activity.events > 0 || found);
        activity
    }

    fn merge_window(&self) -> u64 {
        u64::try_from(self.config.merge_window.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Queues the new events of all rings and folds, in order of time, those not later than `folded_through`.
    /// Returns how far everything is folded, which is less if a ring has more than can be folded in a poll.
    pub(crate) fn follow(&mut self, now: u64, folded_through: u64) -> u64 {
        loop {
            let more = self.drain_all(now);
            self.doubt_adopted();
            let known = self.followers.iter().map(|follower| follower.known_until(folded_through));
            let known = known.min().unwrap_or(folded_through).min(folded_through);
            self.model.behind = known < folded_through;
            // A process that has more in its ring, or whose counters were just read in full, may have events
            // earlier than the others'. The merge does not pass it, because what is published would then be
            // uncertain until it catches up. It does not wait forever either, because one process could then
            // stop the merge for all.
            let last = !more || monotonic_ns() > now.saturating_add(MAX_FOLLOW_NS);
            let limit = known.max(folded_through.saturating_sub(MAX_HELD_BACK_NS));
            let folded = self.open_windows(limit) + self.fold_until(limit);
            if limit > known {
                self.doubt_passed(limit);
            }
            self.model.settle_failures();
            if self.model.failures.has_fresh() {
                let all_read = self.unread() == 0;
                readback::complete_failures(&mut self.model, &self.followers, all_read);
            }
            if last || folded == 0 {
                return limit;
            }
        }
    }

    /// Doubts the shares of processes that were passed in the merge, for the time since their last queued
    /// event.
    #[cold]
    fn doubt_passed(&mut self, limit: u64) {
        for follower in
            self.followers.iter().filter(|follower| follower.is_behind() && follower.tail() < limit)
        {
            self.model.doubt_share(follower.process, Span { from: follower.tail(), to: limit });
        }
    }

    /// Drains all rings; returns whether one may have more.
    fn drain_all(&mut self, now: u64) -> bool {
        let (mut more, mut broken) = (false, Vec::new());
        for (index, follower) in self.followers.iter_mut().enumerate() {
            let drained = follower.drain(&self.model.clock, now);
            follower.drained = drained == Drained::All;
            match drained {
                Drained::All => {}
                Drained::More => more = true,
                Drained::Broken(why) => broken.push((index, why)),
            }
            for entry in follower.new_devices() {
                self.model.add_device(follower.process, &entry);
            }
        }
        for (index, why) in broken {
            self.break_off(index, &why);
        }
        more
    }

    /// Opens the windows that were requested up to `limit`, each after everything that happened before it, so
    /// that what is folded only now does not count in them. Returns how many items were folded.
    fn open_windows(&mut self, limit: u64) -> u64 {
        let mut folded = 0;
        while let Some(since) = self.windows_due.front().copied().filter(|since| *since <= limit) {
            folded += self.fold_until(since);
            self.begin_windows(since);
        }
        folded
    }

    /// Opens the windows that were requested up to `limit`.
    pub(crate) fn begin_windows(&mut self, limit: u64) {
        while let Some(since) = self.windows_due.pop_front_if(|since| *since <= limit) {
            self.model.open_window(since);
            let count = self.model.window.count;
            self.config.log.line(format_args!("new window of peaks, number {count}"));
        }
    }

    /// Folds the items that wait and are not later than `limit`; returns how many.
    fn fold_until(&mut self, limit: u64) -> u64 {
        let (mut folded, mut broken) = (0, Vec::new());
        let (model, observer) = (&mut self.model, &mut self.config.observer);
        merge(&mut self.followers, limit, Follower::head, |follower, until| {
            let mut batch = follower.batch(until);
            if let Some(observer) = observer.as_deref_mut() {
                observe_batch(observer, &follower.segment, &batch);
            }
            let (before, result) = (batch.left(), fold_batch(model, follower, &mut batch));
            let left = batch.left();
            folded += (before - left) as u64;
            follower.pass_to(left);
            if let Err(why) = result {
                follower.give_up();
                broken.push((follower.process, why.to_string()));
            }
        });
        for (process, why) in broken {
            if let Some(index) = self.followers.iter().position(|follower| follower.process == process) {
                self.break_off(index, &why);
            }
        }
        folded
    }

    fn plan_sleep(&mut self, now: u64, active: bool) {
        if active {
            self.busy_until = now + BUSY_NS;
        }
        let to_bury = |follower: &Follower| follower.died.is_some();
        let waiting = !self.pending.is_empty()
            || self.containers.is_waiting()
            || !self.windows_due.is_empty()
            || self.followers.iter().any(|s| s.is_waiting() || to_bury(s));
        let short = now < self.busy_until || waiting;
        self.sleep = if short { SHORT_SLEEP } else { (self.sleep * 2).min(LONG_SLEEP) };
    }

    /// How long to sleep before the next poll: a millisecond while something is happening, up to 50 when
    /// idle.
    pub fn sleep_hint(&self) -> Duration {
        self.sleep
    }

    /// Sleeps for at most this long, and less if a segment appears or vanishes, or if `stop` becomes
    /// readable.
    pub fn wait(&self, limit: Duration, stop: Option<BorrowedFd<'_>>) {
        // After a change in /dev/shm, wait a little before reacting to the next: a flood of files, which any
        // user can create, must not keep us awake.
        let pause = if self.stirred { limit.min(SHORT_SLEEP) } else { Duration::ZERO };
        if pause.is_zero() || !wait_for(&[stop], pause) {
            wait_for(&[self.discovery.descriptor(), self.containers.descriptor(), stop], limit - pause);
        }
    }

    /// Requests a new window: the peaks of every device become what it uses at this moment. The window opens
    /// once everything that happened before has been folded.
    pub fn reset_window(&mut self) {
        self.windows_due.push_back(monotonic_ns());
    }

    /// Everything that is known now, as a reader gets it from the table.
    pub fn snapshot(&self) -> TableSnapshot {
        snapshot(self)
    }

    /// A device's history at a resolution (0 a minute, 1 an hour, 2 a day), oldest first.
    pub fn history(&self, device: usize, resolution: usize) -> Vec<Bucket> {
        self.model.devices.get(device).map_or(Vec::new(), |device| device.history.buckets(resolution))
    }

    /// Telemetry of a device of the driver at a resolution (0 eight minutes, 1 an hour, 2 a day), oldest first.
    pub fn telemetry(&self, row: usize, resolution: usize) -> Vec<TelemetryBucket> {
        let device = self.model.driver.rows.get(row);
        device.map_or(Vec::new(), |device| device.telemetry.since(resolution, 0))
    }

    /// The number of files refused at this moment.
    pub(crate) fn refused(&self) -> u64 {
        self.known.values().filter(|fate| matches!(fate, Fate::Refused(..) | Fate::Waiting)).count() as u64
            + self.containers.refused()
    }

    /// The number of segments that may hold memory and could not be read.
    pub(crate) fn unread(&self) -> u64 {
        let may_hold =
            |fate: &&Fate| matches!(fate, Fate::Hidden(_) | Fate::Refused(_, true) | Fate::Waiting);
        let kept_out = self.known.values().filter(may_hold).count();
        let broken = self.followers.iter().filter(|follower| follower.broken).count();
        let unopened = self.pending.iter().filter(|name| !self.known.contains_key(*name)).count();
        (kept_out + broken + unopened) as u64 + self.containers.unread() + self.unseen()
    }

    /// Processes that are alive, or may be, and cannot be read.
    pub(crate) fn unseen(&self) -> u64 {
        self.unseen.len() as u64
    }

    /// The identities of the followed segments.
    pub fn followed(&self) -> impl Iterator<Item = u64> {
        self.followers.iter().map(|follower| follower.segment.identity())
    }

    /// The number of followed segments.
    pub fn segments(&self) -> usize {
        self.followers.len()
    }
}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Aggregator>();
};

/// The processes that the merge has passed: something that they reported before `merged` is not folded yet.
fn passed(followers: &[Follower], merged: u64) -> BTreeSet<usize> {
    let is_passed = |follower: &&Follower| follower.known_until(merged) < merged;
    followers.iter().filter(is_passed).map(|follower| follower.process).collect()
}

/// Waits until one of the descriptors is readable; returns whether one was within that time.
fn wait_for(descriptors: &[Option<BorrowedFd<'_>>], time: Duration) -> bool {
    let mut fds: Vec<PollFd<'_>> =
        descriptors.iter().flatten().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let Ok(timeout) = Timespec::try_from(time) else { return false };
    // On EINTR the caller checks whether it is to stop.
    rustix::event::poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready > 0)
}
