//! A made-up tt-metal workload, reported through a tracker: what `tt-smi demo` shows.
//!
//! A [`Worker`] is one of several processes that share the same devices. It loads the weights of a network,
//! compiles its operations, then runs steps with transient buffers until it is told to stop, and frees
//! everything. It opens no device.

#![forbid(unsafe_code)]

mod banks;
mod board;
mod models;
mod pace;
mod setup;
mod worker;
mod workload;

pub use worker::Worker;
