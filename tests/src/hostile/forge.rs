//! Segments made by hand, honest but for what a case changes.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, OFlags};
use shm_layout::control::{DEVICE_COUNT, HEAD, NAME_COUNT};
use shm_layout::protocol::stamped;
use shm_layout::{
    Class, DeviceEntry, Event, EventKind, HEADER_WORDS, MAX_NAME_BYTES, MAX_ROWS, NO_ROW, SegmentHeader,
    SegmentWords, known, store_pod, text,
};
use tt_shm_os::{Anchor, ClockKind, SHM_DIR, WriteMap, lock_exclusive, path_of, segment_file_name};

use crate::space::Space;

/// First chip of what is forged; no host of these tests has it.
pub const DEVICE_CHIP: u64 = 0xbad0;
/// Slots, rows and bytes of names of the largest segment, which stays sparse.
pub const MAX_SEGMENT: (u64, u64, u64) = (1 << 24, MAX_ROWS, MAX_NAME_BYTES);

/// A segment with a "process" that lives until this is dropped; its file goes with it.
pub struct Forged {
    map: WriteMap,
    /// What lies in the file, as a rule.
    pub header: SegmentHeader,
    /// Its file.
    pub file: File,
    /// Its name.
    pub path: PathBuf,
}

impl Forged {
    /// A segment of 64 slots, 64 rows and 4 KiB of names that keeps every rule.
    pub fn honest(space: &Space) -> Forged {
        Forged::new(space, (64, 64, 4096), |_| {})
    }

    /// A segment of these slots, rows and bytes of names, with a header changed like this.
    pub fn new(space: &Space, plan: (u64, u64, u64), change: impl FnOnce(&mut SegmentHeader)) -> Forged {
        Forged::prepared(space, plan, change, |_| {})
    }

