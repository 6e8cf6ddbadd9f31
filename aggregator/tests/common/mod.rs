//! Fake processes: segments in /dev/shm, written and locked by the test itself.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD};
use shm_layout::protocol::commit::Accounts;
use shm_layout::{
    Block, Class, Counters, DeviceEntry, Event, EventKind, NO_ROW, SegmentHeader, SegmentWords, control,
    known, store_pod, text,
};
use tt_shm_aggregator::{Aggregator, Config};
use tt_shm_os::{
    Anchor, ClockKind, Namespace, SHM_DIR, WriteMap, boot_id, lock_exclusive, path_of, segment_file_name,
};
use tt_shm_reader::{DeviceStats, TableSnapshot};

/// A namespace of a test's own; its files are removed when the test ends in any way.
pub(crate) struct Scene {
    pub(crate) namespace: Namespace,
}

impl Scene {
    pub(crate) fn new() -> Scene {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let namespace = Namespace::new(&format!("agg-{}-{number}", std::process::id())).unwrap();
        Scene { namespace }
    }

    pub(crate) fn aggregator(&self) -> Aggregator {
        Aggregator::new(Config::new(self.namespace.clone())).unwrap()
    }

    pub(crate) fn process(&self) -> TestProcess {
        TestProcess::new(&self.namespace, 1024)
    }

