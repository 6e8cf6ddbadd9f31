//! The entries of a frame: what they say, and their bytes.
//!
//! ```text
//! kind u32 | process u32 | length u32 | code u32 | bytes, padded to a multiple of 8
//! ```
//!
//! The length is without the padding. Entries of a kind that a reader does not know are skipped.

use std::sync::atomic::AtomicU64;

use bytemuck::{Pod, Zeroable};
use shm_layout::control::{Anomaly, state};
use shm_layout::table::{
    Bucket, DeviceStats, DriverStats, FailureRecord, Notice, ProcessStats, RegionStats, TelemetryBucket,
    UsageStats,
};
use shm_layout::{
    Counters, DeviceEntry, Event, HEADER_WORDS, MAX_COUNT, MAX_DEVICES, MAX_NAME_LEN, MAX_ROWS, Row,
    SegmentHeader,
};
use tt_shm_os::{Anchor, ClockKind};

use crate::error::DecodeError;
use crate::facts::{Begin, MAX_FACTS, Who};
use crate::pod::{Reader, padded, put, put_numbered};

/// The most bytes of one entry: writers split what is larger.
pub const MAX_ENTRY: usize = 512 << 10;
/// The length of what precedes the bytes of an entry.
pub(crate) const ENTRY_HEAD: usize = 16;

/// The kinds of entries, by their codes.
mod kind {
    pub(super) const BEGIN: u32 = 1;
    pub(super) const PROCESS: u32 = 2;
    pub(super) const DEVICES: u32 = 3;
    pub(super) const NAMES: u32 = 4;
    pub(super) const STATE: u32 = 5;
    pub(super) const ROWS: u32 = 6;
    pub(super) const EVENTS: u32 = 7;
    pub(super) const GAP: u32 = 8;
    pub(super) const END: u32 = 9;
    pub(super) const CLOCK: u32 = 10;
    pub(super) const DRIVER: u32 = 11;
    pub(super) const TELEMETRY: u32 = 12;
    pub(super) const REGIONS: u32 = 13;
    pub(super) const TABLE: u32 = 14;
    pub(super) const FINISH: u32 = 15;
    pub(super) const AS_OF: u32 = 16;
}

/// One thing that a record says. `process` is the number that the record gave to a process.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Entry {
    /// The record begins. In the first frame.
    Begin(Begin),
    /// A process was found, or more is known of it: the last one counts.
    Process(Box<ProcessEntry>),
    /// Devices of a process, by index: new ones, or ones of which more is known.
    Devices {
        /// The process.
        process: u32,
        /// The entries, with their indices.
        devices: Vec<(u64, DeviceEntry)>,
    },
    /// Names of a process, by number.
    Names {
        /// The process.
        process: u32,
        /// The bytes of each name, which need not be UTF-8.
        names: Vec<(u16, Vec<u8>)>,
    },
    /// A checkpoint of a process begins. Its rows follow.
    State {
        /// The process.
        process: u32,
        /// The checkpoint.
        state: Box<StateEntry>,
    },
    /// Rows of the checkpoint at `position`.
    Rows {
        /// The process.
        process: u32,
        /// The position of the checkpoint.
        position: u64,
        /// The number of rows of that checkpoint before these.
        first: u64,
        /// The rows.
        rows: Vec<Row>,
    },
    /// Events of a process, with consecutive positions.
    Events {
        /// The process.
        process: u32,
        /// The raw slots, at least one.
        events: Vec<Event>,
    },
    /// Events that the recorder could not read.
    Gap(GapEntry),
    /// A process ended.
    End(EndEntry),
    /// One moment on several clocks.
    Clock(ClockEntry),
    /// What the driver told of its devices at a time, by row of the table.
    Driver {
        /// The time.
        time_ns: u64,
        /// The rows.
        rows: Vec<(u64, DriverStats)>,
    },
    /// The telemetry of devices in the bucket before a time, by row of the table.
    Telemetry {
        /// The time.
        time_ns: u64,
        /// The buckets.
        rows: Vec<(u64, TelemetryBucket)>,
    },
    /// What regions of tt-metal told at a time, by row of the table.
    Regions {
        /// The time.
        time_ns: u64,
        /// The rows.
        rows: Vec<(u64, RegionStats)>,
    },
    /// Rows of the aggregator's table at a time.
    Table(TableEntry),
    /// The recorder ended in order at this time: nothing is missing after it.
    Finish {
        /// The time.
        time_ns: u64,
    },
    /// Everything that the processes followed had written before this time is in the record before this entry, or in a
    /// gap.
    AsOf {
        /// The time.
        time_ns: u64,
    },
}

