//! What is the same on the devices of a mesh is one line: allocations, events, programs, and what their keys do.

use crate::common;
use std::sync::Arc;

use crate::common::lists::{
    allocations, events, items, mesh_events, mesh_items, news, processes, programs, uneven_programs,
};
use crate::common::session::Session;
use tt_smi::screen::{More, View};

/// All sizes that the views are looked at in.
const SIZES: [(u16, u16); 4] = [(60, 15), (80, 24), (120, 40), (200, 50)];

fn mesh_allocations(size: (u16, u16)) -> Session {
    Session::new(View::Allocations, size).sees(processes(), allocations(mesh_items()))
}

fn mesh_log(size: (u16, u16)) -> Session {
    Session::new(View::Events, size).sees(processes(), news(1, mesh_events(0, 30)))
}

fn mesh_programs(size: (u16, u16)) -> Session {
    Session::new(View::Programs, size).sees(processes(), More::Programs(Arc::new(uneven_programs())))
}

/// A name, what there is to see, and what is pressed.
type Case = (&'static str, fn((u16, u16)) -> Session, &'static str);

const CASES: &[Case] = &[
    ("mesh-allocations", mesh_allocations, ""),
    ("mesh-allocation-open", mesh_allocations, "_\n"),
    ("mesh-allocations-unfolded", mesh_allocations, "x"),
    ("mesh-events", mesh_log, ""),
    ("mesh-event-open", mesh_log, "^^\n"),
    ("mesh-events-log", mesh_log, "w"),
    ("mesh-programs", mesh_programs, ""),
    ("mesh-program", mesh_programs, "\n"),
];

#[test]
fn pictures() {
    for (name, session, keys) in CASES {
        for (width, height) in SIZES {
            let picture = session((width, height)).types(keys).picture();
            common::assert_expected(&format!("{name}-{width}x{height}"), &picture);
        }
    }
}

#[test]
fn allocations_fold_and_unfold_and_sums_stay() {
    let session = mesh_allocations((120, 40));
    let head = session.line("live allocations");
    assert!(head.contains("41 live allocations, 900.0 MiB") && head.contains("folded to 13 lines"), "{head}");
    assert!(session.line("0-3 x4").contains("192.0 MiB"), "the total of a line: {}", session.line("0-3 x4"));
    let session = session.types("x");
    assert!(!session.picture().contains(" x4"), "{}", session.picture());
    session.line("41 live allocations, 900.0 MiB");
    let session = session.types("x/device=1\n");
    let head = session.line("live allocations");
    assert!(head.contains("10 of 41 live allocations, 224.0 MiB"), "{head}");
    assert!(!session.picture().contains(" x4"), "what is left out is no part of a line");
    let session = session.types("\x1b/device=0-1\n");
    session.line("0-1 x2");
}

#[test]
fn enter_opens_an_allocation_then_its_process() {
    let mut session = mesh_allocations((120, 40)).types("\n");
    session.line("on each of 4 devices, 192.0 MiB in all");
    session.line("4242 llama-3.1-8b");
    session.press("\n");
    session.line("Esc all processes");
}

#[test]
fn a_stopped_process_has_a_sign_in_each_list() {
    let stopped = |line: String| line.starts_with('=');
    let session = Session::new(View::Allocations, (120, 40)).sees(processes(), allocations(items()));
    assert!(stopped(session.line(" 6100 ")), "{}", session.line(" 6100 "));
    let mut of_worker = events(9);
    of_worker.iter_mut().for_each(|seen| seen.pid = 6100);
    let session = Session::new(View::Events, (120, 40)).sees(processes(), news(1, of_worker));
    assert!(stopped(session.line(" cb_alloc ")), "{}", session.line(" cb_alloc "));
    let mut listing = programs(0);
    listing.entries.iter_mut().for_each(|entry| (entry.pid, entry.identity) = (6100, 6100));
    let session =
        Session::new(View::Programs, (120, 40)).sees(processes(), More::Programs(Arc::new(listing)));
    assert!(stopped(session.line("matmul")), "{}", session.line("matmul"));
}

#[test]
fn events_of_a_mesh_are_one_line_in_columns_and_one_each_in_the_log() {
    let session = mesh_log((120, 40));
    assert_eq!(session.picture().matches("0-3 x4").count(), 30);
    let session = session.types("x");
    assert_eq!(session.picture().matches(" x4").count(), 0);
    let session = session.types("xw");
    session.line("Allocated 50331648 bytes of DRAM on device 3");
    let session = session.types("x");
    session.line("log lines are of one device each");
    let session = session.types("w/device=2\n");
    assert!(!session.picture().contains(" x4"), "only what is wanted: {}", session.picture());
}

#[test]
fn a_log_that_is_read_stays_in_place_while_it_grows_and_is_cut() {
    let mut session =
        Session::new(View::Events, (120, 20)).sees(processes(), news(1, mesh_events(0, 60_000)));
    session.press("^^^");
    session.line("PARKED, 3 newer, G follows");
    let lines = |session: &Session| {
        session
            .picture()
            .lines()
            .filter(|line| line.contains("0-3 x4"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let before = lines(&session);
    // More than the log keeps: the oldest are dropped.
    session.take(processes(), news(2, mesh_events(60_000, 1_000)));
    session.take(processes(), news(3, mesh_events(61_000, 9_000)));
    session.line("not shown: ");
    let now = lines(&session);
    assert_eq!(before[..before.len() - 1], now[..before.len() - 1], "in place");
    session.line("PARKED, 10k newer");
    session.press("G");
    session.line("following");
}

#[test]
fn programs_that_differ_on_a_device_are_told_apart() {
    let session = mesh_programs((120, 40));
    session.line("0-2 x3");
    let odd = session.picture().lines().filter(|line| line.contains("uneven")).count();
    assert_eq!(odd, 2, "{}", session.picture());
    session.line("CB ALLOC/DEV");
    let session = session.types("x");
    let each = session.picture().lines().filter(|line| line.contains("uneven")).count();
    assert_eq!(each, 4, "{}", session.picture());
}
