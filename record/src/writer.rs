//! Writing a record: entries are gathered into frames, and frames are compressed and appended.

use std::io::{self, Write};

use bytemuck::Zeroable;
use shm_layout::{DeviceEntry, Event, Row};

use crate::entry::{Entry, MAX_ENTRY, ProcessEntry, StateEntry, put_events, put_rows};
use crate::facts::Begin;
use crate::frame::{FRAME_LEN, FrameHeader, FrameKind, frame_flags};
use crate::index::IndexEntry;

/// The most slots or rows of one entry.
const SLOTS: usize = 4096;

/// The times that some entries span, in nanoseconds of CLOCK_MONOTONIC. Zeros stand for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameTime {
    /// The earliest.
    pub first_ns: u64,
    /// The latest.
    pub last_ns: u64,
}

impl FrameTime {
    /// No time.
    pub const NONE: FrameTime = FrameTime { first_ns: 0, last_ns: 0 };

    /// One moment.
    pub fn at(ns: u64) -> FrameTime {
        FrameTime { first_ns: ns, last_ns: ns }
    }

    fn join(self, other: FrameTime) -> FrameTime {
        if other == FrameTime::NONE {
            return self;
        }
        if self == FrameTime::NONE {
            return other;
        }
        FrameTime { first_ns: self.first_ns.min(other.first_ns), last_ns: self.last_ns.max(other.last_ns) }
    }
}

/// A frame that is not compressed yet. Made by a [`FrameBuilder`], written by a [`FrameSink`].
#[derive(Clone, Debug, Default)]
pub struct RawFrame {
    bytes: Vec<u8>,
    time: FrameTime,
    flags: u32,
    processes: Vec<u32>,
    events: u64,
    lost: u64,
}

impl RawFrame {
    /// The number of bytes before compression.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Gathers entries into frames, in the order in which they are given. Does no I/O.
#[derive(Debug, Default)]
pub struct FrameBuilder {
    frame: RawFrame,
    ready: Vec<RawFrame>,
}

impl FrameBuilder {
    /// Adds an entry. Devices and names of more than [`MAX_ENTRY`] bytes must be given in parts.
    pub fn entry(&mut self, entry: &Entry, time: FrameTime) {
        if let Entry::State { .. } = entry {
            self.frame.flags |= frame_flags::CHECKPOINT;
        }
        if entry.is_catalog() {
            self.frame.flags |= frame_flags::CATALOG;
        }
        if let Entry::Gap(gap) = entry {
            self.frame.lost += gap.last.saturating_add(1).saturating_sub(gap.first);
        }
        if let Entry::Finish { .. } = entry {
            self.frame.flags |= frame_flags::LAST;
        }
        entry.encode(&mut self.frame.bytes);
        self.added(entry.process(), time);
    }

    /// Adds events of a process, which must have consecutive positions.
    pub fn events(&mut self, process: u32, events: &[Event], time: FrameTime) {
        for events in events.chunks(SLOTS) {
            put_events(&mut self.frame.bytes, process, events);
            self.frame.events += events.len() as u64;
            self.added(Some(process), time);
        }
    }

    /// Adds a checkpoint of a process.
    pub fn state(&mut self, process: u32, state: &StateEntry, rows: &[Row]) {
        let state = Box::new(StateEntry { row_count: rows.len() as u64, ..state.clone() });
        let (position, time) = (state.position, FrameTime::at(state.time_ns));
        self.entry(&Entry::State { process, state }, time);
        for (chunk, rows) in (0_u64..).zip(rows.chunks(SLOTS)) {
            put_rows(&mut self.frame.bytes, process, position, chunk * SLOTS as u64, rows);
            self.added(Some(process), time);
        }
    }

    /// Adds names of a process, by number.
    pub fn names(&mut self, process: u32, names: Vec<(u16, Vec<u8>)>) {
        let (mut part, mut len) = (Vec::new(), 0);
        for name in names {
            len += 4 + name.1.len();
            part.push(name);
            if len > MAX_ENTRY / 2 {
                self.entry(&Entry::Names { process, names: std::mem::take(&mut part) }, FrameTime::NONE);
                len = 0;
            }
        }
        if !part.is_empty() {
            self.entry(&Entry::Names { process, names: part }, FrameTime::NONE);
        }
    }

