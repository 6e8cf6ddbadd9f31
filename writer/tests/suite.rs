//! Tests of the writer that may run beside each other in one process. `refused.rs` measures the memory of its process;
//! `process.rs` is about the environment of its process, and forks.

mod common;

mod batches;
mod codes;
mod devices;
mod events;
mod figures;
mod meshes;
mod misuse;
mod names;
mod oracle;
mod programs;
mod raw;
mod residency;
mod residency_oracle;
mod without_waiting;
