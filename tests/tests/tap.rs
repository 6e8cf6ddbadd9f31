//! The library that is loaded into jobs, and what a real tt-metal says where one is installed.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use crate::common::{SMI, smi};
use tt_shm_tests::Space;

/// The library as `tt-smi env` puts it in place.
fn library(space: &Space) -> PathBuf {
    let text = smi(space, &["env", "--format", "systemd"]);
    let path = text.split("LD_PRELOAD=").nth(1).and_then(|rest| rest.split(['"', ':']).next());
    path.unwrap_or_else(|| panic!("no library in {text}")).into()
}

/// tt-metal's wheels need glibc 2.34, and a library that needs more could not be loaded where they are.
#[test]
fn the_library_needs_nothing_newer_than_glibc_2_34() {
    let bytes = std::fs::read(library(&Space::new())).unwrap();
    const MARK: &[u8] = b"GLIBC_2.";
    let places = bytes.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    let minor = |(place, _): (usize, &[u8])| -> Option<u32> {
        let digits = bytes[place + MARK.len()..].iter().take_while(|byte| byte.is_ascii_digit());
        String::from_utf8(digits.copied().collect()).ok()?.parse().ok()
    };
    let needed: Vec<u32> = places.filter_map(minor).collect();
    assert!(needed.iter().any(|minor| *minor >= 4), "no versions were found: {needed:?}");
    assert!(needed.iter().all(|minor| *minor <= 34), "{needed:?}");
}

/// Where `.ci/tt-metal` has made an environment, a short walk through it; elsewhere a line that says that there was none.
#[test]
fn what_is_shown_is_what_tt_metal_says_where_there_is_one() {
    let home = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = home("TT_METAL_MOCK").or_else(|| {
        let cache = home("XDG_CACHE_HOME").or_else(|| Some(home("HOME")?.join(".cache")))?;
        Some(cache.join("tt-shm/tt-metal"))
    });
    let made = cache.map(|cache| cache.join("0.81.1")).filter(|made| made.join("compiler-version").exists());
    let Some(made) = made else {
        // Not by a macro: the test harness would keep it to itself.
        let _ = writeln!(
            std::io::stderr(),
            "tt-metal: not compared here, since .ci/tt-metal has made no environment (needs Python 3.10 or 3.12)"
        );
        return;
    };
    let space = Space::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../tap/mock/truth.py");
    let mut truth: Command = space.command(made.join("venv/bin/python").to_str().unwrap());
    truth.args([script, SMI, "n150", "programs", "walk"]).current_dir(&made);
    let version = std::fs::read_to_string(made.join("compiler-version")).unwrap();
    truth.env("KERNEL_COMPILER_VERSION", version.trim()).env("KERNEL_OBJECT", made.join("kernel.o"));
    truth.env("TT_METAL_RUNTIME_ROOT", made.join("root")).env("TT_METAL_CACHE", made.join("cache"));
    truth.env("TT_METAL_MOCK_CLUSTER_DESC_PATH", made.join("machines/n150.yaml"));
    truth.env("TT_METAL_LOGGER_LEVEL", "fatal").env("LOGURU_LEVEL", "ERROR");
    // Without tt-metal's own region, which would stay in /dev/shm.
    truth.env("TT_METAL_SHM_TRACKING_DISABLED", "1").env("TT_SHM_TAP_CHECK_EVERY", "1");
    let output = truth.env("LD_PRELOAD", library(&space)).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains(" comparisons, 0 different"), "{said}");
}
