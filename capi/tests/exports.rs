//! What the shared library shows to others.

use std::process::Command;

use crate::compile::{has, libraries, package, succeed};

/// The names of defined symbols.
fn defined(options: &[&str]) -> Vec<String> {
    let output =
        succeed(Command::new("nm").args(options).arg("--defined-only").arg(libraries().join("libtt_shm.so")));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect()
}

#[test]
fn only_what_is_in_the_header_is_exported() {
    if !has("nm", "what the library exports") {
        return;
    }
    let exported = defined(&["-D"]);
    let others: Vec<&String> = exported.iter().filter(|name| !name.starts_with("tt_shm_")).collect();
    assert!(others.is_empty(), "also exported: {others:?}");
    let header = std::fs::read_to_string(package().join("include/tt_shm.h")).unwrap();
    let declared = |name: &str| header.contains(&format!("{name}("));
    let missing: Vec<&String> = exported.iter().filter(|name| !declared(name)).collect();
    assert!(missing.is_empty() && exported.len() > 60, "not in the header: {missing:?}");
}