    fn added(&mut self, process: Option<u32>, time: FrameTime) {
        let frame = &mut self.frame;
        frame.time = frame.time.join(time);
        if let Some(process) = process
            && !frame.processes.contains(&process)
        {
            frame.processes.push(process);
        }
        if frame.bytes.len() >= FRAME_LEN {
            self.close();
        }
    }

    /// Closes the frame that is being gathered, if there is anything in it.
    pub fn close(&mut self) {
        if !self.frame.is_empty() {
            self.ready.push(std::mem::take(&mut self.frame));
        }
    }

    /// The number of bytes that are gathered and not in a closed frame.
    pub fn pending(&self) -> usize {
        self.frame.len()
    }

    /// Takes the frames that are closed.
    pub fn take(&mut self) -> Vec<RawFrame> {
        std::mem::take(&mut self.ready)
    }
}

/// How a record is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterOptions {
    /// The level of compression, 1 to 19.
    pub level: i32,
    /// The number of frames after which an index is written.
    pub index_every: usize,
}

impl Default for WriterOptions {
    fn default() -> WriterOptions {
        WriterOptions { level: 1, index_every: 64 }
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes in the file.
    pub bytes: u64,
    /// Bytes before compression.
    pub raw_bytes: u64,
    /// Frames, with those of the index.
    pub frames: u64,
    /// Events.
    pub events: u64,
    /// Events that were lost, as gaps say.
    pub lost: u64,
}

/// Compresses frames and appends them. Each is given to the output in one piece.
pub struct FrameSink<W> {
    out: W,
    compressor: zstd::bulk::Compressor<'static>,
    options: WriterOptions,
    record: u32,
    written: Written,
    index: Vec<IndexEntry>,
    buffer: Vec<u8>,
}

impl<W: Write> FrameSink<W> {
    /// A sink for the frames of a new file.
    pub fn new(out: W, options: WriterOptions) -> io::Result<FrameSink<W>> {
        let compressor = zstd::bulk::Compressor::new(options.level)?;
        let record = tt_shm_os::random_u64()? as u32;
        let (written, index, buffer) = (Written::default(), Vec::new(), Vec::new());
        Ok(FrameSink { out, compressor, options, record, written, index, buffer })
    }

    /// What was written so far: whole frames only.
    pub fn written(&self) -> Written {
        self.written
    }

    /// The output.
    pub fn output(&mut self) -> &mut W {
        &mut self.out
    }

    /// Appends a frame, and an index if it is time for one.
    pub fn write(&mut self, frame: &RawFrame) -> io::Result<()> {
        let (offset, sequence) = (self.written.bytes, self.written.frames);
        let RawFrame { time: FrameTime { first_ns, last_ns }, flags, ref processes, .. } = *frame;
        self.append(FrameKind::Entries, &frame.bytes, frame.time, flags)?;
        self.written.events += frame.events;
        self.written.lost += frame.lost;
        let processes = processes.clone();
        self.index.push(IndexEntry { offset, sequence, first_ns, last_ns, flags, processes });
        if self.index.len() >= self.options.index_every {
            self.write_index(0)?;
        }
        Ok(())
    }

    /// Appends the index of the frames since the last one, and flushes the output.
    pub fn finish(&mut self) -> io::Result<()> {
        self.write_index(frame_flags::LAST)?;
        self.out.flush()
    }

    /// The output, after everything was written.
    pub fn into_output(self) -> W {
        self.out
    }

    fn write_index(&mut self, flags: u32) -> io::Result<()> {
        let mut bytes = Vec::new();
        let index = std::mem::take(&mut self.index);
        for (number, entry) in index.iter().enumerate() {
            entry.encode(&mut bytes);
            let is_last = number + 1 == index.len();
            if is_last || bytes.len() >= FRAME_LEN {
                let flags = if is_last { flags } else { 0 };
                self.append(FrameKind::Index, &bytes, FrameTime::NONE, flags)?;
                bytes.clear();
            }
        }
        Ok(())
    }

