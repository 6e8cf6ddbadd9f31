//! The way out: the model is published in the table, and taken over from an earlier table.

pub(crate) mod adopt;
pub(crate) mod file;
pub(crate) mod history;
pub(crate) mod lockfile;
pub(crate) mod place;
pub(crate) mod publish;
pub(crate) mod reset;
pub(crate) mod telemetry;
