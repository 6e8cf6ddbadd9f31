//! Programs in C and C++ that use the library as hosts do, and check what they see themselves.

use crate::compile::{Language, run_with_all_compilers};

#[test]
fn every_call_of_the_writer_is_read_back() {
    run_with_all_compilers(Language::C, "writer.c", &[]);
}

#[test]
fn misuse_is_refused() {
    run_with_all_compilers(Language::C, "misuse.c", &[]);
}

#[test]
fn threads_lose_nothing() {
    run_with_all_compilers(Language::C, "threads.c", &[]);
}

#[test]
fn a_forked_child_reports_for_itself() {
    // What a child finds behind its parent's lock it never touches, and neither frees: that is no leak.
    let options = [("ASAN_OPTIONS", "abort_on_error=1:detect_leaks=0")];
    run_with_all_compilers(Language::C, "fork.c", &options);
}

#[test]
fn calls_while_the_process_ends_do_no_harm() {
    run_with_all_compilers(Language::C, "atexit.c", &[("TT_ALLOC_TRACKING_ENABLED", "1")]);
}

#[test]
fn the_types_of_cpp_end_with_what_they_hold() {
    run_with_all_compilers(Language::Cpp, "raii.cpp", &[]);
}

#[test]
fn the_figures_of_the_proof_of_concept_come_back() {
    run_with_all_compilers(Language::Cpp, "client.cpp", &[("TT_ALLOC_TRACKING_ENABLED", "1")]);
}

#[test]
fn the_client_of_the_proof_of_concept_is_off_unless_it_is_switched_on() {
    run_with_all_compilers(Language::Cpp, "client.cpp", &[("TT_ALLOC_TRACKING_ENABLED", "yes")]);
}
