//! Records: every event of every process of a namespace in one file, and how to read it back.
//!
//! A record is a sequence of independent frames. Each has a fixed header with checksums and up to about 1 MiB of
//! compressed [entries](Entry): who the processes are, their devices and names, checkpoints of what they hold, and
//! their raw events. Nothing is ever rewritten, so a file that was cut anywhere (the recorder was killed, the disk was
//! full) is readable up to its last whole frame, and a damaged frame costs only what it held.
//!
//! - **Recording**: a [`Recorder`] follows segments and gathers frames, which a [`FrameSink`] compresses and writes.
//! - **Writing**: [`RecordWriter`] over any `Write`, or [`FrameBuilder`] and [`FrameSink`] on two threads.
//! - **Reading**: [`Record::open`] checks everything once and lists processes, gaps, markers and failures;
//!   [`Record::entries_from`], [`Record::events`] (merged by time) and [`Record::state_at`] read the file again.
//!
//! What may be relied on:
//!
//! - An event that is in a record is as its process wrote it. Events that are not there are counted: every process has
//!   its [gaps](Process::gaps), whether the recorder noticed them or a damaged frame left them.
//! - [`State::is_exact`] is true only if a checkpoint and every event after it are there.
//! - A record is not trusted: sizes, counts and codes are checked, memory is bounded, nothing panics. Names and command
//!   lines are text of other processes: escape them before displaying.
//!
//! Times are nanoseconds of CLOCK_MONOTONIC of the machine and boot that [`Begin`] names; [`Record::to_realtime_ns`]
//! converts them.
//!
//! ```
//! use tt_shm_record::{Begin, FrameTime, Record, RecordWriter};
//! use shm_layout::{Event, EventKind, SegmentHeader};
//!
//! let mut writer = RecordWriter::new(Vec::new(), &Begin::default(), Default::default())?;
//! let header = SegmentHeader { clock_kind: 3, ..SegmentHeader::plan(64, 16, 4096) };
//! let process = tt_shm_record::ProcessEntry::new(0, header);
//! writer.process(&process)?;
//! writer.state(0, &tt_shm_record::StateEntry::nothing(5), &[])?;
//! let marker = Event { stamp: 1, time: 7, ..Event::new(EventKind::Marker, 255) };
//! writer.events(0, &[marker], FrameTime::at(7))?;
//! let bytes = writer.finish(9)?;
//!
//! let record = Record::from_bytes(bytes)?;
//! assert_eq!((record.totals().events, record.totals().lost, record.damage()), (1, 0, None));
//! let (first, event) = record.events().next().map(|next| next.map(|e| (e.ns, e.event))).unwrap()?;
//! assert_eq!((first, event.kind()), (7, Some(EventKind::Marker)));
//! assert!(record.state_at(0, 8)?.is_exact());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod checkpoint;
mod clock;
mod entry;
mod error;
mod facts;
mod fold;
mod frame;
mod index;
mod merge;
mod pod;
mod record;
mod recorder;
mod scan;
mod writer;

pub use checkpoint::read_checkpoint;
pub use clock::Clocks;
pub use entry::{
    ClockEntry, EndEntry, Ended, Entry, GapEntry, MAX_ENTRY, ProcessEntry, StateEntry, TableEntry, TableRows,
};
pub use error::{Damage, DecodeError, OpenError, ReadError};
pub use facts::{Begin, Who};
pub use fold::{Live, State};
pub use frame::{FORMAT_VERSION, FRAME_HEADER_LEN, FRAME_LEN, FrameHeader, FrameKind, MAX_RAW, frame_flags};
pub use index::IndexEntry;
pub use merge::{Merged, MergedEvent};
pub use record::{Entries, Frame, Gap, Process, Record, Totals};
pub use recorder::{Counts, Polled, Recorder};
#[doc(hidden)]
pub use writer::file_of;
pub use writer::{FrameBuilder, FrameSink, FrameTime, RawFrame, RecordWriter, WriterOptions, Written};
