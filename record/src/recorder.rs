//! Recording: follows segments, and gathers what they say into frames. Finding segments, compressing frames and writing
//! them is the caller's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use shm_layout::control::NAME_COUNT;
use shm_layout::{DeviceEntry, Event, Word};
use tt_shm_os::{Anchor, Calibration, ClockKind, monotonic_ns};
use tt_shm_reader::{ReadFrom, Segment, TableSnapshot};

use crate::checkpoint::read_checkpoint;
use crate::entry::{
    ClockEntry, EndEntry, Ended, Entry, GapEntry, ProcessEntry, StateEntry, TableEntry, TableRows,
};
use crate::facts::{Begin, Who};
use crate::writer::{FrameBuilder, FrameTime, RawFrame};

/// The number of events that are read from a ring at once.
const BATCH: usize = 4096;
/// The interval at which it is checked whether processes are alive, and whether they said something new of themselves.
const LIVENESS: Duration = Duration::from_millis(100);
/// The interval of anchors, and of frames while little happens: what a kill costs at most.
const SECOND: Duration = Duration::from_secs(1);
/// The interval at which the record says until when it is complete.
const AS_OF: Duration = Duration::from_millis(100);
/// The bytes of events after which a process gets a checkpoint.
const CHECKPOINT_BYTES: u64 = 16 << 20;
/// The time after which a process that has had events gets a checkpoint.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(30);
/// How many times the bytes of its live rows a process must have had in events before it gets one: checkpoints must not
/// be most of a record.
const ROWS_SHARE: u64 = 8;
/// The interval of attempts at a checkpoint that is needed after a gap.
const RETRY: Duration = Duration::from_millis(50);

/// How often the end of a record is tried with processes that are too fast.
const LAST_POLLS: usize = 8;

/// What was gathered so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Processes.
    pub processes: u64,
    /// Processes that have ended.
    pub ended: u64,
    /// Events.
    pub events: u64,
    /// Events that were overwritten before they could be read.
    pub lost: u64,
    /// How often that happened.
    pub gaps: u64,
    /// Checkpoints.
    pub checkpoints: u64,
}

/// What a poll found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Polled {
    /// The number of events read.
    pub events: u64,
    /// The largest part of a ring that was new: above 0.5, polls are too far apart.
    pub fullest: f64,
    /// Whether a process was so fast that not everything was read.
    pub is_behind: bool,
}

/// A process that is followed.
struct Followed {
    segment: Arc<Segment>,
    number: u32,
    clock: ClockKind,
    who: Who,
    position: u64,
    names: u64,
    devices: Vec<DeviceEntry>,
    /// What it said of itself at the last checkpoint.
    said: [u64; 4],
    /// Events since the last checkpoint, rows in it, and when it was.
    since: u64,
    rows: u64,
    checked: Instant,
    /// Whether a checkpoint is needed: there is none, its list was not exact, or events are missing since.
    needs_checkpoint: bool,
}

/// Follows processes and gathers their events into frames.
///
/// Nothing here waits, apart from some milliseconds to measure a clock when the first process that has it is added. The
/// processes do not notice.
pub struct Recorder {
    builder: FrameBuilder,
    followed: Vec<Followed>,
    clocks: BTreeMap<u32, Calibration>,
    counts: Counts,
    next_number: u32,
    buffer: Vec<Event>,
    last_alive: Instant,
    last_clock: Instant,
    last_as_of: Instant,
    last_flush: Instant,
    is_dirty: bool,
}

impl Recorder {
    /// Begins a record.
    pub fn new(begin: &Begin) -> Recorder {
        let now = Instant::now();
        let mut recorder = Recorder {
            builder: FrameBuilder::default(),
            followed: Vec::new(),
            clocks: BTreeMap::new(),
            counts: Counts::default(),
            next_number: 0,
            buffer: vec![Event::NONE; BATCH],
            last_alive: now,
            last_clock: now,
            last_as_of: now,
            last_flush: now,
            is_dirty: false,
        };
        recorder.begin(begin);
        recorder
    }

    fn begin(&mut self, begin: &Begin) {
        self.builder.entry(&Entry::Begin(begin.clone()), FrameTime::at(begin.monotonic_ns));
        self.builder.close();
    }

    /// What was gathered so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The processes that are followed now, by the identities of their segments.
    pub fn followed(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.followed.iter().map(|one| &one.segment)
    }

