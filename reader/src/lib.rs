//! Reads the monitor's shared memory: devices, processes, live allocations, programs and events.
//!
//! There are two things to read. A [`Segment`] is what one process reports about itself: exact counters and
//! peaks per device, every live allocation, its programs, and a ring of its latest events. A [`Table`] is
//! what an aggregator derives from all segments: totals per device, peaks across processes, history. Reading
//! sends nothing, takes no lock and never waits; views read the mapping in place.
//!
//! What happens when the other side
//!
//! - **dies**, by any signal: what it left is its exact state before or after the operation it was in.
//!   [`Segment::is_alive`] tells from then on (the kernel releases its lock; pids play no part), as
//!   [`Table::freshness`] does for an aggregator;
//! - **is stopped**: the same, except that a stopped process is alive, and an aggregator stale;
//! - **is faster than its reader** and its ring wraps around: [`Follow::missed`] counts what was missed;
//!   [`Segment::counters`] stays exact or fails with [`ReadError::Busy`]; [`Segment::allocations`] and
//!   [`Table::snapshot`] tell whether they are exact. Every retry is bounded: nothing here hangs;
//! - **is hostile or broken**: it is refused with a reason, or its figures are. Nothing here panics, and no
//!   number from the file is used unchecked. Names are text of another process: escape them before
//!   displaying;
//! - **publishes what it has no memory for**: it is refused. Nothing here touches a hole in a file, which
//!   would allocate it: see [`Loss`];
//! - **truncates its file** under the mapping: touching the lost part raises SIGBUS, as with every mapping.
//!   This crate has no global side effects and installs no handler; a program that reads other users'
//!   segments should.
//!
//! # Examples
//!
//! Every process of a namespace and what it holds. Here it is this process itself, which reports through the
//! writer:
//!
//! ```
//! use tt_shm_reader::{Namespace, Segment, segment_paths};
//! use tt_shm_writer::{Alloc, BufferType, DeviceInfo, Record, Tracker};
//!
//! let ns = Namespace::new(&format!("doc-reader-{}", std::process::id()))?;
//! let tracker = Tracker::builder().enabled(true).namespace(ns.as_str()).open()?;
//! let device = tracker.register_device(&DeviceInfo { chip_id: 7, ..Default::default() })?;
//! tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 4096).name(tracker.intern("weights")?))?;
//!
//! for path in segment_paths(&ns)? {
//!     let Ok(segment) = Segment::open(&path) else { continue }; // ended meanwhile, or another user's
//!     assert!(segment.is_alive()?);
//!     let now = segment.counters()?;
//!     assert_eq!(now.counters[0].dram_used(), 4096);
//!
//!     let live = segment.allocations();
//!     assert!(live.exact);
//!     assert_eq!(live.list[0].name.as_deref(), Some("weights"));
//!
//!     let mut events = segment.follow();
//!     tracker.free(device, 1)?;
//!     let free = events.next().expect("just happened");
//!     assert_eq!((free.id, free.size, events.missed()), (1, 4096, 0));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What an aggregator reports about device 0, read in place:
//!
//! ```
//! use tt_shm_reader::{Namespace, Table};
//!
//! match Table::open(&Namespace::default()) {
//!     Ok(table) if !table.freshness().is_fresh() => eprintln!("the aggregator is gone"),
//!     Ok(table) => match table.device(0).read(|row| (row.dram_used_bytes(), row.dram_peak())) {
//!         Some((used, peak)) => println!("{used} B, peak {} to {} B", peak.low, peak.high),
//!         None => println!("no device yet"),
//!     },
//!     Err(why) => eprintln!("{why}"),
//! }
//! ```
//!
//! The peak of a span of time in one process, and what it was made of: [`Span`]. Events without a lifetime,
//! copied into a buffer: [`Follower`]. Every error has a stable number: [`codes`].
//!
//! Times in a segment are ticks of its clock, which [`Segment::calibration`] converts; times in a table are
//! CLOCK_MONOTONIC nanoseconds.

#![forbid(unsafe_code)]

mod allocations;
mod backed;
pub mod codes;
mod counters;
mod error;
mod follow;
mod freshness;
mod history;
mod holdings;
mod level;
mod names;
mod open;
mod programs;
mod rows;
mod segment;
mod sharing;
mod snapshot;
mod span;
mod table;
mod telemetry;

pub use allocations::{Allocation, Allocations, Listed};
pub use backed::Loss;
pub use counters::Snapshot;
pub use error::{FileError, OpenError, ReadError, TableError};
pub use follow::{Follow, Follower, ReadFrom};
pub use freshness::Freshness;
pub use holdings::{Effect, Held, Holdings, Sum};
pub use level::UsedMemory;
pub use open::{MAX_FILE_LEN, is_held, is_held_in};
pub use programs::{Kernel, Program, ProgramDevice};
pub use rows::DeviceRow;
pub use segment::{Segment, segment_paths};
pub use sharing::{KernelSharing, kernel_sharing};
pub use snapshot::TableSnapshot;
pub use span::{DeviceSpan, MemorySpan, PeakRange, Span, SpanPart, SpanReport};
pub use table::Table;

pub use shm_layout::control::Anomaly;
pub use shm_layout::protocol::live::LiveList;
pub use shm_layout::table::{
    Absent, Bucket, ClassStats, Composition, DRIVER_NUMBERS, DeviceStats, DriverStats, FAILURE_EVENTS,
    FAILURE_HOLDERS, Failure, FailureHolder, FailureRecord, HISTORY_BUCKETS, HISTORY_RESOLUTIONS, Holder,
    MAX_FAILURES, Notice, PEAK_HOLDERS, PastEvent, Peak, ProcessStats, RegionStats, TELEMETRY_RESOLUTIONS,
    TRENDS, TableHeader, TableWords, TelemetryBucket, Told, Trend, UsageStats, bucket_flags, device_flags,
    driver_flags, failure_flags, notice_kind, process_flags, process_state, region_flags, region_kind,
    region_state, usage_flags,
};
pub use shm_layout::{
    Arch, Class, ClassCounters, CoreType, Counters, DeviceEntry, Event, EventKind, Implausible, KernelType,
    LANES, Lane, LayoutError, MAX_DEVICES, MarkerPhase, Memory, NO_DEVICE, NO_ROW, Pool, Row, RowKind,
    SegmentHeader, SegmentWords, Source, UNKNOWN, View, flags, known, mode, text,
};
pub use tt_shm_os::{
    Anchor, Calibration, ClockKind, MapError, NameError, Namespace, SegmentName, awake_since, monotonic_ns,
    parse_segment_name, realtime_ns,
};

const _: () = {
    const fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Segment>();
    is_send_and_sync::<Table>();
    is_send_and_sync::<Follower>();
    is_send_and_sync::<Span>();
};
