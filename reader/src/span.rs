//! A span of time in one process: the most that it used of each device, and what that was made of.

use std::sync::Arc;

use shm_layout::protocol::live::LiveList;
use shm_layout::protocol::observe::Slot;
use shm_layout::{Class, Counters, Event, NO_DEVICE};
use tt_shm_os::{Calibration, monotonic_ns};

use crate::counters::Snapshot;
use crate::error::ReadError;
use crate::holdings::{Effect, Holdings, Sum};
use crate::level::{Level, UsedMemory};
use crate::names::Names;
use crate::segment::Segment;

/// The number of attempts to read the live list of a process that overwrites its ring meanwhile.
const ATTEMPTS: usize = 4;

/// Measures a span of time in a process: its peak of DRAM and L1 within the span, and what that was made of.
///
/// The span begins with what is live, and takes in each event after that. Nothing of the process changes: its
/// own peaks are not reset, so that spans may overlap and several observers may measure at the same time. It
/// may be polled and ended on any thread.
///
/// **How often to poll.** [`Span::end`] takes in whatever the ring still has, so a short span needs no poll. In
/// a longer one call [`Span::poll`] at least once per quarter of the ring: 4096 events, with the 16384 slots
/// that are the default. If the ring was overwritten before it was read, [`SpanReport::missed`] counts, and
/// peaks are as exact as the process's own peaks make them: see [`PeakRange`].
///
/// ```
/// use std::sync::Arc;
/// use tt_shm_reader::{Segment, Span};
/// # use tt_shm_writer::{Alloc, BufferType, DeviceInfo, Record, Tracker};
/// # let ns = format!("doc-span-{}", std::process::id());
/// # let tracker = Tracker::builder().enabled(true).namespace(ns).open()?;
/// # let device = tracker.register_device(&DeviceInfo { chip_id: 7, ..Default::default() })?;
/// # let path = tracker.segment_path().unwrap();
/// # let name = tracker.intern("activations")?;
///
/// let span = Span::begin(Arc::new(Segment::open(&path)?))?;
/// tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 4096).name(name))?; // the work
/// tracker.free(device, 1)?;
/// let report = span.end();
///
/// let dram = &report.devices[0].dram;
/// assert_eq!((dram.peak.exact(), dram.begin_bytes, dram.end_bytes), (Some(4096), 0, Some(0)));
/// let made_of = dram.made_of.as_ref().expect("no event was missed");
/// assert_eq!((made_of[0].name.as_deref(), made_of[0].bytes), (Some("activations"), 4096));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Span {
    segment: Arc<Segment>,
    began_ns: u64,
    began_at: u64,
    /// The position of the last event taken in.
    position: u64,
    /// By device index.
    devices: Vec<Device>,
    events: u64,
    missed: u64,
    /// Whether the ring was overwritten, and the state not yet read anew.
    is_behind: bool,
    is_doubted: bool,
    broken: Option<ReadError>,
}

/// One device of the process.
#[derive(Debug)]
struct Device {
    held: Holdings,
    /// Whether everything that is live is known by name.
    is_listed: bool,
    levels: [Level; 2],
}

impl Device {
    fn new(position: u64, held: Holdings, is_listed: bool) -> Device {
        let levels = UsedMemory::ALL.map(|memory| Level::begin(memory, position, &held, is_listed));
        Device { held, is_listed, levels }
    }
}

/// The peak of a span, as far as it is known.
///
/// It is exact if no event was missed. If some were, the process's own peak tells more: if that rose meanwhile,
/// it is the peak of that time; if it did not, it bounds it; and if it was reset meanwhile, nothing does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeakRange {
    /// The most that the process reported at one moment.
    pub low: u64,
    /// The most that is possible. `None` if nothing bounds it: see above, [`SpanReport::is_doubted`], and
    /// [`SpanReport::is_behind`].
    pub high: Option<u64>,
}

impl PeakRange {
    /// The peak, if it is exact.
    pub fn exact(&self) -> Option<u64> {
        self.high.filter(|high| *high == self.low)
    }
}