    /// Follows a process from now on, or from its first event if its ring still has that. Returns its number in the
    /// record.
    pub fn add(&mut self, segment: Arc<Segment>, who: Who) -> u32 {
        let number = self.next_number;
        self.next_number += 1;
        self.counts.processes += 1;
        let code = u32::try_from(segment.header().clock_kind).unwrap_or(0);
        // The reader has refused segments with another clock.
        let clock = ClockKind::from_code(code).unwrap_or(ClockKind::Monotonic);
        let mut one = Followed {
            number,
            clock,
            who,
            position: 0,
            names: 1,
            devices: Vec::new(),
            said: [0; 4],
            since: 0,
            rows: 0,
            checked: Instant::now(),
            needs_checkpoint: false,
            segment,
        };
        self.measure(clock);
        self.describe(&mut one);
        let mut first = [Event::NONE; 1];
        let ReadFrom { missed, read, .. } = one.segment.read_from(0, &mut first);
        if missed == 0 && (read == 0 || first[0].stamp == 1) {
            self.builder.state(number, &StateEntry::nothing(monotonic_ns()), &[]);
            self.counts.checkpoints += 1;
        } else if !self.start_at_checkpoint(&mut one) {
            one.position = one.segment.head();
            one.needs_checkpoint = true;
        }
        self.followed.push(one);
        number
    }

    /// Begins with a checkpoint: everything before it is not part of the record.
    fn start_at_checkpoint(&mut self, one: &mut Followed) -> bool {
        let Ok((state, rows)) = read_checkpoint(&one.segment) else { return false };
        one.position = state.position;
        self.learn(one);
        self.put_checkpoint(one, &state, &rows);
        true
    }

    fn put_checkpoint(&mut self, one: &mut Followed, state: &StateEntry, rows: &[shm_layout::Row]) {
        self.builder.state(one.number, state, rows);
        self.counts.checkpoints += 1;
        one.said = one.says();
        (one.since, one.rows, one.checked) = (0, rows.len() as u64, Instant::now());
        one.needs_checkpoint = !state.exact;
        self.is_dirty = true;
    }

    /// Writes what is known of a process: in the first place, and again at the beginning of each file.
    fn describe(&mut self, one: &mut Followed) {
        let entry = ProcessEntry {
            number: one.number,
            uid: one.segment.uid(),
            seen_ns: monotonic_ns(),
            shares_clock: one.segment.shares_clock(),
            header: *one.segment.header(),
            who: one.who.clone(),
        };
        self.builder.entry(&Entry::Process(Box::new(entry)), FrameTime::NONE);
        (one.names, one.devices) = (1, Vec::new());
        self.learn(one);
        self.is_dirty = true;
    }

    /// Writes names and devices that are new.
    fn learn(&mut self, one: &mut Followed) {
        let words = one.segment.words();
        let count = words.control.get(NAME_COUNT).map_or(0, Word::load).min(shm_layout::MAX_NAMES);
        if count > one.names {
            let ids = (one.names..count).filter_map(|id| u16::try_from(id).ok());
            let names = ids.filter_map(|id| Some((id, one.segment.name_bytes_of(id)?))).collect();
            self.builder.names(one.number, names);
            one.names = count;
            self.is_dirty = true;
        }
        if words.device_count() > one.devices.len() {
            self.learn_devices(one);
        }
    }

    fn learn_devices(&mut self, one: &mut Followed) {
        let now = one.segment.devices();
        let is_news = |(index, entry): &(usize, &DeviceEntry)| one.devices.get(*index) != Some(entry);
        let news = now.iter().enumerate().filter(is_news).map(|(index, entry)| (index as u64, *entry));
        let devices: Vec<(u64, DeviceEntry)> = news.collect();
        if !devices.is_empty() {
            self.builder.entry(&Entry::Devices { process: one.number, devices }, FrameTime::NONE);
            self.is_dirty = true;
        }
        one.devices = now;
    }

    /// Takes two anchors of a clock that is new.
    fn measure(&mut self, kind: ClockKind) {
        if !self.clocks.contains_key(&kind.code()) {
            let measured = Calibration::measure(kind);
            self.put_anchor(kind, measured.first);
            self.put_anchor(kind, measured.second);
            self.clocks.insert(kind.code(), measured);
        }
    }

    fn put_anchor(&mut self, kind: ClockKind, anchor: Anchor) {
        self.builder.entry(&Entry::Clock(ClockEntry { kind, anchor }), FrameTime::at(anchor.monotonic_ns));
    }

    fn take_anchors(&mut self) {
        self.last_clock = Instant::now();
        let kinds: Vec<ClockKind> = self.clocks.values().map(|clock| clock.kind).collect();
        for kind in kinds {
            let anchor = Anchor::now(kind);
            self.put_anchor(kind, anchor);
            if let Some(clock) = self.clocks.get_mut(&kind.code()) {
                *clock = Calibration::new(kind, clock.first, anchor);
            }
        }
    }

