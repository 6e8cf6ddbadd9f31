//! Programs in C and C++ that use the library as hosts do, and check what they see themselves.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use tt_shm_aggregator::{DaemonConfig, Log, run_daemon};
use tt_shm_os::Namespace;

use crate::compile::{Language, Link, Place, has, package, run_with_all_compilers, succeed};

#[test]
fn every_call_of_the_writer_is_read_back() {
    run_with_all_compilers(Language::C, "writer.c", &[&[]]);
}

#[test]
fn misuse_is_refused() {
    run_with_all_compilers(Language::C, "misuse.c", &[&[]]);
}

#[test]
fn threads_lose_nothing() {
    run_with_all_compilers(Language::C, "threads.c", &[&[]]);
}

#[test]
fn a_forked_child_reports_for_itself() {
    // What a child finds behind its parent's lock it never touches, and neither frees: that is no leak.
    let options = [("ASAN_OPTIONS", "abort_on_error=1:detect_leaks=0")];
    run_with_all_compilers(Language::C, "fork.c", &[&options]);
}

#[test]
fn an_exclusive_tracker_is_for_one_thread() {
    // As for the other forked children.
    let options = [("ASAN_OPTIONS", "abort_on_error=1:detect_leaks=0")];
    run_with_all_compilers(Language::C, "exclusive.c", &[&options]);
}

#[test]
fn calls_while_the_process_ends_do_no_harm() {
    run_with_all_compilers(Language::C, "atexit.c", &[&[("TT_ALLOC_TRACKING_ENABLED", "1")]]);
}

#[test]
fn the_types_of_cpp_end_with_what_they_hold() {
    run_with_all_compilers(Language::Cpp, "raii.cpp", &[&[]]);
}

#[test]
fn the_figures_of_the_proof_of_concept_come_back() {
    let environments = ["1", "yes", ""].map(|value| [("TT_ALLOC_TRACKING_ENABLED", value)]);
    // On, and twice off.
    run_with_all_compilers(Language::Cpp, "client.cpp", &environments.each_ref().map(|one| &one[..]));
}

#[test]
fn the_calls_for_tt_metal_are_those_of_its_allocator() {
    let environments = ["1", "0"].map(|value| [("TT_ALLOC_TRACKING_ENABLED", value)]);
    run_with_all_compilers(Language::Cpp, "metal.cpp", &environments.each_ref().map(|one| &one[..]));
}

#[test]
fn all_processes_are_read_without_an_aggregator() {
    run_with_all_compilers(Language::Cpp, "table.cpp", &[&[]]);
}

/// With an aggregator of this test's own.
#[test]
fn all_processes_are_read_from_a_table() {
    let [compiler, _] = Language::Cpp.compilers();
    if !has(compiler, "table.cpp") {
        return;
    }
    let place = Place::new();
    let source = package().join("tests/programs/table.cpp");
    let program = place.compile(compiler, Language::Cpp, &source, Link::Shared, &[]);
    let config = DaemonConfig {
        namespace: Namespace::new(&place.namespace).unwrap(),
        stats_interval: None,
        driver: None,
        regions: None,
        log: Log::default(),
    };
    let stop = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let daemon = threads.spawn(|| run_daemon(config, &stop));
        let output = place.command(program).arg("table").output();
        stop.store(true, Ordering::Relaxed);
        daemon.join().unwrap().unwrap();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    });
}

#[test]
fn a_tap_stands_back_when_the_host_reports_by_itself() {
    let [compiler, _] = Language::C.compilers();
    if !has(compiler, "tap.c") {
        return;
    }
    let place = Place::new();
    let source = package().join("tests/programs/tap.c");
    let program = place.compile(compiler, Language::C, &source, Link::Shared, &["-ldl"]);
    let (text, tap) = (place.folder.path().join("fake.c"), place.folder.path().join("of-any-name.so"));
    std::fs::write(&text, "int ended;\nint tt_shm_tap_detach(void) { return ++ended, 1; }\n").unwrap();
    let mut fake = Command::new(compiler);
    fake.args(["-shared", "-fPIC", "-Wl,-soname,libtt_shm_tap.so"]).arg(text).arg("-o").arg(&tap);
    succeed(&mut fake);
    succeed(place.command(program).arg(tap).env("TT_ALLOC_TRACKING_ENABLED", "1"));
}