/// A part of a peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanPart {
    /// Its class.
    pub class: Class,
    /// The name of the buffers, or of the program whose circular buffers they are; `None` if they have none, or
    /// if they are not in the live list because the process had no room there. Not trusted: escape control
    /// characters before displaying it.
    pub name: Option<Arc<str>>,
    /// The number of that name, for [`Segment::name_bytes_of`]; 0 for none.
    pub name_id: u16,
    /// The bytes that they occupy.
    pub bytes: u64,
    /// The number of buffers; for circular buffers, the number of programs.
    pub count: u64,
}

/// What a span did to one memory of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemorySpan {
    /// The bytes used when the span began.
    pub begin_bytes: u64,
    /// The bytes used when it ended; `None` if the process was too fast to be read then.
    pub end_bytes: Option<u64>,
    /// The peak within the span.
    pub peak: PeakRange,
    /// When `peak.low` was reached, in nanoseconds of CLOCK_MONOTONIC. `None` if it was reached before the span
    /// began, or if the time is not known.
    pub peak_time_ns: Option<u64>,
    /// What `peak.low` was made of, most bytes first: at the moment at which it was reached or, if events were
    /// missed, at some moment at which as much was used. `None` if that is not known.
    pub made_of: Option<Vec<SpanPart>>,
}

/// What a span did to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSpan {
    /// The index into the segment's device list.
    pub device: u8,
    /// The chip; `None` if its entry can no longer be read.
    pub chip_id: Option<u64>,
    /// DRAM used: buffers and traces.
    pub dram: MemorySpan,
    /// L1 used: buffers and circular buffers of resident programs.
    pub l1: MemorySpan,
}

/// What happened in a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanReport {
    /// When the span began, in nanoseconds of CLOCK_MONOTONIC.
    pub begin_ns: u64,
    /// When it ended, likewise.
    pub end_ns: u64,
    /// The position that it began with: the first event of the span is the one after it.
    pub begin_position: u64,
    /// The position of its last event.
    pub end_position: u64,
    /// The number of events that were taken in.
    pub events: u64,
    /// The number of events that were not: they were overwritten, or passed when the state was read anew.
    pub missed: u64,
    /// Whether the process says of itself that its figures cannot be relied on: it holds memory that it cannot
    /// report, or its sums differed from those of its allocator. Then no peak has an upper bound.
    pub is_doubted: bool,
    /// Whether the process was too fast for its last state to be read. Then no peak has an upper bound.
    pub is_behind: bool,
    /// Why the segment can no longer be believed. Then `devices` is empty.
    pub broken: Option<ReadError>,
    /// The devices of the process, by device index.
    pub devices: Vec<DeviceSpan>,
}

/// The state of a process at one position.
struct State {
    position: u64,
    devices: Vec<Holdings>,
    /// Whether everything that is live is known by name.
    is_listed: bool,
}

impl Span {
    /// Begins a span now. Reads the live list, which takes time in proportion to what is live.
    ///
    /// Fails if the process cannot be read: it is broken, or too busy ([`ReadError::Busy`]: try again).
    pub fn begin(segment: Arc<Segment>) -> Result<Span, ReadError> {
        let began_ns = monotonic_ns();
        let State { position, devices, is_listed } = State::read(&segment)?;
        let devices = devices.into_iter().map(|held| Device::new(position, held, is_listed)).collect();
        let mut span = Span {
            segment,
            began_ns,
            began_at: position,
            position,
            devices,
            events: 0,
            missed: 0,
            is_behind: false,
            is_doubted: false,
            broken: None,
        };
        span.consider_doubts();
        Ok(span)
    }

    /// What is measured.
    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Takes in what has happened since the last poll, and returns how many events that were, including those
    /// missed. If that is more than a quarter of the ring, poll more often: see [`Span`].
    pub fn poll(&mut self) -> u64 {
        let before = self.position;
        if self.broken.is_none()
            && let Err(error) = self.advance()
        {
            self.broken = Some(error);
        }
        self.position.saturating_sub(before)
    }

