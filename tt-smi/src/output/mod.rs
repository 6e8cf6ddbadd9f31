//! What commands print: one file per format.

pub mod columns;
pub mod csv;
pub mod detail;
mod figures_json;
pub(crate) mod identity_json;
pub mod json;
pub mod paint;
pub mod prometheus;
pub(crate) mod shortage_json;
pub mod snapshot_json;
pub mod table;
