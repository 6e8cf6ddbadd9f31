//! The examples of the documents, as hosts would compile them.

use crate::compile::{Language, Link, Place, has, package, succeed};

const EMBEDDING: &str = "docs/embedding.md";

/// The first example in a language: what lies between its fences.
fn example(language: &str) -> String {
    let document = std::fs::read_to_string(package().join("..").join(EMBEDDING)).unwrap();
    let (_, rest) = document.split_once(&format!("\n```{language}\n")).expect("there is an example");
    rest.split_once("\n```").unwrap().0.to_owned() + "\n"
}

fn runs(language: Language, fence: &str, name: &str, expected: &str) {
    let text = example(fence);
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    assert!(lines <= 15, "a quick start of {lines} lines");
    for compiler in language.compilers() {
        if !has(compiler, EMBEDDING) {
            continue;
        }
        let place = Place::new();
        let source = place.folder.path().join(name);
        std::fs::write(&source, &text).unwrap();
        let program = place.compile(compiler, language, &source, Link::Shared, &[]);
        let enabled = succeed(place.command(&program).env("TT_ALLOC_TRACKING_ENABLED", "1"));
        assert_eq!(String::from_utf8_lossy(&enabled.stdout), expected);
        let disabled = succeed(&mut place.command(&program));
        assert_eq!(String::from_utf8_lossy(&disabled.stdout), "");
        assert!(place.files().is_empty());
    }
}

#[test]
fn the_quick_start_of_c_runs() {
    runs(Language::C, "c", "host.c", "4096 bytes, at most 4096\n");
}

#[test]
fn the_quick_start_of_cpp_runs() {
    runs(Language::Cpp, "cpp", "host.cpp", "4096 bytes of weights\n");
}
