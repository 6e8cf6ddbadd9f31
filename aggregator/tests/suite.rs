//! Tests of the aggregator that may run beside each other. `crowd.rs` and `unwatched.rs` do so much in /dev/shm that every
//! aggregator which watches it would notice.

mod common;

mod capacity;
mod clocks;
mod endless;
mod exact;
mod failures;
mod follow;
mod hostile;
mod moments;
mod observer;
mod peaks;
mod reconsider;
mod room;
mod source;
mod table;
