//! Reading a whole record once: every frame is checked, and what it says of processes is gathered.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::sync::Arc;

use shm_layout::{DeviceEntry, Event, EventKind};

use crate::clock::Clocks;
use crate::entry::{Decoder, EndEntry, Entry, ProcessEntry};
use crate::error::{Damage, DecodeError, OpenError};
use crate::facts::Begin;
use crate::frame::{FRAME_HEADER_LEN, FRAME_MAGIC, FrameHeader, FrameKind, frame_flags};
use crate::index::IndexEntry;
use crate::merge::MergedEvent;
use crate::record::{Checkpoint, Frame, Gap, Process, Record, Source, Totals};

/// The most bytes that are kept of what a record says of its processes: no file may fill the memory.
const MAX_CATALOG: usize = 512 << 20;
/// The most processes of a record.
const MAX_PROCESSES: usize = 1 << 16;
/// The most markers, and the most failed allocations, that are kept.
const MAX_MOMENTS: usize = 1 << 20;
/// How far from the beginning of a file its first frame may be: what is damaged is more likely not a record.
const MAX_LEAD: u64 = 4 << 20;

/// What is gathered of a process.
#[derive(Default)]
struct Gathered {
    entry: Option<ProcessEntry>,
    devices: Vec<Option<DeviceEntry>>,
    names: BTreeMap<u16, Arc<str>>,
    events: u64,
    first: Option<(u64, u64)>,
    /// Position and ticks of the last event.
    last: (u64, u64),
    /// The position up to which everything is there, or in a gap.
    seen: u64,
    /// Gaps with ticks instead of times: before, after (0 if not known yet), when noticed.
    gaps: Vec<(Gap, u64, u64)>,
    end: Option<EndEntry>,
    checkpoints: Vec<Checkpoint>,
    /// A checkpoint whose rows are not all there yet, how many are, and how many there should be.
    pending: Option<(Checkpoint, u64, u64)>,
}

/// The ticks of the events of a process in a frame.
struct FrameTicks {
    process: u32,
    first: u64,
    last: u64,
}

pub(crate) struct Scan<'a> {
    source: &'a Source,
    path: &'a Path,
    len: u64,
    offset: u64,
    record_id: Option<u32>,
    next_sequence: u64,
    /// Whether a frame before the next one is lost.
    after_loss: bool,
    damage: Damage,
    kept: usize,
    begin: Option<Begin>,
    frames: Vec<Frame>,
    ticks: Vec<Vec<FrameTicks>>,
    gathered: BTreeMap<u32, Gathered>,
    texts: HashMap<Arc<str>, ()>,
    clocks: Clocks,
    finished_ns: Option<u64>,
    as_of_ns: u64,
    indexed: u64,
    moments: [Vec<(u32, Event)>; 2],
    unlisted_moments: u64,
}

impl<'a> Scan<'a> {
    pub(crate) fn run(source: Source, path: &Path) -> Result<Record, OpenError> {
        let failed = |cause| OpenError::Io { path: path.to_owned(), cause };
        let len = source.len().map_err(failed)?;
        let mut scan = Scan {
            source: &source,
            path,
            len,
            offset: 0,
            record_id: None,
            next_sequence: 0,
            after_loss: false,
            damage: Damage { file_len: len, ..Damage::default() },
            kept: 0,
            begin: None,
            frames: Vec::new(),
            ticks: Vec::new(),
            gathered: BTreeMap::new(),
            texts: HashMap::new(),
            clocks: Clocks::default(),
            finished_ns: None,
            as_of_ns: 0,
            indexed: 0,
            moments: [Vec::new(), Vec::new()],
            unlisted_moments: 0,
        };
        while scan.step()? {}
        if scan.frames.is_empty() {
            return Err(OpenError::Empty { path: path.to_owned() });
        }
        let parts = scan.finish();
        Ok(parts.into_record(source, path))
    }

    /// Reads the next frame, and returns whether there was one.
    fn step(&mut self) -> Result<bool, OpenError> {
        let left = self.len - self.offset;
        if left < FRAME_HEADER_LEN as u64 {
            self.damage.cut_bytes = left;
            return Ok(false);
        }
        match self.header_at(self.offset)? {
            Ok(header) => self.frame(header),
            Err(cause) => self.resume(cause),
        }
    }