    fn append(&mut self, kind: FrameKind, raw: &[u8], time: FrameTime, flags: u32) -> io::Result<()> {
        let stored = self.compressor.compress(raw)?;
        let header = FrameHeader {
            kind: kind as u32,
            sequence: self.written.frames,
            first_ns: time.first_ns,
            last_ns: time.last_ns,
            raw_len: raw.len() as u32,
            stored_len: stored.len() as u32,
            flags,
            payload_crc: crc32fast::hash(&stored),
            record: self.record,
            ..FrameHeader::zeroed()
        };
        self.buffer.clear();
        self.buffer.extend_from_slice(bytemuck::bytes_of(&header.sealed()));
        self.buffer.extend_from_slice(&stored);
        self.out.write_all(&self.buffer)?;
        self.written.bytes += self.buffer.len() as u64;
        self.written.raw_bytes += raw.len() as u64;
        self.written.frames += 1;
        Ok(())
    }
}

impl<W> std::fmt::Debug for FrameSink<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameSink").field("written", &self.written).finish_non_exhaustive()
    }
}

/// Writes a record on the caller's thread. Append-only; a frame is written when it is full or on
/// [`RecordWriter::flush`].
#[derive(Debug)]
pub struct RecordWriter<W> {
    builder: FrameBuilder,
    sink: FrameSink<W>,
}

impl<W: Write> RecordWriter<W> {
    /// Begins a record. Its first frame is written at once.
    pub fn new(out: W, begin: &Begin, options: WriterOptions) -> io::Result<RecordWriter<W>> {
        let mut writer =
            RecordWriter { builder: FrameBuilder::default(), sink: FrameSink::new(out, options)? };
        writer.entry(&Entry::Begin(begin.clone()), FrameTime::at(begin.monotonic_ns))?;
        writer.flush()?;
        Ok(writer)
    }

    /// Adds an entry: see [`FrameBuilder::entry`].
    pub fn entry(&mut self, entry: &Entry, time: FrameTime) -> io::Result<()> {
        self.builder.entry(entry, time);
        self.drain()
    }

    /// Adds what is known of a process.
    pub fn process(&mut self, process: &ProcessEntry) -> io::Result<()> {
        self.entry(&Entry::Process(Box::new(process.clone())), FrameTime::NONE)
    }

    /// Adds devices of a process, with their indices.
    pub fn devices(&mut self, process: u32, devices: Vec<(u64, DeviceEntry)>) -> io::Result<()> {
        self.entry(&Entry::Devices { process, devices }, FrameTime::NONE)
    }

    /// Adds names of a process.
    pub fn names(&mut self, process: u32, names: Vec<(u16, Vec<u8>)>) -> io::Result<()> {
        self.builder.names(process, names);
        self.drain()
    }

    /// Adds a checkpoint of a process.
    pub fn state(&mut self, process: u32, state: &StateEntry, rows: &[Row]) -> io::Result<()> {
        self.builder.state(process, state, rows);
        self.drain()
    }

    /// Adds events of a process, which must have consecutive positions.
    pub fn events(&mut self, process: u32, events: &[Event], time: FrameTime) -> io::Result<()> {
        self.builder.events(process, events, time);
        self.drain()
    }

    /// Writes what was gathered, as a frame of its own.
    pub fn flush(&mut self) -> io::Result<()> {
        self.builder.close();
        self.drain()?;
        self.sink.output().flush()
    }

    /// Ends the record in order, with an index: everything from before this time is in it.
    pub fn finish(mut self, time_ns: u64) -> io::Result<W> {
        self.entry(&Entry::AsOf { time_ns }, FrameTime::at(time_ns))?;
        self.entry(&Entry::Finish { time_ns }, FrameTime::at(time_ns))?;
        self.flush()?;
        self.sink.finish()?;
        Ok(self.sink.into_output())
    }

    /// What was written so far.
    pub fn written(&self) -> Written {
        self.sink.written()
    }

    fn drain(&mut self) -> io::Result<()> {
        self.builder.take().iter().try_for_each(|frame| self.sink.write(frame))
    }
}

/// A file with one frame of these bytes, whatever they are: for tests and the fuzzer.
#[doc(hidden)]
pub fn file_of(raw: Vec<u8>) -> Vec<u8> {
    let frame = RawFrame { bytes: raw, ..RawFrame::default() };
    let mut file = Vec::new();
    // Writing into memory fails only if there is none.
    if let Ok(mut sink) = FrameSink::new(&mut file, WriterOptions::default()) {
        let _ = sink.write(&frame);
    }
    file
}