/// A process as the recorder found it.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessEntry {
    /// Its number in the record.
    pub number: u32,
    /// The owner of its segment.
    pub uid: u32,
    /// When the recorder found it.
    pub seen_ns: u64,
    /// Whether it has the same CLOCK_MONOTONIC as the recorder, so that the anchor in its header means something here.
    pub shares_clock: bool,
    /// The header of its segment.
    pub header: SegmentHeader,
    /// Who it is.
    pub who: Who,
}

impl ProcessEntry {
    /// A process of which nothing else is known.
    pub fn new(number: u32, header: SegmentHeader) -> ProcessEntry {
        ProcessEntry { number, uid: 0, seen_ns: 0, shares_clock: true, header, who: Who::default() }
    }
}

/// What a process held at one position of its ring, and what it said of itself then: with the rows that follow it,
/// everything that an observer would see.
#[derive(Clone, Debug, PartialEq)]
pub struct StateEntry {
    /// The position of the last event that is included.
    pub position: u64,
    /// When it was read.
    pub time_ns: u64,
    /// Whether the rows are exactly those of the position. The counters are in any case.
    pub exact: bool,
    /// The [state bits](state) of the process.
    pub flags: u64,
    /// The number of live allocations without a row.
    pub unlisted: u64,
    /// The ticks when the process closed its segment; 0 if it did not.
    pub closed_at: u64,
    /// How often the process compared its sums with its allocator's, and how often they differed.
    pub self_checks: [u64; 2],
    /// Counts by [anomaly](Anomaly) code.
    pub anomalies: [u64; Anomaly::ALL.len()],
    /// The number of rows that belong to it.
    pub row_count: u64,
    /// The counters by device index.
    pub counters: Vec<Counters>,
}

impl StateEntry {
    /// A process before its first event.
    pub fn nothing(time_ns: u64) -> StateEntry {
        StateEntry {
            position: 0,
            time_ns,
            exact: true,
            flags: 0,
            unlisted: 0,
            closed_at: 0,
            self_checks: [0; 2],
            anomalies: [0; Anomaly::ALL.len()],
            row_count: 0,
            counters: Vec::new(),
        }
    }

    /// Whether the process had no room for all rows or names.
    pub fn is_degraded(&self) -> bool {
        self.flags & state::DEGRADED != 0
    }

    /// Whether the process holds memory that it cannot report.
    pub fn is_partial(&self) -> bool {
        self.flags & state::PARTIAL != 0
    }

    /// Whether the process had closed its segment.
    pub fn is_closed(&self) -> bool {
        self.flags & state::CLOSED != 0
    }
}

/// Events of a process that are not in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapEntry {
    /// The process.
    pub process: u32,
    /// The position of the first event that is missing.
    pub first: u64,
    /// The position of the last one.
    pub last: u64,
    /// When it was noticed.
    pub time_ns: u64,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Ended {
    /// It is not known.
    Unknown = 0,
    /// It closed its segment in order.
    Closed = 1,
    /// It died without closing its segment.
    Died = 2,
    /// Its segment could not be read any more.
    Lost = 3,
}

impl Ended {
    const ALL: [Ended; 4] = [Ended::Unknown, Ended::Closed, Ended::Died, Ended::Lost];
}

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndEntry {
    /// The process.
    pub process: u32,
    /// When its end was noticed, which may be later than it was.
    pub noticed_ns: u64,
    /// How it ended.
    pub how: Ended,
    /// The position of its last event that was read or missed.
    pub position: u64,
}

