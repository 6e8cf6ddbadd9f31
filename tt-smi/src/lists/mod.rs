//! Lists read from segments, with their ids resolved: live allocations, programs, events. Commands print them, the
//! screen scrolls through them.

pub mod allocations;
mod bounds;
pub mod cores;
pub mod events;
pub mod extents;
pub(crate) mod fold;
pub mod groups;
pub mod programs;
pub mod suspects;
