//! The merge: events of all segments, in the order of their times, change the model.

pub(crate) mod catch_up;
pub(crate) mod fold;
#[cfg(test)]
mod fold_tests;
pub(crate) mod queue;
pub(crate) mod streams;
