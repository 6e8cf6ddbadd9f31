//! Instructions per operation, counted by callgrind and held against what was recorded. A count does not
//! depend on how busy the machine is, so it may fail a build.
//!
//! [`cases`] says what is counted, [`callgrind`] counts it in a process of its own, [`book`] keeps what was
//! accepted, [`verdict`] compares.

pub mod book;
pub mod callgrind;
pub mod cases;
pub mod verdict;
