//! A segment as a process would write it, event by event.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use shm_layout::control::{DEVICE_COUNT, NAME_COUNT, ROWS_PUBLISHED};
use shm_layout::protocol::commit::Accounts;
use shm_layout::{SegmentWords, store_pod};
use tt_shm_os::{WriteMap, boot_id, lock_exclusive, path_of, segment_file_name};
use tt_shm_reader::{
    Anchor, Class, ClockKind, Counters, DeviceEntry, Event, EventKind, Namespace, Row, RowKind, Segment,
    SegmentHeader, known, text,
};

use super::{Removed, namespace, new_file};

pub const SLOTS: u64 = 64;
pub const ROWS: u64 = 512;
const NAME_BYTES: u64 = 4096;
const IDENTITY: u64 = 0x0123_4567_89ab_cdef;

pub fn header() -> SegmentHeader {
    let anchor = Anchor::now(ClockKind::Monotonic);
    SegmentHeader {
        boot_id: boot_id().unwrap(),
        identity: IDENTITY,
        pid: u64::from(std::process::id()),
        clock_kind: u64::from(ClockKind::Monotonic.code()),
        anchor_ticks: anchor.ticks,
        anchor_monotonic_ns: anchor.monotonic_ns,
        anchor_realtime_ns: anchor.realtime_ns,
        process_name: text::encode("tester"),
        ..SegmentHeader::plan(SLOTS, ROWS, NAME_BYTES)
    }
}

pub fn path_in(ns: &Namespace) -> PathBuf {
    path_of(&segment_file_name(ns, std::process::id(), IDENTITY))
}

/// The writer's side. Dropping it ends the "process": the lock is released, the file removed.
pub struct Writer {
    pub namespace: Namespace,
    pub header: SegmentHeader,
    pub map: Option<WriteMap>,
    pub head: u64,
    devices: usize,
    accounts: Accounts,
    names: u64,
    name_end: u64,
    file: Removed,
}

impl Writer {
    /// A segment with that many devices, complete and locked.
    pub fn new(devices: usize) -> Writer {
        Writer::with_header(header(), devices)
    }

    pub fn with_header(header: SegmentHeader, devices: usize) -> Writer {
        let namespace = namespace();
        let (file, removed) = new_file(&path_in(&namespace), header.total_len, 0o600);
        lock_exclusive(file.as_fd()).unwrap();
        let map = WriteMap::new(&file, header.total_len as usize).unwrap();
        store_pod(map.words(), &header);
        // As a writer does: what is published without memory behind it is refused.
        map.populate(0, header.name_index.offset as usize + 4096).unwrap();
        map.populate(header.ring.offset as usize, header.ring.capacity as usize * 64).unwrap();
        map.populate(header.rows.offset as usize, header.rows.capacity as usize * 64).unwrap();
        let mut accounts = Accounts::new(header.ring.capacity as usize);
        (0..devices).for_each(|_| accounts.add_device());
        let writer = Writer {
            namespace,
            header,
            map: Some(map),
            head: 0,
            devices,
            accounts,
            names: 1,
            name_end: 0,
            file: removed,
        };
        for device in 0..devices {
            let entry = DeviceEntry {
                chip_id: 100 + device as u64,
                known: known::DRAM | known::BOARD,
                dram_bytes: 1 << 34,
                board: text::encode("n300"),
                ..bytemuck::zeroed()
            };
            store_pod(&writer.words().devices[device], &entry);
        }
        writer.set(DEVICE_COUNT, devices as u64);
        writer.set(ROWS_PUBLISHED, ROWS);
        writer.set(NAME_COUNT, 1);
        writer
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    pub fn open(&self) -> Segment {
        Segment::open(self.path()).unwrap()
    }

    /// Opens it after a change.
    pub fn open_with(&self, change: impl FnOnce(&Writer)) -> Segment {
        change(self);
        self.open()
    }

    pub fn words(&self) -> SegmentWords<'_, AtomicU64> {
        SegmentWords::carve(self.map.as_ref().expect("alive").words(), &self.header)
    }

    pub fn set(&self, control: usize, value: u64) {
        self.words().control[control].store(value, Ordering::Release);
    }

    /// Ends the process as a kill would: the lock goes, the file stays.
    pub fn kill(&mut self) {
        self.map = None;
    }

    /// The process's own counters.
    pub fn truth(&self) -> Vec<Counters> {
        (0..self.devices).map(|device| *self.accounts.counters(device as u8).unwrap()).collect()
    }

    /// Puts position and time into an event.
    pub fn stamp(&mut self, event: Event) -> Event {
        self.head += 1;
        Event { stamp: self.head, time: tt_shm_reader::monotonic_ns(), ..event }
    }

    pub fn commit(&mut self, event: Event) -> Event {
        let event = self.stamp(event);
        let map = self.map.as_ref().expect("alive");
        let words = SegmentWords::carve(map.words(), &self.header);
        // An event that cannot be counted is published nonetheless: the reader has to refuse it.
        let _ = self.accounts.count(&event);
        words.publish(&event, None, &mut self.accounts);
        event
    }

    pub fn alloc(&mut self, device: u8, class: Class, id: u64, size: u64) -> Event {
        let event = Event::new(EventKind::Alloc, device);
        self.commit(Event { class: class as u8, id, size, aux: size, row: id as u32, ..event })
    }

    pub fn free(&mut self, device: u8, class: Class, id: u64, size: u64) -> Event {
        let event = Event::new(EventKind::Free, device);
        self.commit(Event { class: class as u8, id, size, aux: size, row: id as u32, ..event })
    }

    /// A dispatch of a program whose pair of rows is `pair`; `before` is its row before.
    pub fn dispatch(
        &mut self,
        device: u8,
        program: u64,
        flags: u8,
        pair: (u32, u32),
        before: Option<&Row>,
    ) -> Row {
        let event = Event {
            id: program,
            size: 0,
            address: 1 | u64::from(pair.1) << 32,
            aux: 0,
            flags,
            ..Event::new(EventKind::KernelDispatch, device)
        };
        let event = self.stamp(Event { row: pair.0, ..event });
        let row = Row::after_dispatch(before, &event);
        assert_eq!(row.kind(), Some(RowKind::Program));
        let map = self.map.as_ref().expect("alive");
        let words = SegmentWords::carve(map.words(), &self.header);
        words.commit(&event, Some(&row), &mut self.accounts).unwrap();
        row
    }

    /// Interns a name and returns its number.
    pub fn name(&mut self, bytes: &[u8]) -> u16 {
        let words = self.words();
        for (offset, byte) in (self.name_end..).zip(bytes) {
            let word = &words.name_bytes[offset as usize / 8];
            word.fetch_or(u64::from(*byte) << (offset % 8 * 8), Ordering::Relaxed);
        }
        self.index_name(self.name_end << 32 | bytes.len() as u64);
        self.name_end += bytes.len() as u64;
        (self.names - 1) as u16
    }

    /// Writes a word, honest or not, to the next entry of the name index.
    pub fn index_name(&mut self, word: u64) -> u16 {
        self.words().name_index[self.names as usize].store(word, Ordering::Relaxed);
        self.names += 1;
        self.set(NAME_COUNT, self.names);
        (self.names - 1) as u16
    }
}
