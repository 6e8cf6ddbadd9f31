//! A soak: real writers, an aggregator and readers, killed, stopped and restarted at random, and compared
//! exactly with what each writer privately noted.
//!
//! A writer's calls follow from its seed ([`mix`]), so its truth is how far each of its threads came: a thread
//! notes each call before and after it makes it, in a file that nobody of the monitor reads and that outlives
//! kill -9 ([`notes`]). The soak repeats the same calls on a model that shares no code with the product
//! ([`ledger`], [`replay`]). A thread has at most one call in flight, so what is found must be the state before
//! or after it; [`compare`] accepts exactly the combinations that the threads' calls allow.
//!
//! With `--judge` writers log the stamp of every event instead, and every claim that is published is judged: see
//! [`judge`].

pub mod compare;
pub mod evidence;
pub mod found;
pub mod judge;
pub mod ledger;
pub mod mix;
pub mod notes;
pub mod options;
pub mod processes;
pub mod reader;
pub mod replay;
pub mod run;
pub mod snapshot;
pub mod table;
pub mod tally;
pub mod writer;
