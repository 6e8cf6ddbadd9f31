//! A recorded process as a segment: what its observers saw of it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use shm_layout::control::{self, state};
use shm_layout::protocol::latch::LatchWriter;
use shm_layout::protocol::stamped;
use shm_layout::{
    Counters, DEVICE_COUNTER_WORDS, DeviceEntry, Event, MAX_DEVICES, MAX_NAME_BYTES, MAX_NAME_LEN, MAX_NAMES,
    MAX_ROWS, NO_DEVICE, RING_SLOTS, Row, RowEffect, RowKind, SLOT_WORDS, SegmentHeader, SegmentWords, Word,
    store_pod,
};
use tt_shm_os::{ClockKind, Namespace, SHM_DIR, WriteMap, path_of, segment_file_name};
use tt_shm_record::{EndEntry, Ended, Process, ProcessEntry, Record, StateEntry};

use crate::error::ReplayError;

/// The rows that are published at a time when more are needed.
const ROW_STEP: usize = 4096;
const ROW_BYTES: usize = 8 * SLOT_WORDS;

/// A segment that is written from a record. Its lock says that the process lives, until it is [ended](Replica::end).
#[derive(Debug)]
pub(crate) struct Replica {
    number: u32,
    header: SegmentHeader,
    path: PathBuf,
    /// Holds the lock, together with the map.
    file: Option<File>,
    map: WriteMap,
    is_linked: bool,
    position: u64,
    /// Whether events are missing since the last checkpoint.
    pub(crate) is_torn: bool,
    /// A checkpoint of a position that the events have not reached.
    ahead: Option<(StateEntry, Vec<Row>)>,
    /// The state bits that the process itself set.
    flags: u64,
    devices: usize,
    counters: Vec<(Counters, LatchWriter, bool)>,
    names: u64,
    name_bytes: usize,
    rows: usize,
}

impl Replica {
    pub(crate) fn create(
        namespace: &Namespace,
        record: &Record,
        found: &ProcessEntry,
    ) -> Result<Replica, ReplayError> {
        let header = header(record, found)?;
        let path = path_of(&segment_file_name(namespace, header.pid as u32, header.identity));
        let failed = |action| {
            let path = path.clone();
            move |cause: io::Error| ReplayError::Replica { action, path, cause }
        };
        let private = Mode::RUSR | Mode::WUSR;
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file =
            rustix::fs::open(SHM_DIR, flags, private).map_err(|e| failed("create a file")(e.into()))?;
        let file = File::from(file);
        file.set_len(header.total_len).map_err(failed("set the size of"))?;
        tt_shm_os::lock_exclusive(file.as_fd()).map_err(failed("lock"))?;
        let map = WriteMap::new(&file, header.total_len as usize)?;
        let replica = Replica {
            number: found.number,
            header,
            path,
            file: Some(file),
            map,
            is_linked: false,
            position: 0,
            is_torn: false,
            ahead: None,
            flags: 0,
            devices: 0,
            counters: Vec::new(),
            names: 1,
            name_bytes: 0,
            rows: 0,
        };
        let (ring, devices) = (header.ring, header.devices);
        replica.populate(0, devices.offset as usize)?;
        replica.populate(devices.offset as usize, (header.counters.offset - devices.offset) as usize)?;
        replica.populate(ring.offset as usize, ring.capacity as usize * ROW_BYTES)?;
        replica.populate(header.name_index.offset as usize, 8)?;
        store_pod(replica.map.words(), &header);
        Word::store(&replica.words().control[control::NAME_COUNT], 1);
        Ok(replica)
    }

