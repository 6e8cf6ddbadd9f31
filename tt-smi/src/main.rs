//! tt-smi.
fn main() {}
