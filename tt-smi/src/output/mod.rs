//! What commands print: one file per format.

pub mod columns;
pub mod detail;
mod figures_json;
pub mod file;
pub mod json;
pub mod paint;
pub mod snapshot_json;
pub mod table;
pub mod units;
