//! Pictures of the views of one device.

mod common;

use common::views::{Screen, disputed_listing, history, listing};
use tt_shm_reader::TableSnapshot;
use tt_smi::model::Model;
use tt_smi::screen::{More, Palette, Signs, Theme};
use tt_smi::source::Origin;

const SIZES: [(u16, u16); 3] = [(60, 15), (80, 24), (200, 50)];

fn at_all_sizes(name: &str, keys: &str, more: impl Fn(&TableSnapshot) -> More) {
    for (width, height) in SIZES {
        let snapshot = common::views::snapshot(4);
        let more = more(&snapshot);
        let picture = Screen::new(width, height).show(snapshot, more, keys);
        common::assert_expected(&format!("{name}-{width}x{height}.txt"), &picture);
    }
}

#[test]
fn detail() {
    at_all_sizes("detail", "1", |_| More::None);
}

#[test]
fn detail_of_a_device_of_which_little_is_known() {
    let picture = Screen::new(80, 24).show(common::snapshot(0), More::None, "1");
    common::assert_expected("detail-unknown-80x24.txt", &picture);
}

#[test]
fn detail_scrolled_and_in_the_processes() {
    let down = Screen::new(60, 15).show(common::views::snapshot(4), More::None, "1G");
    let tab = Screen::new(60, 15).show(common::views::snapshot(4), More::None, "1\t");
    common::assert_expected("detail-keys-60x15.txt", &(down + &tab));
}

#[test]
fn telemetry() {
    at_all_sizes("telemetry", "3", |_| More::None);
}

#[test]
fn charts() {
    at_all_sizes("charts", "2", |snapshot| More::History(history(snapshot.devices.len())));
}

#[test]
fn charts_with_a_cursor_zoomed() {
    // Five leaps of ten columns to the left, then closer.
    let picture = Screen::new(80, 24).show(common::snapshot(1), More::History(history(2)), "2kkzz<");
    common::assert_expected("charts-cursor-80x24.txt", &picture);
}

#[test]
fn charts_in_other_signs() {
    for (name, signs) in [("braille", Signs::Braille), ("blocks", Signs::Blocks), ("ascii", Signs::Ascii)] {
        let screen = Screen::new(80, 24).with(Theme { palette: Palette::Safe, signs });
        let picture = screen.show(common::snapshot(1), More::History(history(2)), "2");
        common::assert_expected(&format!("charts-{name}-80x24.txt"), &picture);
    }
}

#[test]
fn charts_of_all_devices() {
    let few = Screen::new(80, 24).show(common::snapshot(3), More::History(history(4)), "2\n");
    common::assert_expected("charts-grid-80x24.txt", &few);
    let many = Screen::new(200, 50).show(common::snapshot(31), More::History(history(32)), "2\np");
    common::assert_expected("charts-grid-32-devices.txt", &many);
}

#[test]
fn charts_without_capacity_or_history() {
    let unknown = Screen::new(60, 15).show(common::snapshot(0), More::History(history(1)), "2");
    let nothing = Screen::new(60, 15).show(common::snapshot(0), More::History(history(0)), "2");
    common::assert_expected("charts-unknown-60x15.txt", &(unknown + &nothing));
}

#[test]
fn map() {
    at_all_sizes("map", "7", |_| More::Allocations(listing().into()));
}

#[test]
fn map_of_l1_with_a_cursor() {
    let picture =
        Screen::new(80, 24).show(common::snapshot(1), More::Allocations(listing().into()), "7\t>jjj>>");
    common::assert_expected("map-l1-80x24.txt", &picture);
}

#[test]
fn map_of_what_is_in_dispute_or_unknown() {
    let disputed = More::Allocations(disputed_listing().into());
    let disputed = Screen::new(80, 24).show(common::snapshot(1), disputed, "7>jjjjjjjj>>>>>>>>");
    let nothing = More::Allocations(Default::default());
    let nothing = Screen::new(60, 15).show(common::snapshot(1), nothing, "7");
    common::assert_expected("map-disputed-80x24.txt", &(disputed + &nothing));
}

/// What each view is shown with.
fn with_data(view: &str, devices: usize) -> More {
    match view {
        "2" => More::History(history(devices)),
        "7" => More::Allocations(disputed_listing().into()),
        _ => More::None,
    }
}

#[test]
fn any_size_is_drawn() {
    for view in ["1", "2", "3", "7"] {
        for (width, height) in [(1, 1), (3, 4), (10, 3), (20, 50), (45, 9), (200, 5), (61, 16)] {
            for devices in [0, 31] {
                for keys in ["", "\tjG", "\n<<z>Gg", "m"] {
                    let snapshot = common::snapshot(devices);
                    let more = with_data(view, devices as usize + 1);
                    Screen::new(width, height).show(snapshot, more, &format!("{view}{keys}"));
                }
            }
        }
    }
}

#[test]
fn no_device_is_said_so() {
    for view in ["1", "2", "3", "7"] {
        let mut snapshot = common::snapshot(0);
        snapshot.devices.clear();
        let picture = Screen::new(80, 24).show(snapshot, with_data(view, 0), &format!("{view}\t\njz<"));
        assert!(picture.contains("No device"), "{view}: {picture}");
    }
}

#[test]
fn a_stale_aggregator_is_said_so_in_every_view() {
    for view in ["1", "2", "3", "7"] {
        let origin = Origin::Table { pid: 77, age_ns: 9_000_000_000 };
        let model = Model { origin, ..common::model(common::snapshot(1)) };
        let picture = Screen::new(80, 24).show_model(model, with_data(view, 2), view);
        assert!(picture.contains("aggregator 77, 9.0s old"), "{view}: {picture}");
    }
}

#[test]
fn a_frozen_screen_says_what_it_did_not_read() {
    for view in ["2", "5", "6", "7", "8"] {
        let picture = Screen::new(80, 24).show(common::snapshot(1), More::None, &format!("0f{view}"));
        assert!(picture.contains("frozen before") && picture.contains("f goes on"), "{view}:\n{picture}");
    }
}
