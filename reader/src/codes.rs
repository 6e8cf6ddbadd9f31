//! Stable numbers of errors, for callers in other languages and for logs. A number is never used for
//! something else.
//!
//! Those of the writer are below 64.

/// The file or table does not exist: its process may have ended.
pub const MISSING: u32 = 64;
/// The caller may not read it.
pub const NOT_PERMITTED: u32 = 65;
/// It is not a segment or table, or one that the monitor would not have made.
pub const REFUSED: u32 = 66;
/// Its layout is not one that this version can read.
pub const LAYOUT: u32 = 67;
/// The process was faster than the reader in every attempt: try again.
pub const BUSY: u32 = 68;
/// What it holds is impossible, or lost: its figures are not to be used.
pub const BROKEN: u32 = 69;
/// A system call failed.
pub const SYSTEM: u32 = 70;
