//! What the benchmarks share: timing, other processes, the peers that are built from facts, results.
//!
//! Machines are noisy, so a mean is that of the best of several rounds, and what counts is its ratio to
//! another case of the same run. Each benchmark prints its base case, the harness alone, and asserts that
//! what it is about to measure does what it should.
//!
//! | module | what |
//! |---|---|
//! | [`clock`], [`measure`], [`workload`], [`threads`], [`turns`] | ticks, means and distributions, and what is repeated |
//! | [`host`], [`launches`], [`limit`], [`message`], [`socket`], [`region`] | a host, the least that can be, and what there was before |
//! | [`sink`] | one face for all of them, so that each is given the same work |
//! | [`scene`], [`crowd`], [`child`] | names, segments and processes that are gone at the end, also after a panic |
//! | [`options`], [`outcome`], [`report`] | arguments, the results' schema, how they are shown and kept |
//! | [`budget`] | instructions per operation, held against what was recorded |
//! | [`markdown`], [`goals`], [`svg`], [`figures`] | tables and plots from kept results |

pub mod budget;
pub mod child;
pub mod clock;
pub mod crowd;
pub mod figures;
pub mod goals;
pub mod host;
pub mod launches;
pub mod limit;
pub mod markdown;
pub mod measure;
pub mod message;
pub mod options;
pub mod outcome;
pub mod program;
pub mod region;
pub mod report;
pub mod scene;
pub mod sink;
pub mod socket;
pub mod svg;
pub mod threads;
pub mod turns;
pub mod walk;
pub mod workload;