    /// Two processes on the same chip, which is the first device of each.
    pub(crate) fn pair(&self, chip_id: u64) -> (TestProcess, TestProcess) {
        let [one, two] = [(); 2].map(|()| {
            let mut process = self.process();
            process.register(chip(chip_id));
            process
        });
        (one, two)
    }

    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let prefix = format!("tt-shm.v2.{}.", self.namespace);
        let entries = std::fs::read_dir(SHM_DIR).unwrap().flatten();
        let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
        ours.map(|entry| entry.path()).collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for path in self.files() {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A segment with a writer that is alive until it is dropped; then its file stays, as after kill -9.
pub(crate) struct TestProcess {
    map: WriteMap,
    pub(crate) header: SegmentHeader,
    pub(crate) path: PathBuf,
    devices: u8,
    accounts: Accounts,
    pub(crate) position: u64,
    pub(crate) clock: ClockKind,
}

pub(crate) fn chip(chip_id: u64) -> DeviceEntry {
    DeviceEntry {
        chip_id,
        logical_id: chip_id,
        arch: 2,
        known: known::ARCH | known::DRAM | known::L1 | known::LOGICAL,
        dram_bytes: 1 << 34,
        tensix_cores: 64,
        l1_per_core: 1 << 20,
        ..bytemuck::Zeroable::zeroed()
    }
}

impl TestProcess {
    pub(crate) fn new(namespace: &Namespace, ring_slots: u64) -> TestProcess {
        TestProcess::with_identity(namespace, ring_slots, tt_shm_os::random_u64().unwrap())
    }

    pub(crate) fn with_identity(namespace: &Namespace, ring_slots: u64, identity: u64) -> TestProcess {
        TestProcess::with_memory(namespace, ring_slots, identity, None)
    }

    /// One of many: with memory only for its ring and this many devices, which it must not exceed.
    pub(crate) fn lean(namespace: &Namespace, devices: u64) -> TestProcess {
        TestProcess::with_memory(namespace, 64, tt_shm_os::random_u64().unwrap(), Some(devices))
    }

    fn with_memory(
        namespace: &Namespace,
        ring_slots: u64,
        identity: u64,
        devices: Option<u64>,
    ) -> TestProcess {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let pid = 1_000_000 + NEXT.fetch_add(1, Ordering::Relaxed);
        let clock = ClockKind::best();
        let anchor = Anchor::now(clock);
        let header = SegmentHeader {
            boot_id: boot_id().unwrap_or_default(),
            identity,
            pid: u64::from(pid),
            clock_kind: u64::from(clock.code()),
            anchor_ticks: anchor.ticks,
            anchor_monotonic_ns: anchor.monotonic_ns,
            anchor_realtime_ns: anchor.realtime_ns,
            process_name: text::encode("test"),
            ..SegmentHeader::plan(ring_slots, 64, 4096)
        };
        let file = nameless(header.total_len);
        lock_exclusive(file.as_fd()).unwrap();
        let map = WriteMap::new(&file, header.total_len as usize).unwrap();
        // As a writer does before it publishes: what has no memory behind it is refused.
        for (start, end) in needed(&header, devices) {
            map.populate(start as usize, (end - start) as usize).unwrap();
        }
        store_pod(map.words(), &header);
        let path = path_of(&segment_file_name(namespace, pid, header.identity));
        link(&file, &path);
        let accounts = Accounts::new(header.ring.capacity as usize);
        TestProcess { map, header, path, devices: 0, accounts, position: 0, clock }
    }

    /// Changes its header before anybody looks.
    pub(crate) fn change_header(&mut self, change: impl FnOnce(&mut SegmentHeader)) {
        change(&mut self.header);
        store_pod(self.map.words(), &self.header);
    }

    pub(crate) fn words(&self) -> SegmentWords<'_, AtomicU64> {
        SegmentWords::carve(self.map.words(), &self.header)
    }

    pub(crate) fn register(&mut self, entry: DeviceEntry) -> u8 {
        let index = self.devices;
        self.devices += 1;
        self.accounts.add_device();
        store_pod(&self.words().devices[usize::from(index)], &entry);
        self.words().control[control::DEVICE_COUNT].store(u64::from(self.devices), Ordering::Release);
        index
    }

    /// Commits an event as it is, at the next position.
    pub(crate) fn emit_raw(&mut self, event: Event) {
        self.position += 1;
        let event = Event { stamp: self.position, ..event };
        let words = SegmentWords::carve(self.map.words(), &self.header);
        // An event that cannot be counted is published nonetheless: the aggregator has to refuse it.
        let _ = self.accounts.count(&event);
        words.publish(&event, None, &mut self.accounts);
    }

    pub(crate) fn emit(&mut self, event: Event) {
        let time = self.clock.ticks();
        self.emit_raw(Event { time, ..event });
    }

    pub(crate) fn alloc(&mut self, device: u8, class: Class, size: u64) {
        self.emit(buffer(EventKind::Alloc, device, class, size));
    }

    pub(crate) fn free(&mut self, device: u8, class: Class, size: u64) {
        self.emit(buffer(EventKind::Free, device, class, size));
    }

    pub(crate) fn counters(&self, device: u8) -> Counters {
        *self.accounts.counters(device).unwrap()
    }

    pub(crate) fn pid(&self) -> u64 {
        self.header.pid
    }

    /// Closes the segment, with the time, and is noticed at once.
    pub(crate) fn close(self) {
        let control = self.words().control;
        control[control::CLOSED_AT].store(self.clock.ticks(), Ordering::Relaxed);
        control[control::STATE].store(control::state::CLOSED, Ordering::Relaxed);
    }
}

/// What needs memory behind it: everything, or only the ring and some devices.
fn needed(header: &SegmentHeader, devices: Option<u64>) -> Vec<(u64, u64)> {
    let Some(devices) = devices else { return vec![(0, header.total_len)] };
    let part = |block: Block, next: u64, entries: u64| {
        (block.offset, block.offset + (next - block.offset) / block.capacity * entries)
    };
    let counters = part(header.counters, header.name_index.offset, devices);
    let entries = part(header.devices, header.counters.offset, devices);
    vec![(0, header.devices.offset), entries, counters, (header.ring.offset, header.total_len)]
}

pub(crate) fn buffer(kind: EventKind, device: u8, class: Class, size: u64) -> Event {
    Event { class: class as u8, size, aux: size, row: NO_ROW, ..Event::new(kind, device) }
}

fn nameless(len: u64) -> File {
    let flags = rustix::fs::OFlags::TMPFILE.bits() as i32;
    let file =
        OpenOptions::new().read(true).write(true).custom_flags(flags).mode(0o600).open(SHM_DIR).unwrap();
    file.set_len(len).unwrap();
    file
}

fn link(file: &File, path: &Path) {
    let source = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(CWD, source, CWD, path, AtFlags::SYMLINK_FOLLOW).unwrap();
}

pub(crate) fn device(snapshot: &TableSnapshot, chip_id: u64) -> DeviceStats {
    let found = snapshot.devices.iter().find(|(_, device)| device.entry.chip_id == chip_id);
    found.expect("the device is shown").1
}

pub(crate) fn settled(aggregator: &mut Aggregator) -> TableSnapshot {
    aggregator.settle();
    aggregator.snapshot()
}
