//! The protocols by which one writer and any number of readers share memory.
//!
//! There are two: the [`stamped`] cell (event slots, live rows, history buckets) and the [`latch`] (counters,
//! table rows). [`commit`] uses them in the order that keeps a process's state exact at every instant;
//! [`observe`] and [`live`] read that state back. Nothing here ever waits.

pub mod commit;
pub mod latch;
pub mod live;
pub mod observe;
pub mod stamped;