/// One moment on the clock of some processes and on those of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockEntry {
    /// The kind of clock that the ticks are of.
    pub kind: ClockKind,
    /// The moment.
    pub anchor: Anchor,
}

/// Some rows of the aggregator's table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableEntry {
    /// When they were read.
    pub time_ns: u64,
    /// The rows, with their numbers.
    pub rows: TableRows,
}

/// Rows of the aggregator's table, of one kind, with their numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum TableRows {
    /// Devices.
    Devices(Vec<(u64, DeviceStats)>),
    /// Processes.
    Processes(Vec<(u64, ProcessStats)>),
    /// Usages of a device by a process.
    Usages(Vec<(u64, UsageStats)>),
    /// Notices.
    Notices(Vec<(u64, Notice)>),
    /// Failed allocations.
    Failures(Vec<(u64, FailureRecord)>),
    /// History: `device row * 8 + resolution` and a bucket.
    History(Vec<(u64, Bucket)>),
}

/// The fixed part of a process entry.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct ProcessHead {
    uid: u32,
    shares_clock: u32,
    seen_ns: u64,
    header: SegmentHeader,
}

/// The fixed part of a checkpoint.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct StateHead {
    position: u64,
    time_ns: u64,
    exact: u64,
    flags: u64,
    unlisted: u64,
    closed_at: u64,
    self_checks: [u64; 2],
    anomalies: [u64; 16],
    row_count: u64,
}

/// Appends an entry; `write` appends its bytes.
fn put_entry(out: &mut Vec<u8>, kind: u32, process: u32, code: u32, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    [kind, process, 0, code].iter().for_each(|word| put(out, word));
    write(out);
    let len = out.len() - start - ENTRY_HEAD;
    out[start + 8..start + 12].copy_from_slice(&(len as u32).to_le_bytes());
    out.resize(start + ENTRY_HEAD + padded(len), 0);
}

fn put_facts(out: &mut Vec<u8>, facts: &impl serde::Serialize) {
    // Serializing plain structs into memory cannot fail.
    out.extend_from_slice(&serde_json::to_vec(facts).unwrap_or_default());
}

/// Appends events without copying them into an entry first.
pub(crate) fn put_events(out: &mut Vec<u8>, process: u32, events: &[Event]) {
    put_entry(out, kind::EVENTS, process, 0, |out| out.extend_from_slice(bytemuck::cast_slice(events)));
}

/// Appends rows of a checkpoint.
pub(crate) fn put_rows(out: &mut Vec<u8>, process: u32, position: u64, first: u64, rows: &[Row]) {
    put_entry(out, kind::ROWS, process, 0, |out| {
        put(out, &position);
        put(out, &first);
        out.extend_from_slice(bytemuck::cast_slice(rows));
    });
}

