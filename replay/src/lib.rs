//! Replays a record: its processes become segments again, in a namespace of their own, and an aggregator follows them
//! under a clock that tells the time of the record.
//!
//! So whatever reads live processes (the aggregator, the table, every command of `tt-smi`, the screen) reads recorded
//! ones with the same code, and a figure of the past is made by the same rules as one of now. Nothing is computed here.
//!
//! - [`Replay::seek`] goes to a time: events up to it are written into the replicas, process by process in their own
//!   order, the clock is set, the aggregator looks, and its table is published.
//! - Between two looks no ring goes round, and each look is at a time up to which every event is there: no event is
//!   late, so peaks over several processes are exact wherever the record is complete.
//! - What is missing from the record (a gap, a damaged frame) is missing for the observers, too: the process says that
//!   its figures are a part, until the next checkpoint tells everything.
//!
//! Only one replay at a time in a process, and no tracker beside it: the clock is that of the whole process
//! ([`tt_shm_os::past`]).

#![forbid(unsafe_code)]

mod error;
mod feed;
mod player;
mod replica;

pub use error::ReplayError;
pub use player::Replay;
