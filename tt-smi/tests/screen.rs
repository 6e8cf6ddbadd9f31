//! Pictures of every view in unusual circumstances, and of the overview.

use crate::common;
use crate::common::lists::{allocations, items, news, programs};
use crate::common::session::{SIZES, Session, USUAL_SIZE};
use crate::common::views::{cores, history};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tt_shm_reader::TableSnapshot;
use tt_smi::model::Model;
use tt_smi::model::Origin;
use tt_smi::screen::{Message, More, View};

fn overview(snapshot: TableSnapshot, size: (u16, u16)) -> String {
    Session::new(View::Overview, size).sees(common::model(snapshot), More::None).picture()
}

/// Four devices, one of which little is known and too much is used of; a process that is degraded, one with a
/// hostile name, one that has ended; a file that was refused.
#[test]
fn the_overview() {
    for (width, height) in SIZES.into_iter().chain([(120, 40), (80, 26)]) {
        let picture = overview(common::snapshot(4), (width, height));
        common::assert_expected(&format!("overview-{width}x{height}"), &picture);
    }
}

/// Whatever the width, of the selected one.
#[test]
fn the_overview_tells_which_device_it_is_and_what_the_driver_says_of_it() {
    let wanted = ["n300", "wormhole_b0", "°C", " W", "MHz"];
    for (devices, size) in [(1, (80, 24)), (4, (80, 26)), (4, (80, 40)), (4, (100, 40)), (4, (200, 50))] {
        let session = Session::new(View::Overview, size);
        let mut session = session.sees(common::model(common::snapshot(devices)), More::None);
        // The row of devices that look alike opens.
        if devices > 1 {
            session.press("\n_");
        }
        let line = session.line(&format!("0000:{:02x}:00.0", 0x81 + u64::from(devices > 1)));
        assert!(wanted.iter().all(|word| line.contains(word)), "{size:?}: {line}");
        assert_eq!(line.contains("peak 4.0 GiB, 61.0 MiB"), size.0 > 80, "{size:?}: {line}");
    }
}

#[test]
fn many_devices_scroll() {
    let session = Session::new(View::Overview, (80, 24));
    let mut session = session.sees(common::model(common::snapshot(31)), More::None);
    assert!(session.picture().contains("\n 0-30 x31 "), "they look alike:\n{}", session.picture());
    session.press("\n");
    assert!(!session.picture().contains("\n!31 "), "there is no room for all");
    assert!(session.picture().contains("more"), "{}", session.picture());
    session.press("G");
    assert!(session.picture().contains("\n!31 "), "the last one is in sight:\n{}", session.picture());
}

/// What a view is shown with besides, for so many devices.
fn more(view: View, devices: usize) -> More {
    let nothing = devices == 0;
    match view {
        View::Charts => More::History(history(devices).into()),
        View::Allocations | View::Map => allocations(if nothing { Vec::new() } else { items() }),
        View::Events => news(1, Vec::new()),
        View::Cores if nothing => More::Cores(Default::default()),
        View::Cores => More::Cores(cores(devices).into()),
        View::Programs if nothing => More::Programs(Default::default()),
        View::Programs => More::Programs(programs(0).into()),
        _ => More::None,
    }
}

fn no_devices() -> Model {
    let mut snapshot = common::snapshot(0);
    snapshot.devices.clear();
    snapshot.processes.clear();
    snapshot.notices.clear();
    Model { reclaimed: Vec::new(), ..common::model(snapshot) }
}

fn stale() -> Model {
    let origin = Origin::Table { pid: 77, age_ns: 42_000_000_000 };
    Model { origin, ..common::model(common::snapshot(2)) }
}

/// A name, and what there is to see.
type Case = (&'static str, fn() -> Model);

/// One picture for each view and case. Many devices are laid out differently at each size, but only by the overview.
#[test]
fn every_view_in_unusual_circumstances() {
    let cases: [Case; 4] = [
        ("no-devices", no_devices),
        // The one device has no capacity, no board and too much in use.
        ("unknown-capacity", || common::model(common::snapshot(0))),
        ("32-devices", || common::model(common::snapshot(31))),
        ("stale-aggregator", stale),
    ];
    for view in View::ALL {
        for (case, model) in cases {
            let picture = |size: &(u16, u16)| {
                let model = model();
                let more = more(view, model.devices.len());
                Session::new(view, *size).sees(model, more).picture()
            };
            let sizes =
                if (view, case) == (View::Overview, "32-devices") { &SIZES[..] } else { &[USUAL_SIZE] };
            let pictures: String = sizes.iter().map(picture).collect();
            common::assert_expected(&format!("{}-{case}", view.name()), &pictures);
        }
    }
}

#[test]
fn any_size_is_drawn() {
    for (width, height) in [(1, 1), (10, 3), (60, 15), (20, 50), (200, 5)] {
        for devices in [0, 1, 100] {
            overview(common::snapshot(devices), (width, height));
        }
    }
}

#[test]
fn ctrl_c_quits_whatever_is_open() {
    for keys in ["", "?", "4s", "5/"] {
        let session = Session::new(View::Overview, (80, 24));
        let mut session = session.sees(common::model(common::snapshot(1)), More::None).types(keys);
        assert!(!session.state.is_over());
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        session.state.update(Message::Key(control_c));
        assert!(session.state.is_over(), "after {keys:?}");
    }
}