    /// Ends the span now.
    pub fn end(mut self) -> SpanReport {
        self.poll();
        let end_ns = monotonic_ns();
        // A reading of the clock per report, not per peak.
        let clock = self.segment.is_time_known().then(|| self.segment.calibration());
        let mut names = Names::new(&self.segment);
        let devices = if self.broken.is_some() { &[][..] } else { &self.devices[..] };
        let devices = (0..).zip(devices);
        let devices = devices.map(|(index, device)| self.report(index, device, clock.as_ref(), &mut names));
        SpanReport {
            begin_ns: self.began_ns,
            end_ns,
            begin_position: self.began_at,
            end_position: self.position,
            events: self.events,
            missed: self.missed,
            is_doubted: self.is_doubted,
            is_behind: self.is_behind,
            devices: devices.collect(),
            broken: self.broken.clone(),
        }
    }

    fn report(
        &self,
        index: u8,
        device: &Device,
        clock: Option<&Calibration>,
        names: &mut Names<'_>,
    ) -> DeviceSpan {
        let [dram, l1] = device.levels.each_ref().map(|level| {
            let used = level.memory().used(device.held.counters());
            let is_bounded = !self.is_behind && !self.is_doubted;
            let parts = level.made_of(&device.held).map(|parts| {
                let part = |((class, name_id), sum): ((Class, u16), Sum)| SpanPart {
                    class,
                    name: names.get(name_id),
                    name_id,
                    bytes: sum.bytes,
                    count: sum.count,
                };
                let mut parts: Vec<SpanPart> = parts.into_iter().map(part).collect();
                parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
                parts
            });
            MemorySpan {
                begin_bytes: level.begin,
                end_bytes: (!self.is_behind).then_some(used),
                peak: PeakRange { low: level.low, high: level.high.filter(|_| is_bounded) },
                peak_time_ns: level.time.zip(clock).map(|(ticks, clock)| clock.to_monotonic_ns(ticks)),
                made_of: parts,
            }
        });
        let chip_id = self.segment.device(usize::from(index)).map(|entry| entry.chip_id);
        DeviceSpan { device: index, chip_id, dram, l1 }
    }

    fn advance(&mut self) -> Result<(), ReadError> {
        self.consider_doubts();
        if !self.is_behind {
            self.follow_to(self.segment.head())?;
        }
        if !self.is_behind && self.devices.iter().any(|device| !device.is_listed) {
            self.learn_names()?;
        }
        if self.is_behind {
            self.read_anew()?;
        }
        check_loss(&self.segment)
    }

    fn consider_doubts(&mut self) {
        let [_, different] = self.segment.self_checks();
        self.is_doubted |= different > 0 || self.segment.is_partial();
    }

    /// Takes in the events up to a position, and returns whether it got there.
    fn follow_to(&mut self, end: u64) -> Result<bool, ReadError> {
        let segment = Arc::clone(&self.segment);
        let words = segment.words();
        // Bounded: if more than the ring is left, the first of them was overwritten.
        for _ in 0..words.ring.len() {
            if self.position >= end {
                break;
            }
            match words.read_slot(self.position + 1) {
                Slot::Ready(event) => self.take(&event)?,
                Slot::Pending => break,
                Slot::Lapped => {
                    self.is_behind = true;
                    break;
                }
            }
        }
        Ok(self.position >= end)
    }

    fn take(&mut self, event: &Event) -> Result<(), ReadError> {
        (self.position, self.events) = (event.stamp, self.events + 1);
        if event.device == NO_DEVICE {
            return Ok(());
        }
        self.make_room_for(usize::from(event.device) + 1)?;
        let Device { held, is_listed, levels } = &mut self.devices[usize::from(event.device)];
        let lowered = UsedMemory::lowered_by(event);
        levels.iter_mut().filter(|level| Some(level.memory()) == lowered).for_each(|level| level.keep(held));
        let effect = held.apply(event, event.stamp).map_err(|cause| implausible(&self.segment, cause))?;
        for level in levels {
            level.after(event, held, *is_listed);
            if let Effect::Named(before, name) = effect {
                level.rename(&before, name);
            }
        }
        Ok(())
    }

