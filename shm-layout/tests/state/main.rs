//! Reading back a process's state: after a kill at any store, between any two loads, while a writer runs at
//! full speed, and from memory that makes no sense.

mod checkpoint;
mod hostile;
mod interleaved;
mod killed;
mod support;
mod threads;
