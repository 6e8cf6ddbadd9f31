//! The merge: the events of all segments change the model in the order of their times.

pub(crate) mod catch_up;
pub(crate) mod fold;
pub(crate) mod fold_batch;
#[cfg(test)]
mod fold_tests;
pub(crate) mod queue;
pub(crate) mod streams;