    fn words(&self) -> SegmentWords<'_, AtomicU64> {
        SegmentWords::carve(self.map.words(), &self.header)
    }

    fn populate(&self, offset: usize, len: usize) -> Result<(), ReplayError> {
        let failed = |cause| ReplayError::Replica { action: "get memory of", path: self.path.clone(), cause };
        self.map.populate(offset, len).map_err(failed)
    }

    fn set(&self, word: usize, value: u64) {
        Word::store(&self.words().control[word], value);
    }

    /// The number of events that its ring holds.
    pub(crate) fn ring_slots(&self) -> usize {
        self.header.ring.capacity as usize
    }

    /// Gives the file its name, so that observers find it.
    pub(crate) fn link(&mut self) -> Result<(), ReplayError> {
        let Some(file) = self.file.as_ref().filter(|_| !self.is_linked) else { return Ok(()) };
        let own = format!("/proc/self/fd/{}", file.as_raw_fd());
        let failed = |cause: rustix::io::Errno| ReplayError::Replica {
            action: "name",
            path: self.path.clone(),
            cause: cause.into(),
        };
        rustix::fs::linkat(CWD, own, CWD, &self.path, AtFlags::SYMLINK_FOLLOW).map_err(failed)?;
        self.is_linked = true;
        Ok(())
    }

    /// Whether observers can see it.
    pub(crate) fn is_linked(&self) -> bool {
        self.is_linked
    }

    pub(crate) fn devices(&mut self, devices: &[(u64, DeviceEntry)]) -> Result<(), ReplayError> {
        for (index, entry) in devices {
            let Ok(index) = usize::try_from(*index) else { continue };
            // A device after one that is not known cannot be shown: its number would be that of the other.
            if index > self.devices || index >= MAX_DEVICES {
                continue;
            }
            let bytes = 8 * DEVICE_COUNTER_WORDS;
            self.populate(self.header.counters.offset as usize + index * bytes, bytes)?;
            self.words().write_device(index, entry);
            if index == self.devices {
                self.devices += 1;
                self.set(control::DEVICE_COUNT, self.devices as u64);
            }
        }
        Ok(())
    }

    pub(crate) fn names(&mut self, names: &[(u16, Vec<u8>)]) -> Result<(), ReplayError> {
        for (number, name) in names {
            let (number, name) = (u64::from(*number), &name[..name.len().min(MAX_NAME_LEN)]);
            let end = self.name_bytes + name.len().next_multiple_of(8);
            if number == 0 || number >= MAX_NAMES || end > self.header.name_bytes.capacity as usize * 8 {
                continue;
            }
            let count = self.names.max(number + 1);
            let index = self.header.name_index.offset as usize;
            self.populate(index + 8 * self.names as usize, 8 * (count - self.names) as usize)?;
            self.populate(self.header.name_bytes.offset as usize + self.name_bytes, end - self.name_bytes)?;
            let words = self.words();
            for (word, bytes) in words.name_bytes[self.name_bytes / 8..].iter().zip(name.chunks(8)) {
                let mut padded = [0; 8];
                padded[..bytes.len()].copy_from_slice(bytes);
                Word::store(word, u64::from_le_bytes(padded));
            }
            Word::store(
                &words.name_index[number as usize],
                (self.name_bytes as u64) << 32 | name.len() as u64,
            );
            Word::store(&words.control[control::NAME_COUNT], count);
            (self.names, self.name_bytes) = (count, end);
        }
        Ok(())
    }

    /// Takes in a checkpoint: all of it if events before it are missing, else only what no event tells.
    pub(crate) fn state(
        &mut self,
        record: &Record,
        entry: &StateEntry,
        rows: &[Row],
    ) -> Result<(), ReplayError> {
        let Some(process) = record.process(self.number) else { return Ok(()) };
        let to_ns = |ticks: u64| record.to_monotonic_ns(process, ticks);
        if !self.is_linked || self.is_torn {
            self.replace(entry, rows, to_ns)?;
        } else if entry.position > self.position {
            // The events up to it follow, if they are there.
            self.ahead = Some((entry.clone(), rows.to_vec()));
        }
        self.flags = entry.flags;
        self.set(control::UNLISTED, entry.unlisted);
        self.set(control::CLOSED_AT, if entry.closed_at == 0 { 0 } else { to_ns(entry.closed_at) });
        self.set(control::SELF_CHECKS, entry.self_checks[0]);
        self.set(control::SELF_CHECKS_DIFFERENT, entry.self_checks[1]);
        for (place, count) in entry.anomalies.iter().enumerate() {
            self.set(control::ANOMALIES + place, *count);
        }
        self.publish_flags();
        Ok(())
    }

    fn replace(
        &mut self,
        entry: &StateEntry,
        rows: &[Row],
        to_ns: impl Fn(u64) -> u64,
    ) -> Result<(), ReplayError> {
        self.lap(entry.position);
        let words = SegmentWords::carve(self.map.words(), &self.header);
        let list = entry.counters.iter().zip(words.counters).take(self.devices);
        let list = list.map(|(counters, latch)| {
            let mut counters = *counters;
            counters.map_times(&to_ns);
            (counters, LatchWriter::resume(latch), true)
        });
        self.counters = list.collect();
        self.words().rows[..self.rows].iter().for_each(|cell| stamped::clear(cell));
        for row in rows {
            if self.make_room(row.row)? {
                let row = Row { time: to_ns(row.time), ..*row };
                stamped::write_words(&self.words().rows[row.row as usize], row.to_words());
            }
        }
        self.position = entry.position;
        // A device whose description is not in the record has figures that nobody sees.
        self.is_torn = !entry.exact || entry.counters.len() > self.devices;
        self.flush();
        Ok(())
    }

    /// Makes the ring look as if everything up to a position had been overwritten by what followed.
    fn lap(&self, position: u64) {
        let words = self.words();
        let first = self.position.max(position.saturating_sub(words.ring.len() as u64)) + 1;
        for missing in first..=position {
            if let Some(slot) = words.slot(missing) {
                // Not a stamp that this slot ever has: later than what is missing, and earlier than what comes next.
                Word::store(&slot[0], missing + 1);
            }
        }
    }

    fn make_room(&mut self, row: u32) -> Result<bool, ReplayError> {
        let (row, capacity) = (row as usize, self.header.rows.capacity as usize);
        if row >= capacity {
            return Ok(false);
        }
        if row >= self.rows {
            let end = (row + 1).next_multiple_of(ROW_STEP).min(capacity);
            let offset = self.header.rows.offset as usize;
            self.populate(offset + self.rows * ROW_BYTES, (end - self.rows) * ROW_BYTES)?;
            self.rows = end;
            self.set(control::ROWS_PUBLISHED, end as u64);
        }
        Ok(true)
    }

    /// Continues at the checkpoint that was read ahead, if that covers all up to a position.
    fn catch_up(&mut self, record: &Record, position: u64) -> Result<(), ReplayError> {
        let Some(process) = record.process(self.number) else { return Ok(()) };
        let covers = |ahead: &mut (StateEntry, Vec<Row>)| ahead.0.position >= position;
        if let Some((entry, rows)) = self.ahead.take_if(covers) {
            self.replace(&entry, &rows, |ticks| record.to_monotonic_ns(process, ticks))?;
            self.publish_flags();
        }
        Ok(())
    }

    /// Writes an event, with times in nanoseconds, as the process did. Observers see it after [`Replica::flush`].
    pub(crate) fn event(&mut self, record: &Record, event: &Event) -> Result<(), ReplayError> {
        if event.stamp <= self.position {
            return Ok(());
        }
        if event.stamp != self.position + 1 {
            self.catch_up(record, event.stamp - 1)?;
            if event.stamp <= self.position {
                return Ok(());
            }
        }
        let is_known = event.device == NO_DEVICE || usize::from(event.device) < self.devices;
        if self.is_torn || event.stamp != self.position + 1 || !is_known {
            self.tear();
            return Ok(());
        }
        if event.device != NO_DEVICE {
            let device = usize::from(event.device);
            while self.counters.len() <= device {
                self.counters.push((Counters::ZERO, LatchWriter::default(), true));
            }
            let (counters, _, is_due) = &mut self.counters[device];
            let (number, what) = (self.number, |cause| format!("impossible events ({cause})"));
            counters.apply(event).map_err(|cause| ReplayError::Impossible { number, what: what(cause) })?;
            *is_due = true;
        }
        let program = self.program_row(event)?;
        let words = self.words();
        words.write_slot(event.to_words());
        words.change_row(event, program.map_or(event.to_words(), |row| row.to_words()));
        self.position = event.stamp;
        Ok(())
    }

    /// The row that a dispatch writes. Makes room for whatever the event writes.
    fn program_row(&mut self, event: &Event) -> Result<Option<Row>, ReplayError> {
        let effect = RowEffect::of(event);
        if matches!(effect, RowEffect::Set(_)) {
            self.make_room(event.row)?;
        }
        if effect != RowEffect::Set(RowKind::Program) {
            return Ok(None);
        }
        let words = self.words();
        let pair = [event.row, event.partner()];
        let rows = pair.iter().filter_map(|row| words.rows[..self.rows].get(*row as usize));
        let rows = rows.filter_map(|cell| stamped::read::<Row, _>(cell));
        let own = rows.filter(|row| {
            (row.kind(), row.id, row.device) == (Some(RowKind::Program), event.id, event.device)
        });
        let before = own.max_by_key(|row| row.stamp);
        Ok(Some(Row::after_dispatch(before.as_ref(), event)))
    }

    /// Says that events are missing: until the next checkpoint its figures are not those of the process.
    pub(crate) fn tear(&mut self) {
        if !self.is_torn {
            self.is_torn = true;
            self.publish_flags();
        }
    }

    fn publish_flags(&self) {
        let torn = if self.is_torn { state::PARTIAL } else { 0 };
        self.set(control::STATE, self.flags | torn);
    }

    /// Shows observers what was written.
    pub(crate) fn flush(&mut self) {
        let words = SegmentWords::carve(self.map.words(), &self.header);
        for ((counters, writer, is_due), latch) in
            self.counters.iter_mut().zip(words.counters).take(self.devices)
        {
            if std::mem::take(is_due) {
                writer.turn(latch, |copy| store_pod(copy, counters));
            }
        }
        words.publish_head(self.position);
    }

    /// The process ended: its lock is released and its file removed, with those who follow it still reading it.
    pub(crate) fn end(mut self, end: &EndEntry) {
        if end.how == Ended::Closed {
            self.flags |= state::CLOSED;
        }
        if end.position > self.position {
            self.tear();
        }
        self.flush();
        self.publish_flags();
        // Dropped, it is unlinked: observers look at a file that vanishes at once, and otherwise some times per second.
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        if self.is_linked {
            let _ = rustix::fs::unlink(&self.path);
        }
    }
}