    /// Takes in what has happened since the last poll.
    pub fn poll(&mut self) -> Polled {
        let as_of = monotonic_ns();
        let mut polled = Polled::default();
        let checks_lives = self.last_alive.elapsed() >= LIVENESS;
        if checks_lives {
            self.last_alive = Instant::now();
        }
        let mut followed = std::mem::take(&mut self.followed);
        followed.retain_mut(|one| {
            // Before the last events are read: what comes after its end is nothing.
            let end = if checks_lives || one.segment.is_closed() { one.end() } else { None };
            self.drain(one, &mut polled);
            self.consider_checkpoint(one, checks_lives);
            if let Some(how) = end {
                self.end(one, how);
            }
            end.is_none()
        });
        self.followed = followed;
        self.counts.events += polled.events;
        self.keep_time(as_of, polled.is_behind);
        polled
    }

    fn end(&mut self, one: &mut Followed, how: Ended) {
        self.learn_devices(one);
        if how != Ended::Lost && one.said != one.says() {
            // Its last words: how it was when it ended.
            if let Ok((state, rows)) = read_checkpoint(&one.segment) {
                self.put_checkpoint(one, &state, &rows);
            }
        }
        let noticed_ns = monotonic_ns();
        let end = EndEntry { process: one.number, noticed_ns, how, position: one.position };
        self.builder.entry(&Entry::End(end), FrameTime::at(noticed_ns));
        self.counts.ended += 1;
        self.is_dirty = true;
    }

    /// Reads the new events of a process; at most twice what its ring holds, so that a fast one holds up no others.
    fn drain(&mut self, one: &mut Followed, polled: &mut Polled) {
        if one.segment.is_lost() {
            return;
        }
        let slots = one.segment.header().ring.capacity;
        let before = one.position;
        while one.position - before < 2 * slots {
            // From 1 on: from 0 the reader would skip what was overwritten without being asked.
            let ReadFrom { read, missed, next } = one.segment.read_from(one.position, &mut self.buffer);
            let missed = if one.position == 0 && read > 0 { self.buffer[0].stamp - 1 } else { missed };
            if missed > 0 {
                self.gap(one, missed);
            }
            if read > 0 {
                let buffer = std::mem::take(&mut self.buffer);
                self.learn(one);
                let time = self.time_of(one, &buffer[..read]);
                self.builder.events(one.number, &buffer[..read], time);
                self.buffer = buffer;
                polled.events += read as u64;
                one.since += read as u64;
                self.is_dirty = true;
            }
            one.position = next;
            if read == 0 {
                polled.fullest = polled.fullest.max((one.position - before) as f64 / slots as f64);
                return;
            }
        }
        polled.is_behind = true;
        polled.fullest = polled.fullest.max((one.position - before) as f64 / slots as f64);
    }

    fn gap(&mut self, one: &mut Followed, missed: u64) {
        let (first, last) = (one.position + 1, one.position + missed);
        let time_ns = monotonic_ns();
        let gap = GapEntry { process: one.number, first, last, time_ns };
        self.builder.entry(&Entry::Gap(gap), FrameTime::at(time_ns));
        (self.counts.gaps, self.counts.lost) = (self.counts.gaps + 1, self.counts.lost + missed);
        one.needs_checkpoint = true;
        self.is_dirty = true;
    }

    /// The times that events span, as far as they are known by now.
    fn time_of(&self, one: &Followed, events: &[Event]) -> FrameTime {
        let Some(clock) = self.clocks.get(&one.clock.code()) else { return FrameTime::NONE };
        match (events.first(), events.last()) {
            (Some(first), Some(last)) => FrameTime {
                first_ns: clock.to_monotonic_ns(first.time),
                last_ns: clock.to_monotonic_ns(last.time),
            },
            _ => FrameTime::NONE,
        }
    }

    fn consider_checkpoint(&mut self, one: &mut Followed, checks_lives: bool) {
        let bytes = 64 * one.since;
        let (age, is_enough) = (one.checked.elapsed(), bytes >= ROWS_SHARE * 64 * one.rows);
        let is_due = bytes > 0
            && is_enough
            && (bytes >= CHECKPOINT_BYTES || checks_lives && age >= CHECKPOINT_INTERVAL);
        let says_more = checks_lives && one.said != one.says();
        if checks_lives {
            self.learn_devices(one);
        }
        if (is_due || says_more || one.needs_checkpoint && age >= RETRY) && !one.segment.is_lost() {
            // Whatever comes of it: not at every poll.
            one.checked = Instant::now();
            if let Ok((state, rows)) = read_checkpoint(&one.segment) {
                self.learn(one);
                self.put_checkpoint(one, &state, &rows);
            }
        }
    }

