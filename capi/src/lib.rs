//! The C library: reports device memory, and reads what processes report.
//!
//! Its interface is `include/tt_shm.h`, which is written from the exported functions and their types by cbindgen (a test
//! compares them), and `include/tt_shm.hpp` for C++. What the calls do is what those of `tt-shm-writer` and
//! `tt-shm-reader` do; here is how they are reached from C:
//!
//! - `raw` turns pointers into values, and is the only place that follows one. Exported functions have its types as
//!   arguments and are themselves safe.
//! - `handle` gives out handles. They are numbers, not addresses, so that a closed or foreign one is refused and never
//!   followed.
//! - `exclusive` keeps all threads but one away from a tracker that has no lock.
//! - `objects` has what is read, by its handle.
//! - `code` has the numbers of errors and the text of the last one.
//! - `types` has the structs, which begin with their size.
//!
//! No panic crosses: it becomes `TT_SHM_ERR_PANIC`.

#![allow(non_camel_case_types, reason = "types have the names that they have in C")]

pub mod client;
pub mod code;
pub mod composition;
pub mod driver;
pub mod exclusive;
pub mod failures;
pub mod handle;
pub mod history;
pub mod notices;
pub mod objects;
mod raw;
pub mod regions;
pub mod rows;
pub mod segment;
pub mod source;
pub mod span;
pub mod table;
pub mod tap;
pub mod types;
pub mod writer;
