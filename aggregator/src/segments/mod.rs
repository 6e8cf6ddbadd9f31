//! The way in: files are found, opened or refused, followed, and buried when their process has ended.

pub(crate) mod attach;
pub(crate) mod clock;
pub(crate) mod discover;
pub(crate) mod follower;
pub(crate) mod liveness;
pub(crate) mod readback;
pub(crate) mod reap;
pub(crate) mod unseen;