    fn header_at(&self, offset: u64) -> Result<Result<FrameHeader, DecodeError>, OpenError> {
        let mut bytes = [0; FRAME_HEADER_LEN];
        self.source.read_at(offset, &mut bytes).map_err(|cause| self.io(cause))?;
        Ok(FrameHeader::read(&bytes))
    }

    fn io(&self, cause: io::Error) -> OpenError {
        OpenError::Io { path: self.path.to_owned(), cause }
    }

    /// Looks for the next frame after bytes that are none.
    fn resume(&mut self, cause: DecodeError) -> Result<bool, OpenError> {
        let is_first = self.record_id.is_none();
        if is_first && matches!(cause, DecodeError::Version { .. }) {
            return Err(OpenError::NotARecord { path: self.path.to_owned(), cause });
        }
        let end = if is_first { self.len.min(MAX_LEAD) } else { self.len };
        match self.next_header(self.offset + 1, end)? {
            Some(offset) => {
                self.damage.skipped_bytes += offset - self.offset;
                self.note(self.offset, cause);
                self.offset = offset;
                Ok(true)
            }
            None if is_first => Err(OpenError::NotARecord { path: self.path.to_owned(), cause }),
            None => {
                self.damage.cut_bytes = self.len - self.offset;
                Ok(false)
            }
        }
    }

    /// The next place between two offsets at which a header is intact.
    fn next_header(&self, from: u64, end: u64) -> Result<Option<u64>, OpenError> {
        let mut buffer = vec![0; 1 << 16];
        let mut offset = from;
        while offset + FRAME_HEADER_LEN as u64 <= end {
            let len = (buffer.len() as u64).min(self.len - offset) as usize;
            self.source.read_at(offset, &mut buffer[..len]).map_err(|cause| self.io(cause))?;
            let places = buffer[..len].windows(FRAME_MAGIC.len()).enumerate();
            for (place, _) in places.filter(|(_, window)| *window == FRAME_MAGIC) {
                let found = offset + place as u64;
                if self.len - found >= FRAME_HEADER_LEN as u64 && self.header_at(found)?.is_ok() {
                    return Ok(Some(found));
                }
            }
            // Windows overlap: a magic may begin in one and end in the next.
            offset += (len - FRAME_MAGIC.len() + 1) as u64;
        }
        Ok(None)
    }

    fn note(&mut self, at: u64, cause: DecodeError) {
        if self.damage.first.is_none() {
            (self.damage.first, self.damage.first_at) = (Some(cause), at);
        }
    }

    fn frame(&mut self, header: FrameHeader) -> Result<bool, OpenError> {
        let total = FRAME_HEADER_LEN as u64 + u64::from(header.stored_len);
        if total > self.len - self.offset {
            self.damage.cut_bytes = self.len - self.offset;
            return Ok(false);
        }
        let offset = self.offset;
        self.offset += total;
        let id = *self.record_id.get_or_insert(header.record);
        if id != header.record || header.sequence < self.next_sequence {
            // A frame of another record, or one that was there before.
            self.damage.skipped_bytes += total;
            self.note(offset, DecodeError::Magic);
            return Ok(true);
        }
        self.damage.lost_frames += header.sequence - self.next_sequence;
        self.after_loss |= header.sequence != self.next_sequence;
        self.next_sequence = header.sequence.saturating_add(1);
        let raw = self.source.unpack(offset, &header).map_err(|cause| self.io(cause))?;
        match raw.and_then(|raw| self.content(&header, &raw)) {
            Ok(Some(entries)) => {
                let follows_loss = std::mem::take(&mut self.after_loss);
                self.take(offset, header, follows_loss, entries)?;
            }
            Ok(None) => {}
            Err(cause) => {
                self.damage.lost_frames += 1;
                self.note(offset, cause);
                self.after_loss = true;
            }
        }
        Ok(true)
    }

    /// The entries of a frame; `None` if it has none.
    fn content(&mut self, header: &FrameHeader, raw: &[u8]) -> Result<Option<Vec<Entry>>, DecodeError> {
        match header.kind() {
            Some(FrameKind::Entries) => Decoder::new(raw).collect::<Result<_, _>>().map(Some),
            Some(FrameKind::Index) => {
                self.indexed += IndexEntry::decode_all(raw)?.len() as u64;
                Ok(None)
            }
            None => Ok(None),
        }
    }

