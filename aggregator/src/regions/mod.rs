//! What unmodified tt-metal publishes about its memory, for processes that do not report by themselves.

mod told;
mod watch;

pub(crate) use watch::RegionWatch;
