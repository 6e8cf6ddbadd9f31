//! The tests of this package, as one program.

mod compile;
mod documents;
mod exports;
mod header;
mod installed;
mod programs;
mod rows;
