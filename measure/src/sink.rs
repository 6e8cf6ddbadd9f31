//! One face for everything that can be told of allocations, so that all get the same work.

use shm_layout::EventKind;
use std::fmt;
use std::hint::black_box;
use tt_shm_writer::{Alloc, BufferType, CoreMemory, Device, DeviceInfo, ExclusiveTracker, Record, Tracker};

/// What is about to be measured does not do what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongSum {
    what: &'static str,
    found: u64,
    expected: u64,
}

impl WrongSum {
    /// Whether a figure is what it must be.
    pub fn check(what: &'static str, found: u64, expected: u64) -> Result<(), WrongSum> {
        if found == expected { Ok(()) } else { Err(WrongSum { what, found, expected }) }
    }
}

impl fmt::Display for WrongSum {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}, not {}", self.found, self.what, self.expected)
    }
}

impl std::error::Error for WrongSum {}

/// Is told of allocations and frees. Nothing may be lost: a failed call panics.
pub trait Sink {
    /// A buffer was allocated.
    fn alloc(&mut self, id: u64, size: u64);

    /// A buffer was freed. Hosts know its size; some sinks need it.
    fn free(&mut self, id: u64, size: u64);

    /// Waits until whoever was told is done with it, so that it does not run beside what comes next.
    fn settle(&mut self) {}
}

/// Is given an event for each call.
pub trait EventSink {
    /// Takes one event.
    fn put(&mut self, kind: EventKind, id: u64, size: u64);
}

impl<S: EventSink> Sink for S {
    #[inline(always)]
    fn alloc(&mut self, id: u64, size: u64) {
        self.put(EventKind::Alloc, id, size);
    }

    #[inline(always)]
    fn free(&mut self, id: u64, size: u64) {
        self.put(EventKind::Free, id, size);
    }
}

/// Does nothing with what it is told: the harness alone.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl Sink for Nothing {
    #[inline(always)]
    fn alloc(&mut self, id: u64, size: u64) {
        black_box((id, size));
    }

    #[inline(always)]
    fn free(&mut self, id: u64, size: u64) {
        black_box((id, size));
    }
}

/// A tracker of either kind with one device.
#[derive(Debug)]
pub struct Tracked<R> {
    /// The handle.
    pub tracker: R,
    /// The device that everything happens on.
    pub device: Device,
}

impl<R: Record> Sink for Tracked<R> {
    #[inline(always)]
    fn alloc(&mut self, id: u64, size: u64) {
        self.tracker.alloc(self.device, Alloc::new(BufferType::Dram, id, size)).expect("not live yet");
    }

    #[inline(always)]
    fn free(&mut self, id: u64, _: u64) {
        self.tracker.free(self.device, id).expect("live");
    }
}

impl<R: Record> Tracked<R> {
    /// Bytes of DRAM that the tracker counts.
    pub fn dram_bytes(&self) -> u64 {
        self.tracker.counters(self.device).expect("enabled").dram_used()
    }
}

impl Tracked<Tracker> {
    /// A handle for one more thread.
    pub fn share(&self) -> Tracked<Tracker> {
        Tracked { tracker: self.tracker.clone(), device: self.device }
    }

    /// Without its lock. There must be no other handle.
    pub fn into_exclusive(self) -> Tracked<ExclusiveTracker> {
        let Ok(tracker) = self.tracker.into_exclusive() else { panic!("another handle is in use") };
        Tracked { tracker, device: self.device }
    }
}

/// What a Wormhole chip says of itself.
pub fn chip(chip_id: u64) -> DeviceInfo {
    DeviceInfo {
        chip_id,
        logical_id: Some(chip_id as u32),
        dram_bytes: Some(12 << 30),
        dram_channels: Some(6),
        l1: Some(CoreMemory { cores: 64, bytes_per_core: 1464 << 10 }),
        ..Default::default()
    }
}
