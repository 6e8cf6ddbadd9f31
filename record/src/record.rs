//! A record that was opened: what is in it, and how to read it again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use shm_layout::DeviceEntry;

use crate::clock::Clocks;
use crate::entry::{Decoder, EndEntry, Entry, ProcessEntry};
use crate::error::{Damage, DecodeError, OpenError, ReadError};
use crate::facts::Begin;
use crate::frame::{FRAME_HEADER_LEN, FrameHeader};
use crate::merge::MergedEvent;
use crate::scan::Scan;

/// Where the bytes of a record are.
#[derive(Debug)]
pub(crate) enum Source {
    File(File),
    Bytes(Vec<u8>),
}

impl Source {
    pub(crate) fn len(&self) -> io::Result<u64> {
        match self {
            Source::File(file) => Ok(file.metadata()?.len()),
            Source::Bytes(bytes) => Ok(bytes.len() as u64),
        }
    }

    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        match self {
            Source::File(file) => file.read_exact_at(buffer, offset),
            Source::Bytes(bytes) => {
                let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
                let start = usize::try_from(offset).map_err(|_| short())?;
                let end = start.checked_add(buffer.len()).ok_or_else(short)?;
                buffer.copy_from_slice(bytes.get(start..end).ok_or_else(short)?);
                Ok(())
            }
        }
    }

    /// What follows a header, decompressed.
    pub(crate) fn unpack(
        &self,
        offset: u64,
        header: &FrameHeader,
    ) -> io::Result<Result<Vec<u8>, DecodeError>> {
        let mut stored = vec![0; header.stored_len as usize];
        self.read_at(offset + FRAME_HEADER_LEN as u64, &mut stored)?;
        Ok(header.unpack(&stored))
    }
}

/// A frame of a record.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Where it begins, in bytes from the beginning of the file.
    pub offset: u64,
    /// Its header.
    pub header: FrameHeader,
    /// The earliest time of an event in it; `u64::MAX` if it has none.
    pub first_ns: u64,
    /// The latest time of anything in it, 0 if it has none.
    pub last_ns: u64,
    /// The processes that have entries in it, in ascending order.
    pub processes: Vec<u32>,
    /// Whether a checkpoint begins in it.
    pub has_checkpoint: bool,
    /// Whether frames are missing before it.
    pub follows_loss: bool,
}

/// Events of a process that are not in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The position of the first event that is missing.
    pub first: u64,
    /// The position of the last one.
    pub last: u64,
    /// When the last event before it happened; 0 if there is none.
    pub after_ns: u64,
    /// When the first event after it happened, or the gap was noticed; 0 if neither is known.
    pub before_ns: u64,
    /// Whether the recorder noticed it; otherwise it is because the file is damaged.
    pub noticed: bool,
}

impl Gap {
    /// The number of events that are missing.
    pub fn lost(&self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }
}

/// A checkpoint of a process that is in the record as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    /// The place of the frame in which it begins.
    pub(crate) frame: usize,
    /// Its place among the entries of that frame.
    pub(crate) place: usize,
    pub(crate) position: u64,
    /// The ticks of the last event that it includes, 0 if there is none.
    pub(crate) ticks: u64,
}

/// A process of a record.
#[derive(Clone, Debug)]
pub struct Process {
    /// What the recorder knew of it: segment header, owner, command line.
    pub entry: ProcessEntry,
    /// Its devices by index; `None` for one whose description is not in the record.
    pub devices: Vec<Option<DeviceEntry>>,
    pub(crate) names: BTreeMap<u16, Arc<str>>,
    /// The number of its events in the record.
    pub events: u64,
    /// The positions of its first and last event in the record; zeros if there is none.
    pub positions: (u64, u64),
    /// When these happened.
    pub span_ns: (u64, u64),
    /// The events that are missing between those in the record, in order.
    pub gaps: Vec<Gap>,
    /// How it ended; `None` if it was alive at the end of the record.
    pub end: Option<EndEntry>,
    pub(crate) checkpoints: Vec<Checkpoint>,
}

