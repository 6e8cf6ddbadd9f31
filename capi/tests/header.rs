//! The header is written from the exported functions, and is checked in: whoever changes a function sees what that changes
//! for its callers.

use std::path::Path;

use cbindgen::{Builder, Config, DocumentationStyle, Language};

const ABOUT: &str = "\
/* tt_shm: reports the memory of Tenstorrent devices, and reads what processes report.
 *
 * Written by cbindgen from capi/src: `UPDATE_EXPECTED=1 cargo test -p tt-shm-capi header`. docs/embedding.md has examples.
 *
 * Results. Functions return 0 (TT_SHM_OK) or a positive TT_SHM_ERR_... number; none has two meanings, and none changes.
 * tt_shm_strerror() says what a number means, tt_shm_last_error() what the last failed call of the thread was about.
 * Errors of recording are counted where monitors see them, make no total wrong, and are no reason to stop.
 *
 * Handles are numbers that look like pointers. Null, closed handles and those of another kind are refused.
 *
 * Structs begin with `size`: set it to sizeof. All other fields may be zero. A library that is newer than the caller takes
 * what a shorter struct lacks as zero; one that is older refuses a longer struct unless what it does not know is zero, and
 * fills what it does not know with zeros. In an array all elements have the size of the first.
 *
 * Arrays that are filled: `capacity` says how many elements there is room for, and may be 0 (then the pointer may be null);
 * `total` is set to how many there are.
 *
 * Threads. Every function may be called by any thread at any time, also while another closes the handle, in functions that
 * run at exit, and in a forked child, which gets a segment of its own at its first call of a tracker. None may be called
 * in a signal handler, except with a handle of tt_shm_tracker_without_waiting(). A tracker that was opened with
 * TT_SHM_OPEN_EXCLUSIVE is for one thread, and refuses all others.
 *
 * SPDX-License-Identifier: Apache-2.0 */";

fn generated() -> String {
    let config = Config {
        header: Some(ABOUT.to_owned()),
        include_guard: Some("TT_SHM_H".to_owned()),
        language: Language::C,
        cpp_compat: true,
        documentation_style: DocumentationStyle::C99,
        line_length: 110,
        no_includes: true,
        sys_includes: ["stddef.h", "stdint.h"].map(String::from).to_vec(),
        usize_is_size_t: true,
        style: cbindgen::Style::Both,
        ..Config::default()
    };
    let mut text = Vec::new();
    let bindings = Builder::new().with_crate(env!("CARGO_MANIFEST_DIR")).with_config(config).generate();
    bindings.unwrap().write(&mut text);
    without_wrappers(&String::from_utf8(text).unwrap())
}

/// The types of `raw.rs` are pointers, and that is what C callers see.
fn without_wrappers(header: &str) -> String {
    let wrappers = ["In_", "Items_", "Out_", "OutStruct_", "OutStructs_", "OutItems_", "Handle_", "Text;"];
    let (mut lines, mut names): (Vec<&str>, Vec<(&str, &str)>) = (Vec::new(), Vec::new());
    for line in header.lines() {
        let typedef =
            line.strip_prefix("typedef ").and_then(|rest| rest.split_at_checked(rest.rfind('*')? + 1));
        match typedef.filter(|(_, name)| wrappers.iter().any(|wrapper| name.starts_with(wrapper))) {
            Some((pointer, name)) => {
                names.push((name.trim_end_matches(';'), pointer));
                // Its comment, and the empty line before that.
                while lines.pop_if(|line| line.starts_with("//")).is_some() {}
                lines.pop_if(|line| line.is_empty());
            }
            None => lines.push(line),
        }
    }
    let mut header = lines.join("\n") + "\n";
    // Longest first: no name is the beginning of another that is still there.
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    for (name, pointer) in names {
        header = header.replace(&format!("{name} "), pointer);
    }
    header
}

#[test]
fn wrappers_of_pointers_are_taken_out() {
    let header = "int a;\n\n// A struct.\ntypedef const struct s *In_s;\n\nint f(In_s x,\n      Text y);\n\ntypedef const char *Text;\n";
    assert_eq!(without_wrappers(header), "int a;\n\nint f(const struct s *x,\n      const char *y);\n");
}

#[test]
fn the_header_is_that_of_the_functions() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/tt_shm.h");
    let generated = generated();
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let wrapped = ["In_", "Items_", "Out_", "OutStruct", "OutItems", "Handle_", "Text "];
    assert!(!wrapped.iter().any(|name| generated.contains(name)), "a type of raw.rs is left");
    assert!(
        generated == expected,
        "include/tt_shm.h differs from the functions: write it anew by UPDATE_EXPECTED=1 cargo test -p tt-shm-capi header, \
         and look at what changes for callers"
    );
}
