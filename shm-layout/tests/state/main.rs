//! Reading a process's state back: after a kill at any store, between any two loads, beside a writer at
//! full speed, and from memory that makes no sense.

mod checkpoint;
mod hostile;
mod interleaved;
mod killed;
mod support;
mod threads;
