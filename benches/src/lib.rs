//! What the benchmarks share beside [`tt_shm_measure`]: other processes, many processes, peers, results.
//!
//! Each benchmark prints its base case, the harness alone, and asserts that what it is about to measure does
//! what it should.
//!
//! | module | what |
//! |---|---|
//! | [`threads`], [`walk`], [`region`] | several threads at once, a cache miss alone, what tt-metal publishes |
//! | [`crowd`], [`child`], [`program`] | many segments, other processes, the `tt-smi` program |
//! | [`capi`] | the C library, as a C host calls it |
//! | [`options`], [`outcome`], [`report`] | arguments, the results' schema, how they are shown and kept |
//! | [`budget`] | instructions per operation, held against what was recorded |
//! | [`markdown`], [`goals`], [`svg`], [`figures`] | tables and plots from kept results |

pub mod budget;
pub mod capi;
pub mod child;
pub mod crowd;
pub mod figures;
pub mod goals;
pub mod markdown;
pub mod options;
pub mod outcome;
pub mod program;
pub mod region;
pub mod report;
pub mod svg;
pub mod threads;
pub mod walk;
