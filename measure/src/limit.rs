//! The least that any event ring with timestamps can cost: a timestamp, one slot, the head.

use crate::clock::Stopwatch;
use crate::sink::EventSink;
use shm_layout::{Event, EventKind};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicU64, Ordering};
use tt_shm_os::{SHM_DIR, WriteMap};
use tt_shm_writer::DEFAULT_RING_SLOTS;

/// As many as a segment's ring has.
pub const SLOTS: usize = DEFAULT_RING_SLOTS as usize;
const SLOT_WORDS: usize = 8;

/// A mapping of /dev/shm that has all its pages, without a name: nothing is left behind.
pub fn shared_map(bytes: usize) -> io::Result<WriteMap> {
    let file = unnamed_file()?;
    file.set_len(bytes as u64)?;
    let map = WriteMap::new(&file, bytes).map_err(io::Error::other)?;
    map.populate(0, bytes)?;
    Ok(map)
}

fn unnamed_file() -> io::Result<File> {
    let flags = rustix::fs::OFlags::TMPFILE.bits().cast_signed();
    OpenOptions::new().read(true).write(true).custom_flags(flags).mode(0o600).open(SHM_DIR)
}

/// Slots and a head, and nothing else: no index, no counters, no rows.
#[derive(Debug)]
pub struct LimitRing {
    map: WriteMap,
    head: u64,
    clock: Stopwatch,
}

impl LimitRing {
    /// On memory as a segment has it.
    pub fn new() -> io::Result<LimitRing> {
        let map = shared_map((1 + SLOTS) * 64)?;
        Ok(LimitRing { map, head: 0, clock: Stopwatch::get() })
    }

    /// Writes one event.
    #[inline(always)]
    pub fn write(&mut self, kind: EventKind, id: u64, size: u64) {
        self.head += 1;
        let event = Event { stamp: self.head, time: self.clock.ticks(), id, size, ..Event::new(kind, 0) };
        write_slot(self.map.words(), self.head, &event);
    }

    /// The same without reading a clock: what the store alone costs.
    #[inline(always)]
    pub fn write_untimed(&mut self, kind: EventKind, id: u64, size: u64) {
        self.head += 1;
        let event = Event { stamp: self.head, id, size, ..Event::new(kind, 0) };
        write_slot(self.map.words(), self.head, &event);
    }

    /// The last event, from the memory.
    pub fn last(&self) -> (u64, u64) {
        let words = self.map.words();
        let head = words[0].load(Ordering::Relaxed);
        let slot = (1 + head as usize % SLOTS) * SLOT_WORDS;
        (head, words[slot].load(Ordering::Relaxed))
    }
}

#[inline(always)]
fn write_slot(words: &[AtomicU64], position: u64, event: &Event) {
    let slot = (1 + position as usize % SLOTS) * SLOT_WORDS;
    let values: [u64; SLOT_WORDS] = bytemuck::must_cast(*event);
    for (word, value) in words[slot..slot + SLOT_WORDS].iter().zip(values) {
        word.store(value, Ordering::Relaxed);
    }
    words[0].store(position, Ordering::Release);
}

impl EventSink for LimitRing {
    #[inline(always)]
    fn put(&mut self, kind: EventKind, id: u64, size: u64) {
        self.write(kind, id, size);
    }
}
