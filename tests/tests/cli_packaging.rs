//! The Debian package, as far as it can be checked without building it: what its settings name is there, and what its
//! scripts and its unit name is in it.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What cargo-deb is told.
fn settings() -> Value {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(root());
    let output = cargo.output().unwrap();
    let all: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let packages = all["packages"].as_array().unwrap();
    let tool = packages.iter().find(|package| package["name"] == "tt-smi").unwrap();
    tool["metadata"]["deb"].clone()
}

/// Source and place of each file of the package.
fn assets() -> Vec<(String, String)> {
    let part = |asset: &Value, index: usize| asset[index].as_str().unwrap().to_owned();
    let assets = settings()["assets"].as_array().unwrap().clone();
    assets.iter().map(|asset| (part(asset, 0), part(asset, 1))).collect()
}

#[test]
fn every_file_of_the_package_comes_from_somewhere() {
    // What the script makes, with its loop over both names written out.
    let made = text("packaging/build-deb");
    let made = ["tt-smi", "tt-smi-mem"].map(|name| made.replace("$name", name)).concat();
    for (source, place) in assets() {
        let is_there = match source.strip_prefix("target/release/") {
            Some("tt-smi") => made.contains("cargo build --release"),
            Some(file) => made.contains(&format!("> \"$release/{file}\"")),
            None => root().join("tt-smi").join(&source).is_file(),
        };
        assert!(is_there, "nobody makes {source}");
        // Not what the official tool may have.
        let name = Path::new(&place).file_name().unwrap().to_str().unwrap();
        assert!(place.starts_with("usr/") && (place.contains("tt-smi-mem")), "{place}");
        assert!(!(place.starts_with("usr/bin/") && name == "tt-smi"), "{place}");
    }
    let license = settings()["license-file"][0].as_str().unwrap().to_owned();
    assert!(root().join("tt-smi").join(license).is_file());
    assert!(!settings()["maintainer"].as_str().unwrap().contains("example"));
}

#[test]
fn the_alternatives_lead_into_the_package() {
    let script = text("packaging/debian/postinst");
    let places: Vec<String> = assets().into_iter().map(|(_, place)| format!("/{place}")).collect();
    let targets: Vec<&str> =
        script.split_ascii_whitespace().filter(|word| word.contains("/tt-smi-mem")).collect();
    assert_eq!(targets.len(), 5, "the program, its page, three completions: {targets:?}");
    for target in targets {
        assert!(places.iter().any(|place| place == target), "{target} is not in the package");
    }
}

#[test]
fn scripts_are_shell() {
    for script in ["packaging/build-deb", "packaging/debian/postinst", "packaging/debian/prerm"] {
        let output = Command::new("sh").arg("-n").arg(root().join(script)).output().unwrap();
        assert!(output.status.success(), "{script}: {output:?}");
        assert!(script.ends_with("build-deb") || text(script).contains("\n#DEBHELPER#\n"), "{script}");
    }
}

#[test]
fn the_units_start_what_the_package_installs() {
    let units = settings()["systemd-units"].as_array().unwrap().clone();
    assert_eq!(units.len(), 2);
    for unit in units {
        check_unit(unit["unit-name"].as_str().unwrap());
        assert_eq!((&unit["enable"], &unit["start"]), (&Value::Bool(false), &Value::Bool(false)));
    }
}

fn check_unit(name: &str) {
    let unit = text(&format!("packaging/{name}.service"));
    let program = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/")?.split(' ').next()).unwrap();
    assert!(assets().iter().any(|(_, place)| place == program), "{program} is not in the package");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(format!("{name}.service"));
    // The program is not installed here.
    std::fs::write(&file, unit.replace(&format!("/{program}"), "/bin/true")).unwrap();
    match Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&file).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let about = said.lines().filter(|line| line.contains(name)).collect::<Vec<_>>();
            assert!(about.is_empty(), "{about:?}");
        }
        Err(error) => eprintln!("SKIPPED: systemd-analyze: {error}"),
    }
}