/// The header of the replica: the recorded one, with the layout, the boot and the clock of here.
fn header(record: &Record, found: &ProcessEntry) -> Result<SegmentHeader, ReplayError> {
    let recorded = &found.header;
    let impossible = |what: String| ReplayError::Impossible { number: found.number, what };
    let ring = recorded.ring.capacity;
    if !ring.is_power_of_two() || !RING_SLOTS.contains(&ring) {
        return Err(impossible(format!("a ring of {ring} slots")));
    }
    let (rows, names) = (recorded.rows.capacity, recorded.name_bytes.capacity.saturating_mul(8));
    if rows > MAX_ROWS || names > MAX_NAME_BYTES {
        return Err(impossible(format!("room for {rows} rows and {names} bytes of names")));
    }
    if u32::try_from(recorded.pid).is_err() || recorded.identity == 0 {
        return Err(impossible(format!("pid {} and identity {}", recorded.pid, recorded.identity)));
    }
    let process = record.process(found.number);
    let started = process.and_then(Process::started_ns).unwrap_or(found.seen_ns);
    let mut header = SegmentHeader::plan(ring, rows, names);
    header.boot_id = tt_shm_os::boot_id().unwrap_or_default();
    // Its pid is the one that it had for whoever recorded it, as if that were here. If it had none, nobody has it here.
    let here = found.who.pid_here;
    (header.identity, header.pid) = (recorded.identity, here.map_or(recorded.pid, u64::from));
    header.pid_namespace = here.and_then(|_| tt_shm_os::pid_namespace()).unwrap_or(0);
    header.start_time = recorded.start_time;
    header.process_name = recorded.process_name;
    (header.run, header.source, header.on_behalf_of) = (0, recorded.source, recorded.on_behalf_of);
    header.clock_kind = u64::from(ClockKind::Monotonic.code());
    (header.anchor_ticks, header.anchor_monotonic_ns) = (started, started);
    header.anchor_realtime_ns = record.to_realtime_ns(started);
    // The clock of the record is the only one here.
    header.time_namespace = 0;
    Ok(header)
}