    fn keep_time(&mut self, as_of: u64, is_behind: bool) {
        if self.last_clock.elapsed() >= SECOND {
            self.take_anchors();
        }
        let is_due = self.last_as_of.elapsed() >= if self.is_dirty { AS_OF } else { SECOND };
        if is_due && !is_behind {
            self.builder.entry(&Entry::AsOf { time_ns: as_of }, FrameTime::at(as_of));
            (self.last_as_of, self.is_dirty) = (Instant::now(), false);
        }
        if self.last_flush.elapsed() >= SECOND {
            self.flush();
        }
    }

    /// Adds an entry of another source.
    pub fn entry(&mut self, entry: &Entry, time: FrameTime) {
        self.builder.entry(entry, time);
    }

    /// Adds the rows of an aggregator's table: what it knows from before the record.
    pub fn table(&mut self, table: &TableSnapshot) {
        let time_ns = table.as_of;
        self.put_table(time_ns, &table.devices, TableRows::Devices);
        self.put_table(time_ns, &table.processes, TableRows::Processes);
        self.put_table(time_ns, &table.usages, TableRows::Usages);
        let failures: Vec<(usize, _)> = table.failures.iter().copied().enumerate().collect();
        self.put_table(time_ns, &failures, TableRows::Failures);
        let notices: Vec<(usize, _)> = table.notices.iter().copied().enumerate().collect();
        self.put_table(time_ns, &notices, TableRows::Notices);
    }

    fn put_table<T: Copy>(
        &mut self,
        time_ns: u64,
        rows: &[(usize, T)],
        kind: impl Fn(Vec<(u64, T)>) -> TableRows,
    ) {
        for rows in rows.chunks(64) {
            let rows = kind(rows.iter().map(|(number, row)| (*number as u64, *row)).collect());
            self.builder.entry(&Entry::Table(TableEntry { time_ns, rows }), FrameTime::NONE);
        }
    }

    /// Closes the frame that is being gathered.
    pub fn flush(&mut self) {
        self.builder.close();
        self.last_flush = Instant::now();
    }

    /// Takes the frames that are complete.
    pub fn take(&mut self) -> Vec<RawFrame> {
        self.builder.take()
    }

    /// Continues in a new file. What is gathered belongs to the old one: take it first, after [`Recorder::flush`]. The
    /// new one says who the processes are and what they hold, so that it can be read alone.
    pub fn begin_part(&mut self, begin: &Begin) {
        self.begin(begin);
        self.take_anchors();
        let mut followed = std::mem::take(&mut self.followed);
        for one in &mut followed {
            self.describe(one);
            one.needs_checkpoint = true;
            if let Ok((state, rows)) = read_checkpoint(&one.segment) {
                self.learn(one);
                self.put_checkpoint(one, &state, &rows);
            }
        }
        self.followed = followed;
    }

    /// Ends the record: takes in what is left, with the time until which it is complete. Take the last frames then.
    pub fn finish(&mut self) {
        let mut time_ns = monotonic_ns();
        for _ in 0..LAST_POLLS {
            if !self.poll().is_behind {
                self.builder.entry(&Entry::AsOf { time_ns }, FrameTime::at(time_ns));
                break;
            }
            time_ns = monotonic_ns();
        }
        self.take_anchors();
        self.builder.entry(&Entry::Finish { time_ns }, FrameTime::at(time_ns));
        self.flush();
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl Followed {
    /// How it ended; `None` if it has not.
    fn end(&self) -> Option<Ended> {
        match self.segment.is_alive() {
            _ if self.segment.is_lost() => Some(Ended::Lost),
            // If the kernel does not say, it counts as alive.
            Err(_) | Ok(true) => None,
            Ok(false) if self.segment.is_closed() => Some(Ended::Closed),
            Ok(false) => Some(Ended::Died),
        }
    }

    /// What it says of itself apart from its memory.
    fn says(&self) -> [u64; 4] {
        let segment = &self.segment;
        let flags = u64::from(segment.is_closed())
            | u64::from(segment.is_degraded()) << 1
            | u64::from(segment.is_partial()) << 2;
        [flags, segment.unlisted(), segment.anomalies().iter().sum(), segment.self_checks()[1]]
    }
}
