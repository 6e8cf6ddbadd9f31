//! Byte layout and lock-free protocols of the memory monitor's shared memory.
//!
//! Every process writes one *segment* and the aggregator writes one *table*; everybody else only reads. This
//! crate defines where each byte lies, how it is written so that a reader never sees a torn value, and what
//! each event does to the counters. It does no I/O and has no `unsafe`.
//!
//! ```text
//! segment   /dev/shm/tt-shm.v2.<namespace>.<pid>-<random>     table   /dev/shm/tt-shm.v2.<namespace>.<uid>.table
//! +------------+ 0                                            +------------+ 0
//! | header     | immutable          SegmentHeader             | header     | immutable       TableHeader
//! | control    | head, counts       control                   | control    | heartbeat       table::control
//! | devices    | 128 x 512 B        DeviceEntry               | devices    | latch each      DeviceStats
//! | counters   | per device 2 latches Counters                | processes  | latch each      ProcessStats
//! | name index | 65536 words                                  | usages     | latch each      UsageStats
//! | name bytes | UTF-8                                        | notices    | latch each      Notice
//! | ring       | 2^k x 64 B         Event                     | history    | stamped cells   Bucket
//! | rows       | n x 64 B           Row                       | failures   | latch each      FailureRecord
//! +------------+                                              +------------+
//! ```
//!
//! All numbers are little-endian, and blocks start at multiples of 128 bytes. `docs/layout.md` in the
//! repository describes every byte for readers in other languages.
//!
//! # Example
//!
//! The writer's side and an observer's, on plain memory instead of a mapping:
//!
//! ```
//! use shm_layout::protocol::{commit::Accounts, observe::Attached};
//! use shm_layout::{Class, Event, EventKind, SegmentHeader, SegmentWords, control};
//! use std::sync::atomic::{AtomicU64, Ordering};
//!
//! let header = SegmentHeader::plan(64, 16, 4096);
//! let words: Vec<AtomicU64> = (0..header.total_len / 8).map(|_| AtomicU64::new(0)).collect();
//! let segment = SegmentWords::carve(&words, &header);
//! segment.control[control::DEVICE_COUNT].store(1, Ordering::Release);
//!
//! let mut accounts = Accounts::new(segment.ring.len());
//! accounts.add_device();
//! let alloc = Event { stamp: 1, class: Class::Dram as u8, size: 4096, aux: 4000, row: 0, ..Event::new(EventKind::Alloc, 0) };
//! segment.commit(&alloc, None, &mut accounts).unwrap();
//!
//! let mut attached = Attached::new(&segment).unwrap();
//! attached.catch_up(&segment).unwrap();
//! let counters = &attached.devices[0].0;
//! assert_eq!((counters.dram_used(), counters.class(Class::Dram).requested_bytes), (4096, 4000));
//! ```

#![forbid(unsafe_code)]

#[cfg(not(all(target_endian = "little", target_pointer_width = "64")))]
compile_error!("the shared layout is little-endian and 64-bit");

mod block;
pub mod claims;
mod class;
pub mod control;
mod counters;
pub mod describe;
mod device;
mod error;
mod event;
pub mod points;
pub mod protocol;
mod row;
mod segment;
pub mod table;
pub mod text;
mod words;

pub use block::{ALIGN, Block};
pub use class::{Class, CoreType, KernelType, Memory};
pub use counters::{
    ClassCounters, Counters, Implausible, LANES, Lane, MAX_BYTES, MAX_COUNT, MAX_KERNEL_BYTES,
};
pub use device::{Arch, DEVICE_WORDS, DeviceEntry, MAX_DEVICES, POOLS, Pool, known, mode};
pub use error::LayoutError;
pub use event::{Event, EventKind, MarkerPhase, NO_DEVICE, NO_ROW, UNKNOWN, flags};
pub use row::{Row, RowEffect, RowKind};
pub use segment::{
    DEVICE_COUNTER_WORDS, HEADER_WORDS, KNOWN_FEATURES, MAJOR, MAX_NAME_BYTES, MAX_NAME_LEN, MAX_NAMES,
    MAX_RING_SLOTS, MAX_ROWS, MIN_RING_SLOTS, MINOR, RING_SLOTS, RUN_GRACE_NS, SEGMENT_MAGIC, SLOT_WORDS,
    SegmentHeader, SegmentWords, Source,
};
pub use words::{View, Word, load_pod, store_pod, words_of};