impl Entry {
    /// Appends the entry to the bytes of a frame. Entries of more than [`MAX_ENTRY`] bytes are the caller's to split.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Entry::Begin(begin) => put_entry(out, kind::BEGIN, 0, 0, |out| put_facts(out, begin)),
            Entry::Process(process) => process.encode(out),
            Entry::Devices { process, devices } => {
                put_entry(out, kind::DEVICES, *process, 0, |out| put_numbered(out, devices));
            }
            Entry::Names { process, names } => put_entry(out, kind::NAMES, *process, 0, |out| {
                for (id, name) in names {
                    put(out, id);
                    put(out, &(name.len() as u16));
                    out.extend_from_slice(name);
                }
            }),
            Entry::State { process, state } => state.encode(*process, out),
            Entry::Rows { process, position, first, rows } => {
                put_rows(out, *process, *position, *first, rows)
            }
            Entry::Events { process, events } => put_events(out, *process, events),
            Entry::Gap(GapEntry { process, first, last, time_ns }) => {
                put_entry(out, kind::GAP, *process, 0, |out| put(out, &[*first, *last, *time_ns]));
            }
            Entry::End(EndEntry { process, noticed_ns, how, position }) => {
                put_entry(out, kind::END, *process, *how as u32, |out| put(out, &[*noticed_ns, *position]));
            }
            Entry::Clock(ClockEntry { kind: clock, anchor }) => {
                let Anchor { ticks, monotonic_ns, realtime_ns, suspended_ns } = *anchor;
                put_entry(out, kind::CLOCK, 0, clock.code(), |out| {
                    put(out, &[ticks, monotonic_ns, realtime_ns, suspended_ns]);
                });
            }
            Entry::Driver { time_ns, rows } => put_timed(out, kind::DRIVER, 0, *time_ns, rows),
            Entry::Telemetry { time_ns, rows } => put_timed(out, kind::TELEMETRY, 0, *time_ns, rows),
            Entry::Regions { time_ns, rows } => put_timed(out, kind::REGIONS, 0, *time_ns, rows),
            Entry::Table(table) => table.encode(out),
            Entry::Finish { time_ns } => put_entry(out, kind::FINISH, 0, 0, |out| put(out, time_ns)),
            Entry::AsOf { time_ns } => put_entry(out, kind::AS_OF, 0, 0, |out| put(out, time_ns)),
        }
    }

    /// Whether it is of use to a reader that looks only for what processes are and when they were noted.
    pub(crate) fn is_catalog(&self) -> bool {
        !matches!(self, Entry::Events { .. } | Entry::Rows { .. } | Entry::State { .. })
    }

    /// The process that it is about.
    pub fn process(&self) -> Option<u32> {
        match self {
            Entry::Process(entry) => Some(entry.number),
            Entry::Devices { process, .. }
            | Entry::Names { process, .. }
            | Entry::State { process, .. }
            | Entry::Rows { process, .. }
            | Entry::Events { process, .. } => Some(*process),
            Entry::Gap(gap) => Some(gap.process),
            Entry::End(end) => Some(end.process),
            _ => None,
        }
    }

    fn decode(head: [u32; 4], bytes: &[u8]) -> Result<Option<Entry>, DecodeError> {
        let [kind, process, _, code] = head;
        let mut reader = Reader::new(bytes);
        let entry = match kind {
            kind::BEGIN => Entry::Begin(facts(reader.rest())?),
            kind::PROCESS => Entry::Process(Box::new(ProcessEntry::decode(process, reader)?)),
            kind::DEVICES => Entry::Devices { process, devices: devices(reader)? },
            kind::NAMES => Entry::Names { process, names: names(reader)? },
            kind::STATE => Entry::State { process, state: Box::new(StateEntry::decode(reader)?) },
            kind::ROWS => {
                let (position, first) = (reader.pod()?, reader.pod()?);
                Entry::Rows { process, position, first, rows: reader.rest_of()? }
            }
            kind::EVENTS => Entry::Events { process, events: events(reader)? },
            kind::GAP => {
                let [first, last, time_ns] = reader.pod()?;
                position(first)?;
                position(last)?;
                Entry::Gap(GapEntry { process, first, last, time_ns })
            }
            kind::END => {
                let how = Ended::ALL.into_iter().find(|how| *how as u32 == code).unwrap_or(Ended::Unknown);
                let [noticed_ns, last] = reader.pod()?;
                Entry::End(EndEntry { process, noticed_ns, how, position: position(last)? })
            }
            kind::CLOCK => {
                let unknown = DecodeError::Code { what: "clock", code: u64::from(code) };
                let kind = ClockKind::from_code(code).ok_or(unknown)?;
                let [ticks, monotonic_ns, realtime_ns, suspended_ns] = reader.pod()?;
                let anchor = Anchor { ticks, monotonic_ns, realtime_ns, suspended_ns };
                Entry::Clock(ClockEntry { kind, anchor })
            }
            kind::DRIVER => Entry::Driver { time_ns: reader.pod()?, rows: reader.numbered()? },
            kind::TELEMETRY => Entry::Telemetry { time_ns: reader.pod()?, rows: reader.numbered()? },
            kind::REGIONS => Entry::Regions { time_ns: reader.pod()?, rows: reader.numbered()? },
            kind::TABLE => return TableEntry::decode(code, reader).map(|table| table.map(Entry::Table)),
            kind::FINISH => Entry::Finish { time_ns: reader.pod()? },
            kind::AS_OF => Entry::AsOf { time_ns: reader.pod()? },
            _ => return Ok(None),
        };
        Ok(Some(entry))
    }
}

