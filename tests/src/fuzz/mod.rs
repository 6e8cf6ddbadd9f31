//! What the fuzzer runs: each body takes any bytes, and must return.
//!
//! They are plain functions so that `cargo test` can replay the corpus without a fuzzer, and `fuzz/` adds nothing
//! but a loop around them.

mod aggregate;
mod http;
mod patch;
mod record;
mod region;
mod segment;
mod table;
mod text;

/// A body: any bytes, no panic, no hang.
pub type Body = fn(&[u8]);

/// Every body by the name of its fuzz target and its corpus.
pub const BODIES: [(&str, Body); 7] = [
    ("segment", segment::run),
    ("aggregate", aggregate::run),
    ("table", table::run),
    ("text", text::run),
    ("region", region::run),
    ("http", http::run),
    ("record", record::run),
];

/// Runs the body of a target.
pub fn run(target: &str, data: &[u8]) {
    let body = BODIES.iter().find(|(name, _)| *name == target);
    body.unwrap_or_else(|| panic!("no body {target}")).1(data);
}
