//! The library that is loaded into jobs, and what a real tt-metal says where one is installed.

use std::path::PathBuf;
use std::process::Command;

use crate::common::{SMI, smi};
use tt_shm_tests::{Metal, Space};

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
    let Some(metal) = Metal::find() else { return };
    let space = Space::new();
    let (python, script) = metal.python("truth.py");
    let mut truth: Command = space.command(python.to_str().unwrap());
    truth.arg(script).args([SMI, "n150", "programs", "cores", "walk"]);
    metal.prepare(&mut truth, metal.machine("n150"));
    // Without tt-metal's own region, which would stay in /dev/shm.
    truth.env("TT_METAL_SHM_TRACKING_DISABLED", "1").env("TT_SHM_TAP_CHECK_EVERY", "1");
    let output = truth.env("LD_PRELOAD", library(&space)).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains(" comparisons, 0 different"), "{said}");
}