    fn keep(&mut self, bytes: usize) -> Result<(), OpenError> {
        self.kept = self.kept.saturating_add(bytes);
        if self.kept > MAX_CATALOG {
            return Err(self.too_much("bytes of names, devices, gaps and frames", MAX_CATALOG as u64));
        }
        Ok(())
    }

    fn too_much(&self, what: &'static str, limit: u64) -> OpenError {
        OpenError::TooMuch { path: self.path.to_owned(), what, limit }
    }

    fn take(
        &mut self,
        offset: u64,
        header: FrameHeader,
        follows_loss: bool,
        entries: Vec<Entry>,
    ) -> Result<(), OpenError> {
        let place = self.frames.len();
        let has_checkpoint = header.flags & frame_flags::CHECKPOINT != 0;
        let mut frame = Frame {
            offset,
            header,
            first_ns: u64::MAX,
            last_ns: header.last_ns,
            processes: Vec::new(),
            has_checkpoint,
            follows_loss,
        };
        self.ticks.push(Vec::new());
        for (number, entry) in entries.into_iter().enumerate() {
            frame.processes.extend(entry.process());
            self.entry(place, number, entry)?;
        }
        frame.processes.sort_unstable();
        frame.processes.dedup();
        self.keep(size_of::<Frame>() + 4 * frame.processes.len())?;
        self.frames.push(frame);
        Ok(())
    }

    fn entry(&mut self, frame: usize, place: usize, entry: Entry) -> Result<(), OpenError> {
        match entry {
            Entry::Begin(begin) => {
                self.clocks.add_offset(begin.monotonic_ns, begin.realtime_ns);
                self.begin.get_or_insert(begin);
            }
            Entry::Process(entry) => {
                self.keep(size_of::<ProcessEntry>())?;
                let number = entry.number;
                self.process(number)?.entry = Some(*entry);
            }
            Entry::Devices { process, devices } => self.devices(process, devices)?,
            Entry::Names { process, names } => self.names(process, names)?,
            Entry::State { process, state } => {
                self.keep(size_of::<Checkpoint>())?;
                let ticks = state.counters.iter().map(|counters| counters.time).max().unwrap_or(0);
                let checkpoint = Checkpoint { frame, place, position: state.position, ticks };
                let gathered = self.process(process)?;
                gathered.pending = Some((checkpoint, 0, state.row_count));
                gathered.settle();
            }
            Entry::Rows { process, position, first, rows } => {
                self.process(process)?.rows(position, first, rows.len() as u64);
            }
            Entry::Events { process, events } => self.events(frame, process, &events)?,
            Entry::Gap(gap) => {
                self.keep(size_of::<(Gap, u64, u64)>())?;
                self.process(gap.process)?.gap(gap.first, gap.last, gap.time_ns, true);
            }
            Entry::End(end) => self.process(end.process)?.end(end),
            Entry::Clock(clock) => self.clocks.add(&clock),
            Entry::Finish { time_ns } => self.finished_ns = Some(time_ns),
            Entry::AsOf { time_ns } => self.as_of_ns = self.as_of_ns.max(time_ns),
            Entry::Driver { .. } | Entry::Telemetry { .. } | Entry::Regions { .. } | Entry::Table(_) => {}
        }
        Ok(())
    }

    fn process(&mut self, number: u32) -> Result<&mut Gathered, OpenError> {
        if !self.gathered.contains_key(&number) {
            self.keep(size_of::<Gathered>())?;
            if self.gathered.len() >= MAX_PROCESSES {
                return Err(self.too_much("processes", MAX_PROCESSES as u64));
            }
        }
        Ok(self.gathered.entry(number).or_default())
    }

    fn devices(&mut self, process: u32, devices: Vec<(u64, DeviceEntry)>) -> Result<(), OpenError> {
        for (index, entry) in devices {
            // Below MAX_DEVICES: checked when the entry was decoded.
            let index = index as usize;
            let missing = (index + 1).saturating_sub(self.process(process)?.devices.len());
            self.keep(missing * size_of::<DeviceEntry>())?;
            let known = &mut self.process(process)?.devices;
            known.resize((index + 1).max(known.len()), None);
            known[index] = Some(entry);
        }
        Ok(())
    }

