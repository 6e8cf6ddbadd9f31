//! Tests of the reader that may run beside each other in one process. `race.rs` is for ThreadSanitizer.

mod common;

mod codes;
mod descriptors;
mod events;
mod examples;
mod holes;
mod lists;
mod live;
mod open;
mod rows;
mod span;
mod state;
mod table;