fn put_timed<T: Pod>(out: &mut Vec<u8>, kind: u32, code: u32, time_ns: u64, rows: &[(u64, T)]) {
    put_entry(out, kind, 0, code, |out| {
        put(out, &time_ns);
        put_numbered(out, rows);
    });
}

/// A position that a ring can have.
fn position(position: u64) -> Result<u64, DecodeError> {
    if position > MAX_COUNT { Err(DecodeError::Count(position)) } else { Ok(position) }
}

fn facts<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    if bytes.len() > MAX_FACTS {
        return Err(DecodeError::Count(bytes.len() as u64));
    }
    serde_json::from_slice(bytes).map_err(|error| DecodeError::Facts(error.to_string()))
}

fn devices(mut reader: Reader<'_>) -> Result<Vec<(u64, DeviceEntry)>, DecodeError> {
    let devices: Vec<(u64, DeviceEntry)> = reader.numbered()?;
    match devices.iter().find(|(index, _)| *index >= MAX_DEVICES as u64) {
        Some((index, _)) => Err(DecodeError::Count(*index)),
        None => Ok(devices),
    }
}

fn names(mut reader: Reader<'_>) -> Result<Vec<(u16, Vec<u8>)>, DecodeError> {
    let mut names = Vec::new();
    while let Ok(id) = reader.pod::<u16>() {
        let len = usize::from(reader.pod::<u16>()?);
        if len > MAX_NAME_LEN {
            return Err(DecodeError::Count(len as u64));
        }
        names.push((id, reader.take(len)?.to_vec()));
    }
    Ok(names)
}

fn events(mut reader: Reader<'_>) -> Result<Vec<Event>, DecodeError> {
    let events: Vec<Event> = reader.rest_of()?;
    let first = events.first().ok_or(DecodeError::Count(0))?.stamp;
    // From 1, and no ring gets near the end of the numbers.
    if first == 0 || first > MAX_COUNT {
        return Err(DecodeError::Position { found: first, expected: 1 });
    }
    match (first..).zip(&events).find(|(expected, event)| event.stamp != *expected) {
        Some((expected, event)) => Err(DecodeError::Position { found: event.stamp, expected }),
        None => Ok(events),
    }
}

impl ProcessEntry {
    fn encode(&self, out: &mut Vec<u8>) {
        let ProcessEntry { number, uid, seen_ns, shares_clock, header, ref who } = *self;
        put_entry(out, kind::PROCESS, number, 0, |out| {
            put(out, &ProcessHead { uid, shares_clock: u32::from(shares_clock), seen_ns, header });
            put_facts(out, who);
        });
    }

    fn decode(number: u32, mut reader: Reader<'_>) -> Result<ProcessEntry, DecodeError> {
        let ProcessHead { uid, shares_clock, seen_ns, header } = reader.pod()?;
        let words: [u64; HEADER_WORDS] = bytemuck::must_cast(header);
        // What a reader of the segment would refuse is refused here, too.
        SegmentHeader::read(&words.map(AtomicU64::new), header.total_len)
            .map_err(|error| DecodeError::SegmentHeader(error.to_string()))?;
        let who = facts(reader.rest())?;
        Ok(ProcessEntry { number, uid, seen_ns, shares_clock: shares_clock != 0, header, who })
    }

    /// The clock of its ticks; `None` if this version does not know the code.
    pub fn clock(&self) -> Option<ClockKind> {
        u32::try_from(self.header.clock_kind).ok().and_then(ClockKind::from_code)
    }
}