    fn names(&mut self, process: u32, names: Vec<(u16, Vec<u8>)>) -> Result<(), OpenError> {
        for (id, bytes) in names {
            let text = String::from_utf8_lossy(&bytes);
            let shared = match self.texts.get_key_value(text.as_ref()) {
                Some((shared, ())) => Arc::clone(shared),
                None => {
                    self.keep(text.len() + 64)?;
                    let shared: Arc<str> = Arc::from(text.as_ref());
                    self.texts.insert(Arc::clone(&shared), ());
                    shared
                }
            };
            if self.process(process)?.names.insert(id, shared).is_none() {
                self.keep(40)?;
            }
        }
        Ok(())
    }

    fn events(&mut self, frame: usize, process: u32, events: &[Event]) -> Result<(), OpenError> {
        let gathered = self.process(process)?;
        if gathered.take(events) {
            self.keep(size_of::<(Gap, u64, u64)>())?;
        }
        let ticks = events.iter().map(|event| event.time);
        let (first, last) = (ticks.clone().min().unwrap_or(0), ticks.max().unwrap_or(0));
        let frame_ticks = &mut self.ticks[frame];
        match frame_ticks.iter_mut().find(|ticks| ticks.process == process) {
            Some(known) => (known.first, known.last) = (known.first.min(first), known.last.max(last)),
            None => {
                frame_ticks.push(FrameTicks { process, first, last });
                self.keep(size_of::<FrameTicks>())?;
            }
        }
        for event in events {
            let list = match event.kind() {
                Some(EventKind::Marker) => 0,
                Some(EventKind::AllocFailed) => 1,
                _ => continue,
            };
            if self.moments[list].len() < MAX_MOMENTS {
                self.moments[list].push((process, *event));
            } else {
                self.unlisted_moments += 1;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Parts {
        let clocks = std::mem::take(&mut self.clocks);
        let gathered = std::mem::take(&mut self.gathered);
        let described = gathered.into_iter().filter_map(|(number, one)| Some((number, one.finish(&clocks)?)));
        let processes: BTreeMap<u32, Process> = described.collect();
        for (frame, ticks) in self.frames.iter_mut().zip(&self.ticks) {
            for FrameTicks { process, first, last } in ticks {
                let Some(process) = processes.get(process) else { continue };
                frame.first_ns = frame.first_ns.min(clocks.to_monotonic_ns(&process.entry, *first));
                frame.last_ns = frame.last_ns.max(clocks.to_monotonic_ns(&process.entry, *last));
            }
        }
        let moments = std::mem::take(&mut self.moments).map(|list| merged(list, &processes, &clocks));
        let [markers, failures] = moments;
        Parts {
            begin: self.begin.take().unwrap_or_default(),
            has_index: self.indexed >= self.frames.len() as u64 && self.finished_ns.is_some(),
            totals: Totals {
                bytes: self.len,
                frames: self.frames.len() as u64,
                events: processes.values().map(|process| process.events).sum(),
                lost: processes.values().map(Process::lost).fold(0, u64::saturating_add),
                gaps: processes.values().map(|process| process.gaps.len() as u64).sum(),
                checkpoints: processes.values().map(|process| process.checkpoints.len() as u64).sum(),
                unlisted_moments: self.unlisted_moments,
            },
            as_of_ns: self.as_of_ns,
            finished_ns: self.finished_ns,
            damage: Some(self.damage).filter(|damage| !damage.is_none()),
            frames: self.frames,
            processes,
            clocks,
            markers,
            failures,
        }
    }
}

impl Damage {
    fn is_none(&self) -> bool {
        self.cut_bytes == 0 && self.skipped_bytes == 0 && self.lost_frames == 0 && self.first.is_none()
    }
}

/// What a scan found.
struct Parts {
    begin: Begin,
    frames: Vec<Frame>,
    processes: BTreeMap<u32, Process>,
    clocks: Clocks,
    totals: Totals,
    damage: Option<Damage>,
    finished_ns: Option<u64>,
    as_of_ns: u64,
    has_index: bool,
    markers: Vec<MergedEvent>,
    failures: Vec<MergedEvent>,
}

impl Parts {
    fn into_record(self, source: Source, path: &Path) -> Record {
        let mut earliest: Vec<u64> = self.frames.iter().map(|frame| frame.first_ns).collect();
        for place in (1..earliest.len()).rev() {
            earliest[place - 1] = earliest[place - 1].min(earliest[place]);
        }
        let Parts { begin, frames, processes, clocks, totals, damage, .. } = self;
        let Parts { finished_ns, as_of_ns, has_index, markers, failures, .. } = self;
        Record {
            source,
            path: path.to_owned(),
            begin,
            frames,
            earliest,
            processes,
            clocks,
            totals,
            damage,
            finished_ns,
            as_of_ns,
            has_index,
            markers,
            failures,
        }
    }
}

fn merged(list: Vec<(u32, Event)>, processes: &BTreeMap<u32, Process>, clocks: &Clocks) -> Vec<MergedEvent> {
    let with_time = |(process, event): (u32, Event)| {
        let ns = clocks.to_monotonic_ns(&processes.get(&process)?.entry, event.time);
        Some(MergedEvent { process, ns, event })
    };
    let mut merged: Vec<MergedEvent> = list.into_iter().filter_map(with_time).collect();
    merged.sort_by_key(|moment| (moment.ns, moment.process, moment.event.stamp));
    merged
}

impl Gathered {
    /// Takes in events, and returns whether there is a gap before them that nobody noted.
    fn take(&mut self, events: &[Event]) -> bool {
        let Some(first) = events.iter().find(|event| event.stamp > self.seen) else { return false };
        let is_gap = self.first.is_some() && first.stamp > self.seen + 1;
        if is_gap {
            self.gap(self.seen + 1, first.stamp - 1, 0, false);
        }
        self.first.get_or_insert((first.stamp, first.time));
        if let Some((gap, _, after)) = self.gaps.last_mut()
            && *after == 0
            && gap.last < first.stamp
        {
            *after = first.time;
        }
        if let Some(last) = events.last() {
            self.events += last.stamp - first.stamp + 1;
            self.last = (last.stamp, last.time);
            self.seen = last.stamp;
        }
        is_gap
    }

    fn gap(&mut self, first: u64, last: u64, noticed_ns: u64, noticed: bool) {
        let first = first.max(self.seen + 1);
        if first <= last && last < u64::MAX {
            let gap = Gap { first, last, after_ns: 0, before_ns: noticed_ns, noticed };
            self.gaps.push((gap, self.last.1, 0));
            self.seen = last;
        }
    }

    fn end(&mut self, end: EndEntry) {
        if self.seen > 0 && end.position > self.seen {
            self.gap(self.seen + 1, end.position, end.noticed_ns, false);
        }
        self.end = Some(end);
    }

    fn rows(&mut self, position: u64, first: u64, count: u64) {
        if let Some((checkpoint, seen, _)) = &mut self.pending
            && checkpoint.position == position
            && *seen == first
        {
            *seen += count;
            self.settle();
        } else {
            self.pending = None;
        }
    }

    /// Keeps a checkpoint whose rows are all there.
    fn settle(&mut self) {
        if let Some((checkpoint, seen, expected)) = self.pending
            && seen >= expected
        {
            self.checkpoints.push(checkpoint);
            // Nothing before it has to be there.
            self.seen = self.seen.max(if self.first.is_none() { checkpoint.position } else { 0 });
            self.pending = None;
        }
    }

    fn finish(self, clocks: &Clocks) -> Option<Process> {
        let entry = self.entry?;
        let ns = |ticks: u64| if ticks == 0 { 0 } else { clocks.to_monotonic_ns(&entry, ticks) };
        let gaps = self.gaps.into_iter().map(|(gap, before, after)| Gap {
            after_ns: ns(before),
            before_ns: if after == 0 { gap.before_ns } else { ns(after) },
            ..gap
        });
        let gaps = gaps.collect();
        let first = self.first.unwrap_or_default();
        Some(Process {
            devices: self.devices,
            names: self.names,
            events: self.events,
            positions: (first.0, self.last.0),
            span_ns: (ns(first.1), ns(self.last.1)),
            gaps,
            end: self.end,
            checkpoints: self.checkpoints,
            entry,
        })
    }
}