impl Process {
    /// Its number in the record.
    pub fn number(&self) -> u32 {
        self.entry.number
    }

    /// The name with this number, as its events and rows carry it; `None` for 0 and for one that is not in the record.
    /// Invalid UTF-8 is replaced. Not trusted: escape control characters before displaying it.
    pub fn name(&self, id: u16) -> Option<&Arc<str>> {
        self.names.get(&id)
    }

    /// All its names, by number.
    pub fn names(&self) -> impl Iterator<Item = (u16, &Arc<str>)> {
        self.names.iter().map(|(id, name)| (*id, name))
    }

    /// The name of the process. Not trusted, like all text of a record.
    pub fn process_name(&self) -> String {
        shm_layout::text::decode(&self.entry.header.process_name)
    }

    /// Whether its ticks can be converted to times of the recorder's clock.
    pub fn is_time_known(&self) -> bool {
        self.entry.shares_clock || self.entry.clock() != Some(tt_shm_os::ClockKind::Monotonic)
    }

    /// When its segment was created, CLOCK_MONOTONIC; `None` if its clock is not the recorder's.
    pub fn started_ns(&self) -> Option<u64> {
        self.entry.shares_clock.then_some(self.entry.header.anchor_monotonic_ns)
    }

    /// The number of its events that are missing.
    pub fn lost(&self) -> u64 {
        self.gaps.iter().map(Gap::lost).fold(0, u64::saturating_add)
    }
}

/// Sums over a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The length of the file.
    pub bytes: u64,
    /// Its frames, without those of the index.
    pub frames: u64,
    /// Events.
    pub events: u64,
    /// Events that are missing.
    pub lost: u64,
    /// Gaps.
    pub gaps: u64,
    /// Checkpoints that are there as a whole.
    pub checkpoints: u64,
    /// Markers and failed allocations that [`Record::markers`] and [`Record::failures`] have no room for.
    pub unlisted_moments: u64,
}

/// A record that was opened and checked.
///
/// Everything was read once: what it says of processes is kept, its events are not. The file must not change while the
/// record is used (nobody writes to one that is finished); if it does, reading returns an error.
#[derive(Debug)]
pub struct Record {
    pub(crate) source: Source,
    pub(crate) path: PathBuf,
    pub(crate) begin: Begin,
    pub(crate) frames: Vec<Frame>,
    /// For each frame, the earliest event in it and all later ones.
    pub(crate) earliest: Vec<u64>,
    pub(crate) processes: BTreeMap<u32, Process>,
    pub(crate) clocks: Clocks,
    pub(crate) totals: Totals,
    pub(crate) damage: Option<Damage>,
    pub(crate) finished_ns: Option<u64>,
    pub(crate) as_of_ns: u64,
    pub(crate) has_index: bool,
    pub(crate) markers: Vec<MergedEvent>,
    pub(crate) failures: Vec<MergedEvent>,
}