impl StateEntry {
    fn encode(&self, process: u32, out: &mut Vec<u8>) {
        let mut anomalies = [0; 16];
        anomalies[..self.anomalies.len()].copy_from_slice(&self.anomalies);
        let head = StateHead {
            position: self.position,
            time_ns: self.time_ns,
            exact: u64::from(self.exact),
            flags: self.flags,
            unlisted: self.unlisted,
            closed_at: self.closed_at,
            self_checks: self.self_checks,
            anomalies,
            row_count: self.row_count,
        };
        put_entry(out, kind::STATE, process, 0, |out| {
            put(out, &head);
            out.extend_from_slice(bytemuck::cast_slice(&self.counters));
        });
    }

    fn decode(mut reader: Reader<'_>) -> Result<StateEntry, DecodeError> {
        let head: StateHead = reader.pod()?;
        let counters: Vec<Counters> = reader.rest_of()?;
        if counters.len() > MAX_DEVICES || head.row_count > MAX_ROWS {
            return Err(DecodeError::Count(head.row_count.max(counters.len() as u64)));
        }
        position(head.position)?;
        if let Some(device) = counters.iter().position(|counters| !counters.is_plausible()) {
            return Err(DecodeError::Counters { device });
        }
        let mut anomalies = [0; Anomaly::ALL.len()];
        anomalies.copy_from_slice(&head.anomalies[..Anomaly::ALL.len()]);
        Ok(StateEntry {
            position: head.position,
            time_ns: head.time_ns,
            exact: head.exact != 0,
            flags: head.flags,
            unlisted: head.unlisted,
            closed_at: head.closed_at,
            self_checks: head.self_checks,
            anomalies,
            row_count: head.row_count,
            counters,
        })
    }
}

impl TableEntry {
    fn encode(&self, out: &mut Vec<u8>) {
        let time = self.time_ns;
        match &self.rows {
            TableRows::Devices(rows) => put_timed(out, kind::TABLE, 1, time, rows),
            TableRows::Processes(rows) => put_timed(out, kind::TABLE, 2, time, rows),
            TableRows::Usages(rows) => put_timed(out, kind::TABLE, 3, time, rows),
            TableRows::Notices(rows) => put_timed(out, kind::TABLE, 4, time, rows),
            TableRows::Failures(rows) => put_timed(out, kind::TABLE, 5, time, rows),
            TableRows::History(rows) => put_timed(out, kind::TABLE, 6, time, rows),
        }
    }

    fn decode(code: u32, mut reader: Reader<'_>) -> Result<Option<TableEntry>, DecodeError> {
        let time_ns = reader.pod()?;
        let rows = match code {
            1 => TableRows::Devices(reader.numbered()?),
            2 => TableRows::Processes(reader.numbered()?),
            3 => TableRows::Usages(reader.numbered()?),
            4 => TableRows::Notices(reader.numbered()?),
            5 => TableRows::Failures(reader.numbered()?),
            6 => TableRows::History(reader.numbered()?),
            _ => return Ok(None),
        };
        Ok(Some(TableEntry { time_ns, rows }))
    }
}

/// The entries in the bytes of a frame. Ends after the first error.
pub(crate) struct Decoder<'a> {
    bytes: &'a [u8],
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { bytes }
    }

    fn step(&mut self) -> Result<Option<Entry>, DecodeError> {
        let mut reader = Reader::new(self.bytes);
        let head: [u32; 4] = reader.pod()?;
        let len = head[2] as usize;
        let bytes = reader.take(padded(len))?;
        self.bytes = reader.rest();
        Entry::decode(head, &bytes[..len])
    }
}

impl Iterator for Decoder<'_> {
    type Item = Result<Entry, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.bytes.is_empty() {
            match self.step() {
                Ok(None) => {}
                Ok(Some(entry)) => return Some(Ok(entry)),
                Err(error) => {
                    self.bytes = &[];
                    return Some(Err(error));
                }
            }
        }
        None
    }
}
