//! What commands print: one file per format.

pub mod columns;
pub mod csv;
pub mod detail;
pub mod json;
pub mod paint;
pub mod prometheus;
pub mod snapshot_json;
pub mod table;
