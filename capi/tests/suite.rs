//! The tests of this package, as one program.

mod compile;
mod exports;
mod header;
mod programs;
