//! Measures what tracking costs. The benchmarks and `tt-smi bench` use it.
//!
//! Machines are noisy, so a mean is that of the best of several rounds, and what counts is its ratio to
//! another case of the same run. Before a case is timed, it is checked that it does what it should.
//!
//! | module | what |
//! |---|---|
//! | [`clock`], [`timing`] | ticks, means and distributions |
//! | [`workload`], [`interleave`] | what is repeated, and several cases that take turns |
//! | [`sink`] | one trait for everything that can be told of allocations, so that all get the same work |
//! | [`host_work`], [`launches`] | a host that dispatches programs, with or without tracking |
//! | [`limit`] | the least that a ring of timestamped events can cost |
//! | [`message`], [`socket`] | the proof of concept: messages to a server over a socket |
//! | [`scene`] | a namespace that is gone at the end, also after a panic |
//! | [`machine`] | what figures have to be read with |

#![forbid(unsafe_code)]

pub mod clock;
pub mod company;
pub mod host_work;
pub mod interleave;
pub mod launches;
pub mod limit;
pub mod machine;
pub mod message;
pub mod scene;
pub mod sink;
pub mod socket;
pub mod timing;
pub mod workload;