    /// Likewise, with content that is there before its name is.
    pub fn prepared(
        space: &Space,
        plan: (u64, u64, u64),
        change: impl FnOnce(&mut SegmentHeader),
        fill: impl FnOnce(&SegmentWords<'_, AtomicU64>),
    ) -> Forged {
        Forged::named(name(space), plan, change, fill)
    }

    /// An honest segment but for its claim to be that of a process of this machine.
    pub fn claiming(space: &Space, pid: u32) -> Forged {
        let identity = 0xbad1_0000_0000_0000 | u64::from(pid);
        let path = path_of(&segment_file_name(space.namespace(), pid, identity));
        let claim = |header: &mut SegmentHeader| {
            header.pid_namespace = tt_shm_os::pid_namespace().expect("/proc is there");
            header.start_time = tt_shm_os::start_time_of(pid).expect("the process is there");
        };
        Forged::named((path, pid, identity), (64, 64, 4096), claim, |_| {})
    }

    fn named(
        (path, pid, identity): (PathBuf, u32, u64),
        plan: (u64, u64, u64),
        change: impl FnOnce(&mut SegmentHeader),
        fill: impl FnOnce(&SegmentWords<'_, AtomicU64>),
    ) -> Forged {
        let mut header = honest_header(plan, pid, identity);
        let file = nameless(header.total_len);
        lock_exclusive(file.as_fd()).expect("a file of our own can be locked");
        let map = WriteMap::new(&file, header.total_len as usize).expect("it can be mapped");
        // As a writer does before it publishes: what has no memory behind it is refused.
        let populated = if plan == MAX_SEGMENT { header.counters.offset } else { header.total_len };
        map.populate(0, populated as usize).expect("there is room");
        fill(&SegmentWords::carve(map.words(), &header));
        let honest = header;
        change(&mut header);
        store_pod(map.words(), &header);
        link(&file, &path);
        Forged { map, header: honest, file, path }
    }

    /// The header's words.
    pub fn header_words(&self) -> &[AtomicU64] {
        &self.map.words()[..HEADER_WORDS]
    }

    /// Its blocks.
    pub fn words(&self) -> SegmentWords<'_, AtomicU64> {
        SegmentWords::carve(self.map.words(), &self.header)
    }

    /// Sets a control word.
    pub fn set(&self, control: usize, value: u64) {
        self.words().control[control].store(value, Ordering::Release);
    }

    /// Registers that many devices of 2^63 bytes each.
    pub fn devices(&self, count: usize) {
        for index in 0..count {
            store_pod(&self.words().devices[index], &device(DEVICE_CHIP + index as u64));
        }
        self.set(DEVICE_COUNT, count as u64);
    }

    /// An allocation of DRAM, or a free of one, on a device, now.
    pub fn emit_dram(&self, kind: EventKind, device: u8, size: u64) {
        let stamp = self.words().head() + 1;
        let time = ClockKind::Monotonic.ticks();
        let class = Class::Dram as u8;
        let event = Event { stamp, time, class, size, aux: size, row: NO_ROW, ..Event::new(kind, device) };
        self.emit(event);
    }

    /// Puts an event into its slot as it is, and the head behind it.
    pub fn emit(&self, event: Event) {
        let words = self.words();
        stamped::write(&words.ring[event.stamp as usize % words.ring.len()], &event);
        self.set(HEAD, event.stamp);
    }

    /// Interns a name, under an index word that may lie.
    pub fn intern(&self, bytes: &[u8], index: u64) {
        for (word, chunk) in self.words().name_bytes.iter().zip(bytes.chunks(8)) {
            let mut padded = [0; 8];
            padded[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(padded), Ordering::Relaxed);
        }
        self.words().name_index[1].store(index, Ordering::Relaxed);
        self.set(NAME_COUNT, 2);
    }
}

impl Drop for Forged {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A device that has more than anybody can have.
pub(super) fn device(chip_id: u64) -> DeviceEntry {
    DeviceEntry {
        chip_id,
        known: known::DRAM | known::L1 | known::BOARD,
        dram_bytes: 1 << 63,
        tensix_cores: 1 << 32,
        l1_per_core: 1 << 63,
        board: text::encode("p\u{1b}[31m\\150"),
        ..bytemuck::zeroed()
    }
}

/// A path that reads as that of a segment, with the pid and the identity in it.
fn name(space: &Space) -> (PathBuf, u32, u64) {
    static NEXT: AtomicU32 = AtomicU32::new(4_200_000);
    let pid = NEXT.fetch_add(1, Ordering::Relaxed);
    let identity = 0xbad0_0000_0000_0000 | u64::from(pid);
    (path_of(&segment_file_name(space.namespace(), pid, identity)), pid, identity)
}

/// A path that reads as that of a segment, for something that is none.
pub fn place(space: &Space) -> PathBuf {
    name(space).0
}

/// Puts a file of this content and length under a segment's name, at once.
pub fn put(space: &Space, content: &[u8], len: u64, mode: u32) -> PathBuf {
    use std::io::Write;
    let mut file = nameless(len);
    file.write_all(content).expect("there is room");
    rustix::fs::fchmod(&file, rustix::fs::Mode::from_raw_mode(mode)).expect("our own file");
    let path = place(space);
    link(&file, &path);
    path
}

fn honest_header((slots, rows, names): (u64, u64, u64), pid: u32, identity: u64) -> SegmentHeader {
    let anchor = Anchor::now(ClockKind::Monotonic);
    SegmentHeader {
        boot_id: tt_shm_os::boot_id().unwrap_or_default(),
        identity,
        pid: u64::from(pid),
        clock_kind: u64::from(ClockKind::Monotonic.code()),
        anchor_ticks: anchor.ticks,
        anchor_monotonic_ns: anchor.monotonic_ns,
        anchor_realtime_ns: anchor.realtime_ns,
        process_name: text::encode("forged"),
        ..SegmentHeader::plan(slots, rows, names)
    }
}

fn nameless(len: u64) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(OFlags::TMPFILE.bits() as i32).mode(0o600);
    let file = options.open(SHM_DIR).expect("/dev/shm is there");
    file.set_len(len).expect("sparse files take no room");
    file
}

fn link(file: &File, path: &Path) {
    let source = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(CWD, source, CWD, path, AtFlags::SYMLINK_FOLLOW).expect("the name is free");
}
