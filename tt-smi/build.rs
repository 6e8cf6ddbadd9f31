//! Builds the tap, which the program carries inside itself: whoever has `tt-smi` has the library that `tt-smi run` loads.
//!
//! Cargo cannot depend on another package's shared library yet, so it is called for that one package, into a folder of
//! its own.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let variable = |name: &str| env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"));
    let out = PathBuf::from(variable("OUT_DIR"));
    let manifest = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let workspace = manifest.parent().expect("this package is in a folder of the workspace");
    for package in ["tap", "writer", "shm-layout", "shm-os"] {
        println!("cargo::rerun-if-changed=../{package}/src");
        println!("cargo::rerun-if-changed=../{package}/Cargo.toml");
    }
    println!("cargo::rerun-if-changed=../Cargo.lock");

    let (target, folder) = (variable("TARGET"), out.join("tap"));
    let mut cargo = Command::new(variable("CARGO"));
    cargo.current_dir(workspace).args(["build", "--quiet", "--release", "--package", "tt-shm-tap"]);
    cargo.arg("--target").arg(&target).arg("--target-dir").arg(&folder);
    cargo.args(["--config", "profile.release.strip = 'symbols'"]);
    // What the outer build was told, such as a sanitizer or a linter in the compiler's place, is not for a library that
    // is loaded into other people's programs.
    for of_outer_build in ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"]
    {
        cargo.env_remove(of_outer_build);
    }
    let status =
        cargo.status().unwrap_or_else(|error| panic!("cannot start cargo to build the tap: {error}"));
    assert!(status.success(), "the tap could not be built: see above");

    let library = folder.join(&target).join("release").join("libtt_shm_tap.so");
    copy(&library, &out.join("libtt_shm_tap.so"));
}

fn copy(from: &Path, to: &Path) {
    if let Err(error) = std::fs::copy(from, to) {
        panic!("cannot copy {} to {}: {error}", from.display(), to.display());
    }
}
