//! The tests of this package, as one program.

mod header;
