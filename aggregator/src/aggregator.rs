//! The state machine: one poll looks at everything once.

use std::collections::{HashMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use shm_layout::table::Bucket;
use tt_shm_os::monotonic_ns;
use tt_shm_reader::{Segment, TableSnapshot};

use crate::config::Config;
use crate::error::StartError;
use crate::merge::fold_batch::fold_batch;
use crate::merge::streams::merge;
use crate::model::Model;
use crate::model::slice::Span;
use crate::model::snapshot::snapshot;
use crate::segments::attach::{Fate, MAX_OPENS, MAX_PENDING};
use crate::segments::clock::Clock;
use crate::segments::discover::Discovery;
use crate::segments::follower::{Drained, Follower};
use crate::segments::liveness::LeftToRun;
use crate::segments::readback;
use crate::segments::recount::{UncountedNotices, offer_room};
use crate::segments::unseen::{Unseen, find_nameless};
use crate::table::adopt::Adopted;
use crate::table::reset;

/// Sleeps while something happens, and at most.
const SHORT_SLEEP: Duration = Duration::from_millis(1);
/// See [`SHORT_SLEEP`].
pub(crate) const LONG_SLEEP: Duration = Duration::from_millis(50);
/// How long after the last event sleeps stay short.
const BUSY_NS: u64 = 50_000_000;
/// How long a poll goes on looking at rings that have more. A process that fills its ring faster than it is
/// folded cannot keep the others waiting for longer than that.
const MAX_FOLLOW_NS: u64 = 20_000_000;
/// How far a process that fills its ring faster than it is folded may hold back what is folded of the others.
const MAX_HELD_BACK_NS: u64 = 2_000_000_000;
/// Times that a poll asks who lives, each after burying those who did not.
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
/// It has no thread and publishes nothing: call [`Aggregator::poll`] again and again, and between two
/// calls [`Aggregator::wait`] for [`Aggregator::sleep_hint`]. A poll takes a bounded time and memory,
/// whatever the segments hold.
#[derive(Debug)]
pub struct Aggregator {
    pub(crate) config: Config,
    pub(crate) uid: u32,
    pub(crate) model: Model,
    pub(crate) followers: Vec<Follower>,
    pub(crate) known: HashMap<String, Fate>,
    pub(crate) pending: VecDeque<String>,
    /// The name that was opened last.
    pub(crate) last_considered: String,
    pub(crate) discovery: Discovery,
    pub(crate) next_expiry: u64,
    /// Files of ended processes that are left to their run for now.
    pub(crate) left_to_runs: Vec<LeftToRun>,
    pub(crate) refusal_lines: u32,
    /// Segments of processes that ended before we could follow them, and when that was noticed, to be folded.
    pub(crate) dead: Vec<(Segment, u64)>,
    /// When processes lived whose files are gone, to be folded.
    pub(crate) lost: Option<Span>,
    /// When files were last looked for, and all that were found had been opened.
    pub(crate) last_find: u64,
    /// Whether what is found now was there before we came.
    pub(crate) starting: bool,
    /// Processes that live, or may, and cannot be read.
    pub(crate) unseen: Vec<Unseen>,
    /// Whether the last poll was woken, or could have been, by something in /dev/shm.
    pub(crate) stirred: bool,
    /// When windows of peaks were asked for that are not open yet.
    pub(crate) windows_due: VecDeque<u64>,
    uncounted_notices: UncountedNotices,
    busy_until: u64,
    sleep: Duration,
}

impl Aggregator {
    /// Begins to follow. Takes some milliseconds, after which every segment that is there is counted.
    pub fn new(config: Config) -> Result<Aggregator, StartError> {
        Aggregator::resume(config, None)
    }

    /// Begins to follow where an earlier aggregator of the same namespace left off.
    pub fn resume(config: Config, adopted: Option<Adopted>) -> Result<Aggregator, StartError> {
        std::fs::read_dir(tt_shm_os::SHM_DIR).map_err(StartError::Folder)?;
        let uid = rustix::process::geteuid().as_raw();
        let mut discovery =
            Discovery::new(config.namespace.clone(), reset::request_prefix(&config.namespace, uid));
        if config.watch {
            discovery.watch();
        }
        // Before files are removed of those that have ended.
        let missing = adopted.as_ref().map_or(Vec::new(), |adopted| adopted.missing(&config.namespace));
        let mut model = Model::new(Clock::begin(), uid, monotonic_ns());
        if let Some(adopted) = adopted {
            adopted.install(&mut model);
            shm_layout::point!(AdoptInstalled);
        }
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
            busy_until: 0,
            sleep: SHORT_SLEEP,
        };
        // All of them before anything is folded: events of the last would come late.
        for _ in 0..MAX_PENDING / MAX_OPENS {
            aggregator.model.failures.begin_poll();
            aggregator.find(monotonic_ns());
            aggregator.fold_dead();
            if aggregator.pending.is_empty() {
                break;
            }
        }
        find_nameless(&mut aggregator, missing, monotonic_ns());
        aggregator.starting = false;
        aggregator.begin();
        Ok(aggregator)
    }

    /// Folds what is in the rings when it is called. Waits once for all: until the clocks are measured, and
    /// until what happened before, and counters that are read now, are old enough to be folded.
    fn begin(&mut self) {
        self.followers.iter_mut().for_each(Follower::begin);
        let read = Instant::now();
        self.model.clock.measure();
        std::thread::sleep(self.settling_time().saturating_sub(read.elapsed()));
        self.doubt_adopted_of_gone();
        self.poll();
        if self.followers.iter().any(Follower::is_behind) {
            self.settle();
        }
        // Of all of them: who looks only once sees no later look.
        (0..self.followers.len()).for_each(|index| self.refresh(index));
        // Not before: the sums so far were those of the processes that had been read.
        self.model.begin_history(monotonic_ns());
        self.model.end_generation();
    }

    /// An event may be committed after the earlier aggregator's last look, also while we look, and have happened before
    /// it: then what was adopted is not certain since that event. Its rows may have more than it vouched for, so not only
    /// up to the gap.
    fn doubt_adopted(&mut self) {
        let clock = &self.model.clock;
        let news = self.followers.iter_mut().filter_map(|follower| follower.take_news(clock));
        if let Some(from) = news.min() {
            self.doubt_adopted_since(from);
        }
    }

    /// The same of those that are gone: nobody knows more than that it was not before what was seen.
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

    /// Notices new segments at once from now on, if it was not told so at its start.
    pub fn watch(&mut self) {
        self.discovery.watch();
    }

    /// Polls until what is in the rings now has been folded.
    pub fn settle(&mut self) {
        self.poll();
        std::thread::sleep(self.settling_time());
        self.poll();
    }

    /// After this long, what was seen in a ring can be folded.
    fn settling_time(&self) -> Duration {
        // Twice: clocks that were only just measured may be apart by a little.
        self.config.merge_window * 2
    }

    /// Looks at everything once: new and vanished segments, rings, locks.
    pub fn poll(&mut self) -> Activity {
        // Before anything is looked at: an event that this poll does not see happens later than `now`.
        let now = monotonic_ns();
        self.model.now = now;
        self.model.clock.correct(now);
        self.model.free_retired();
        self.model.failures.begin_poll();
        let before = self.model.totals.events;
        let found = self.find(now);
        self.check_liveness(now);
        let mut folded_through = self.follow(now, now.saturating_sub(self.merge_window()));
        // What was just folded is published only if everybody whose memory is part of a new peak is known to have
        // lived then.
        for _ in 0..MAX_LOOKS_AT_HOLDERS {
            if !self.has_dead() && !self.find_dead_holders(folded_through) {
                break;
            }
            folded_through = self.bury_dead();
        }
        self.expire(now);
        offer_room(&mut self.model, &self.followers, folded_through);
        // Not later than files were looked for: who came after that is not followed yet.
        let known = self.followers.iter().map(|follower| follower.known_until(folded_through));
        self.model.as_of = known.fold(folded_through.min(self.last_find), u64::min);
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

    /// Queues what is new in all rings at `now` and folds, in order of time, what is not later than `folded_through`.
    /// Returns how far that is: not as far if a ring has more than can be folded in a poll.
    pub(crate) fn follow(&mut self, now: u64, folded_through: u64) -> u64 {
        loop {
            let more = self.drain_all(now);
            self.doubt_adopted();
            let known = self.followers.iter().map(|follower| follower.known_until(folded_through));
            let known = known.min().unwrap_or(folded_through).min(folded_through);
            self.model.behind = known < folded_through;
            // Who has more in its ring, or was read as a whole just now, may have done something before the others did:
            // nobody passes it, or what is published would not be certain until it has its turn. Nobody waits for ever
            // either, or one process could stop the clock for all.
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

    /// What those have who were passed in the merge is not known of the time since what is queued of them.
    #[cold]
    fn doubt_passed(&mut self, limit: u64) {
        for follower in
            self.followers.iter().filter(|follower| follower.is_behind() && follower.tail() < limit)
        {
            self.model.doubt_share(follower.process, Span { from: follower.tail(), to: limit });
        }
    }

    /// Says whether a ring may have more.
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

    /// Opens the windows that were asked for up to `limit`, each after everything that happened before it:
    /// what is folded only now does not count in them. Says how much was folded.
    fn open_windows(&mut self, limit: u64) -> u64 {
        let mut folded = 0;
        while let Some(since) = self.windows_due.front().copied().filter(|since| *since <= limit) {
            folded += self.fold_until(since);
            self.begin_windows(since);
        }
        folded
    }

    /// Begins the windows that were asked for up to `limit`.
    pub(crate) fn begin_windows(&mut self, limit: u64) {
        while let Some(since) = self.windows_due.pop_front_if(|since| *since <= limit) {
            self.model.open_window(since);
            let count = self.model.window.count;
            self.config.log.line(format_args!("new window of peaks, number {count}"));
        }
    }

    /// Folds what waits and is not later than `limit`; says how much that was.
    fn fold_until(&mut self, limit: u64) -> u64 {
        let (mut folded, mut broken) = (0, Vec::new());
        let model = &mut self.model;
        merge(&mut self.followers, limit, Follower::head, |follower, until| {
            let mut batch = follower.batch(until);
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
            || !self.windows_due.is_empty()
            || self.followers.iter().any(|s| s.is_waiting() || to_bury(s));
        let short = now < self.busy_until || waiting;
        self.sleep = if short { SHORT_SLEEP } else { (self.sleep * 2).min(LONG_SLEEP) };
    }

    /// How long to sleep before the next poll: a millisecond while something happens, up to 20 when not.
    pub fn sleep_hint(&self) -> Duration {
        self.sleep
    }

    /// Sleeps for at most this long; less if a segment appears or vanishes, or if `stop` becomes readable.
    pub fn wait(&self, limit: Duration, stop: Option<BorrowedFd<'_>>) {
        // After a change in /dev/shm, the next one has to wait a little: a flood of files there, which
        // anybody can make, must not keep us awake.
        let pause = if self.stirred { limit.min(SHORT_SLEEP) } else { Duration::ZERO };
        if pause.is_zero() || !wait_for(&[stop], pause) {
            wait_for(&[self.discovery.descriptor(), stop], limit - pause);
        }
    }

    /// Begins a new window: every device's peaks become what it uses at this moment. They do so once all that
    /// happened before has been folded, when the merge has come as far.
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

    /// Processes that are alive, or may be, and cannot be read.
    pub(crate) fn unseen(&self) -> u64 {
        self.unseen.len() as u64
    }

    /// Identities of the segments followed.
    pub fn followed(&self) -> impl Iterator<Item = u64> {
        self.followers.iter().map(|follower| follower.segment.identity())
    }

    /// Segments followed.
    pub fn segments(&self) -> usize {
        self.followers.len()
    }
}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Aggregator>();
};

/// Whether one of the descriptors became readable in that time.
fn wait_for(descriptors: &[Option<BorrowedFd<'_>>], time: Duration) -> bool {
    let mut fds: Vec<PollFd<'_>> =
        descriptors.iter().flatten().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let Ok(timeout) = Timespec::try_from(time) else { return false };
    // Interrupted by a signal: the caller looks whether it is to stop.
    rustix::event::poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready > 0)
}
