//! Tests of the writer that may run beside each other in one process. `refused.rs` measures the memory of its process.

mod common;

mod devices;
mod events;
mod figures;
mod meshes;
mod misuse;
mod names;
mod oracle;
mod programs;
mod residency;
mod residency_oracle;
