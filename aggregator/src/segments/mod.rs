//! The way in: segment files are found, opened or refused, followed, and reclaimed when their process has ended.

pub(crate) mod attach;
pub(crate) mod clock;
pub(crate) mod containers;
pub(crate) mod discover;
pub(crate) mod follower;
pub(crate) mod liveness;
pub(crate) mod readback;
pub(crate) mod reap;
pub(crate) mod recount;
pub(crate) mod unseen;