    /// Makes sure that there are that many devices. New ones had nothing when the span began.
    fn make_room_for(&mut self, count: usize) -> Result<(), ReadError> {
        if count > self.devices.len() {
            // Checked now: a device is listed before its first event.
            let listed = self.segment.words().device_count();
            if count > listed {
                return Err(unlisted(&self.segment, listed));
            }
            let began_at = self.began_at;
            self.devices.resize_with(count, || Device::new(began_at, Holdings::default(), true));
        }
        Ok(())
    }

    /// Reads the state anew after events that were overwritten. If the process is too busy, the next poll tries
    /// again.
    fn read_anew(&mut self) -> Result<(), ReadError> {
        let State { position, devices, is_listed } = match State::read(&self.segment) {
            Err(ReadError::Busy { .. }) => return Ok(()),
            state => state?,
        };
        if devices.len() < self.devices.len() {
            return Err(unlisted(&self.segment, devices.len()));
        }
        self.make_room_for(devices.len())?;
        for (device, held) in self.devices.iter_mut().zip(devices) {
            for level in &mut device.levels {
                level.keep(&device.held);
                level.after_gap(device.held.counters(), position, &held, is_listed);
            }
            (device.held, device.is_listed) = (held, is_listed);
        }
        self.missed = self.missed.saturating_add(position.saturating_sub(self.position));
        (self.position, self.is_behind) = (position, false);
        Ok(())
    }

    /// Reads the names of what is live, if the process was too fast for that before.
    fn learn_names(&mut self) -> Result<(), ReadError> {
        let list = self.segment.live_list();
        if list.exact && self.follow_to(list.position)? && self.position == list.position {
            for (index, device) in (0..).zip(&mut self.devices) {
                device.held.learn(index, &list.rows);
                device.is_listed = true;
            }
        }
        Ok(())
    }
}

impl State {
    /// Counters and live list at one position. If the list cannot be had, only the counters.
    fn read(segment: &Segment) -> Result<State, ReadError> {
        for _ in 0..ATTEMPTS {
            let snapshot = segment.counters()?;
            let list = segment.live_list();
            check_loss(segment)?;
            if list.exact
                && let Some(state) = State::join(segment, snapshot, &list)?
            {
                return Ok(state);
            }
            // With few cores, the process may be waiting for this one.
            std::thread::yield_now();
        }
        let Snapshot { position, counters } = segment.counters()?;
        check_loss(segment)?;
        Ok(State { position, devices: counters.into_iter().map(Holdings::new).collect(), is_listed: false })
    }

    /// Brings counters to the position of a list that was read after them; `None` if the events between them are
    /// not there any more.
    fn join(segment: &Segment, snapshot: Snapshot, list: &LiveList) -> Result<Option<State>, ReadError> {
        let Snapshot { position, mut counters } = snapshot;
        let words = segment.words();
        let Some(behind) = list.position.checked_sub(position) else { return Ok(None) };
        if behind > words.ring.len() as u64 {
            return Ok(None);
        }
        for position in position + 1..=list.position {
            let Slot::Ready(event) = words.read_slot(position) else { return Ok(None) };
            let device = usize::from(event.device);
            if event.device == NO_DEVICE {
                continue;
            }
            if device >= counters.len() {
                let listed = segment.words().device_count();
                if device >= listed {
                    return Err(unlisted(segment, listed));
                }
                counters.resize(device + 1, Counters::ZERO);
            }
            counters[device].apply(&event).map_err(|cause| implausible(segment, cause))?;
        }
        let with_names = |(index, counters): (u8, Counters)| {
            let mut held = Holdings::new(counters);
            held.learn(index, &list.rows);
            held
        };
        let devices = (0..).zip(counters).map(with_names).collect();
        Ok(Some(State { position: list.position, devices, is_listed: true }))
    }
}

fn check_loss(segment: &Segment) -> Result<(), ReadError> {
    match segment.loss() {
        None => Ok(()),
        Some(cause) => Err(ReadError::Lost { file: segment.file_name().to_owned(), cause }),
    }
}

fn implausible(segment: &Segment, cause: shm_layout::Implausible) -> ReadError {
    ReadError::ImplausibleEvent { file: segment.file_name().to_owned(), cause }
}

fn unlisted(segment: &Segment, listed: usize) -> ReadError {
    ReadError::UnlistedDevice { file: segment.file_name().to_owned(), listed }
}