impl Record {
    /// Opens a record and checks all of it. A damaged or cut file is opened, too: see [`Record::damage`].
    pub fn open(path: impl AsRef<Path>) -> Result<Record, OpenError> {
        let path = path.as_ref();
        let failed = |cause| OpenError::Io { path: path.to_owned(), cause };
        // Before it is opened: opening a pipe would wait for its writer.
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
        }
        Scan::run(Source::File(File::open(path).map_err(failed)?), path)
    }

    /// Opens a record that is in memory.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Record, OpenError> {
        Scan::run(Source::Bytes(bytes), Path::new("(memory)"))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How the record began. Empty if that part of the file is damaged.
    pub fn begin(&self) -> &Begin {
        &self.begin
    }

    /// The processes, by number.
    pub fn processes(&self) -> impl ExactSizeIterator<Item = &Process> {
        self.processes.values()
    }

    /// The process with this number.
    pub fn process(&self, number: u32) -> Option<&Process> {
        self.processes.get(&number)
    }

    /// The times of the first and the last thing in the record; zeros if there is none.
    pub fn span_ns(&self) -> (u64, u64) {
        let first = self.frames.iter().map(|frame| frame.first_ns).min().unwrap_or(u64::MAX);
        let first = if self.begin.monotonic_ns > 0 { first.min(self.begin.monotonic_ns) } else { first };
        let last = self.frames.iter().map(|frame| frame.last_ns).max().unwrap_or(0);
        if first == u64::MAX { (last, last) } else { (first, last.max(first)) }
    }

    /// Sums over the record.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// What is wrong with the file; `None` if nothing is.
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// When the recorder ended in order; `None` if it was killed, or if the end of the file is missing.
    pub fn finished_ns(&self) -> Option<u64> {
        self.finished_ns
    }

    /// The time up to which the record has everything that its processes had reported, apart from gaps.
    pub fn complete_until_ns(&self) -> u64 {
        self.as_of_ns
    }

    /// Whether the file has an index of all its frames; otherwise what one says was found by reading all of them.
    pub fn has_index(&self) -> bool {
        self.has_index
    }

    /// The frames that can be read, in order.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// All markers, by time: the first million.
    pub fn markers(&self) -> &[MergedEvent] {
        &self.markers
    }

    /// All failed allocations, by time: the first million.
    pub fn failures(&self) -> &[MergedEvent] {
        &self.failures
    }

    /// The clocks of the record.
    pub fn clocks(&self) -> &Clocks {
        &self.clocks
    }

    /// The time of a tick of a process, in nanoseconds of CLOCK_MONOTONIC.
    pub fn to_monotonic_ns(&self, process: &Process, ticks: u64) -> u64 {
        self.clocks.to_monotonic_ns(&process.entry, ticks)
    }

    /// The wall-clock time of a moment of the record, in nanoseconds since 1970.
    pub fn to_realtime_ns(&self, monotonic_ns: u64) -> u64 {
        self.clocks.to_realtime_ns(monotonic_ns)
    }

    /// All entries, in the order of the file.
    pub fn entries(&self) -> Entries<'_> {
        self.entries_of(0)
    }

    /// The entries from the first frame on that has something of this time or later. What is before it is earlier.
    pub fn entries_from(&self, time_ns: u64) -> Entries<'_> {
        self.entries_of(self.frame_of(time_ns))
    }

    pub(crate) fn frame_of(&self, time_ns: u64) -> usize {
        self.frames.iter().position(|frame| frame.last_ns >= time_ns).unwrap_or(self.frames.len())
    }

    pub(crate) fn entries_of(&self, frame: usize) -> Entries<'_> {
        Entries { record: self, next: frame, entries: Vec::new().into_iter() }
    }

    /// The entries of a frame. Fails only if the file has changed since it was opened.
    pub fn read_frame(&self, place: usize) -> Result<Vec<Entry>, ReadError> {
        let Some(frame) = self.frames.get(place) else { return Ok(Vec::new()) };
        let sequence = frame.header.sequence;
        let raw = self.source.unpack(frame.offset, &frame.header);
        let raw = raw.map_err(|cause| ReadError::Io { sequence, cause })?;
        let entries = raw.and_then(|raw| Decoder::new(&raw).collect());
        entries.map_err(|cause| ReadError::Changed { sequence, cause })
    }

    pub(crate) fn known(&self, number: u32) -> Result<&Process, ReadError> {
        let count = self.processes.len();
        self.process(number).ok_or(ReadError::NoProcess { number, count })
    }
}

/// Entries of a record, in the order of the file. Made by [`Record::entries`] and [`Record::entries_from`].
#[derive(Debug)]
pub struct Entries<'a> {
    record: &'a Record,
    next: usize,
    entries: std::vec::IntoIter<Entry>,
}

impl Iterator for Entries<'_> {
    type Item = Result<Entry, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.entries.next() {
                return Some(Ok(entry));
            }
            if self.next >= self.record.frames.len() {
                return None;
            }
            match self.record.read_frame(self.next) {
                Ok(entries) => self.entries = entries.into_iter(),
                Err(error) => {
                    self.next = self.record.frames.len();
                    return Some(Err(error));
                }
            }
            self.next += 1;
        }
    }
}
