//! The `tt-smi` program, for benchmarks of what a user runs.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The program to measure; else the one beside this benchmark, built if need be.
const PROGRAM_ENV: &str = "TT_SMI";
const PROGRAM: &str = "tt-smi";

/// Its path; `None` if there is none.
pub fn find() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(PROGRAM_ENV) {
        return Some(path.into());
    }
    // This is <target>/release/deps/start-<hash>.
    let here = std::env::current_exe().ok()?;
    let beside = here.parent()?.parent()?.join(PROGRAM);
    build();
    beside.exists().then_some(beside)
}

/// `cargo bench` builds only this package.
fn build() {
    let Some(cargo) = std::env::var_os("CARGO") else { return };
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    // If it fails, there may be one that was built before.
    let _ = Command::new(cargo)
        .args(["build", "--quiet", "--release", "-p", PROGRAM, "--manifest-path"])
        .arg(manifest)
        .status();
}
