//! Pictures of the views of one device.

use crate::common;
use crate::common::session::{SIZES, Session};
use crate::common::views::{cores, disputed_listing, history, listing};
use tt_shm_reader::{TableSnapshot, bucket_flags};
use tt_smi::model::Model;
use tt_smi::model::Origin;
use tt_smi::screen::{More, Palette, Signs, Theme, View};

/// The view with this digit.
fn view_of(digit: &str) -> View {
    View::ALL[digit.parse::<usize>().unwrap()]
}

/// The first key is the digit of the view, which is there before the data come.
fn show(size: (u16, u16), snapshot: TableSnapshot, more: More, keys: &str) -> String {
    let (view, rest) = keys.split_at(1);
    Session::new(view_of(view), size).sees(common::model(snapshot), more).types(rest).picture()
}

fn at_all_sizes(name: &str, keys: &str, more: impl Fn(&TableSnapshot) -> More) {
    for (width, height) in SIZES {
        let snapshot = common::views::snapshot(4);
        let more = more(&snapshot);
        let picture = show((width, height), snapshot, more, keys);
        common::assert_expected(&format!("{name}-{width}x{height}"), &picture);
    }
}

#[test]
fn detail() {
    at_all_sizes("detail", "1", |_| More::None);
}

#[test]
fn detail_of_a_device_of_which_little_is_known() {
    let picture = show((80, 24), common::snapshot(0), More::None, "1");
    common::assert_expected("detail-unknown-80x24", &picture);
}

#[test]
fn detail_scrolled_and_in_the_processes() {
    let down = show((60, 15), common::views::snapshot(4), More::None, "1G");
    let tab = show((60, 15), common::views::snapshot(4), More::None, "1\t");
    common::assert_expected("detail-keys-60x15", &(down + &tab));
}

#[test]
fn telemetry() {
    at_all_sizes("telemetry", "3", |_| More::None);
}

#[test]
fn charts() {
    at_all_sizes("charts", "2", |snapshot| More::History(history(snapshot.devices.len()).into()));
}

#[test]
fn charts_with_a_cursor_zoomed() {
    // Five leaps of ten columns to the left, then closer.
    let picture = show((80, 24), common::snapshot(1), More::History(history(2).into()), "2kkzz←");
    common::assert_expected("charts-cursor-80x24", &picture);
}

#[test]
fn charts_in_other_signs() {
    for (name, signs) in [("braille", Signs::Braille), ("blocks", Signs::Blocks), ("ascii", Signs::Ascii)] {
        let session = Session::themed(View::Charts, (80, 24), Theme { palette: Palette::Safe, signs });
        let model = common::model(common::snapshot(1));
        let picture = session.sees(model, More::History(history(2).into())).picture();
        common::assert_expected(&format!("charts-{name}-80x24"), &picture);
    }
}

#[test]
fn charts_of_all_devices() {
    let few = show((80, 24), common::snapshot(3), More::History(history(4).into()), "2\n");
    common::assert_expected("charts-grid-80x24", &few);
    let many = show((200, 50), common::snapshot(31), More::History(history(32).into()), "2\np");
    common::assert_expected("charts-grid-32-devices", &many);
}

/// What was not followed as a whole is marked on the axis, in what the cursor reads, and on small graphs.
#[test]
fn charts_mark_what_is_not_exact() {
    let inexact = || {
        let mut history = history(2);
        for bucket in history.devices.iter_mut().flatten() {
            bucket.flags |= bucket_flags::INEXACT;
        }
        More::History(history.into())
    };
    let plain = show((80, 24), common::snapshot(1), More::History(history(2).into()), "2");
    assert!(!plain.contains("DRAM~") && !plain.contains("~~"), "{plain}");
    let picture = show((80, 24), common::snapshot(1), inexact(), "2");
    assert!(picture.contains("DRAM~") && picture.contains("L1~") && picture.contains("~~"), "{picture}");
    let cursor = show((80, 24), common::snapshot(1), inexact(), "2kkzz←");
    assert!(cursor.contains("DRAM~"), "{cursor}");
    let small = show((80, 24), common::snapshot(1), inexact(), "2\n");
    assert!(small.contains("n300 ~"), "{small}");
}

#[test]
fn charts_without_capacity_or_history() {
    let unknown = show((60, 15), common::snapshot(0), More::History(history(1).into()), "2");
    let nothing = show((60, 15), common::snapshot(0), More::History(history(0).into()), "2");
    common::assert_expected("charts-unknown-60x15", &(unknown + &nothing));
}

#[test]
fn map() {
    at_all_sizes("map", "7", |_| More::Allocations(listing().into()));
}

#[test]
fn map_of_l1_with_a_cursor() {
    let picture = show((80, 24), common::snapshot(1), More::Allocations(listing().into()), "7\t→jjj→→");
    common::assert_expected("map-l1-80x24", &picture);
}

#[test]
fn map_of_what_is_in_dispute_or_unknown() {
    let disputed = More::Allocations(disputed_listing().into());
    let disputed = show((80, 24), common::snapshot(1), disputed, "7→jjjjjjjj→→→→→→→→");
    let nothing = More::Allocations(Default::default());
    let nothing = show((60, 15), common::snapshot(1), nothing, "7");
    common::assert_expected("map-disputed-80x24", &(disputed + &nothing));
}

/// Without a number of channels, and with so many that what is there lies beyond.
#[test]
fn map_of_banks_of_unknown_or_wrong_size() {
    let map = |channels: Option<u64>, size, keys| {
        let mut snapshot = common::snapshot(1);
        let entry = &mut snapshot.devices[0].1.entry;
        match channels {
            Some(channels) => entry.dram_channels = channels,
            None => entry.known &= !tt_shm_reader::known::DRAM_CHANNELS,
        }
        show(size, snapshot, More::Allocations(listing().into()), keys)
    };
    let unknown = [(60, 15), (80, 24)].map(|size| map(None, size, "7"));
    let wrong = [(60, 15), (80, 24)].map(|size| map(Some(24), size, "7G"));
    common::assert_expected("map-size", &(unknown.concat() + &wrong.concat()));
    // The last 30 MiB before 1 GiB, and all that is between, are free: nothing is left out behind the last one.
    let known = map(Some(12), (80, 24), "7");
    assert!(known.contains("369.0 MiB of 1.0 GiB") && known.contains("largest 392.0 MiB"), "{known}");
    assert!(unknown[0].contains("size unknown") && unknown[0].contains("369.0 MiB of -"), "{}", unknown[0]);
    assert!(wrong[0].contains("beyond the end at 512.0 MiB"), "{}", wrong[0]);
    assert!(wrong[0].contains("trace, 32.0 MiB"), "it is drawn all the same: {}", wrong[0]);
    let zero = map(Some(0), (80, 24), "7");
    assert!(zero.contains("369.0 MiB of -"), "{zero}");
}

/// By process and by name; with the L1 of cores, of which only one program is resident.
#[test]
fn map_in_other_colours() {
    let map = || More::Map(disputed_listing().into(), cores(2).into());
    let size = (80, 24);
    let pictures = ["7b→", "7bb", "7\t→", "7\tG"].map(|keys| show(size, common::snapshot(1), map(), keys));
    common::assert_expected("map-colours-80x24", &pictures.concat());
    assert!(pictures[0].contains("by process") && pictures[0].contains("(5000)"), "{}", pictures[0]);
    assert!(pictures[1].contains("by name") && pictures[1].contains("kv_cache"), "{}", pictures[1]);
    assert!(pictures[2].contains("kernel-config ring"), "{}", pictures[2]);
}

#[test]
fn cores_of_a_device() {
    at_all_sizes("cores", "9", |_| More::Cores(cores(4).into()));
}

#[test]
fn cores_with_a_cursor() {
    let picture = show((80, 24), common::snapshot(1), More::Cores(cores(2).into()), "9gjj→→");
    common::assert_expected("cores-cursor-80x24", &picture);
    assert!(picture.contains("core 2,2:"), "{picture}");
    let small = show((60, 15), common::snapshot(1), More::Cores(cores(2).into()), "9gjj→→");
    assert!(small.contains("core 2,2:"), "{small}");
}

/// A grid that nobody reports, a device that nobody reports, and nothing read yet.
#[test]
fn cores_that_are_not_known() {
    let mut unknown = cores(1);
    let device = &mut unknown.devices[0];
    (device.grid_columns, device.grid_rows) = (None, None);
    device.cores.truncate(1);
    let first = device.runs_out_first.as_mut().unwrap();
    (first.x, first.y, first.count) = (None, None, Some(64));
    (device.cores[0].x, device.cores[0].y, device.cores[0].count) = (None, None, Some(64));
    let no_grid = show((80, 24), common::snapshot(1), More::Cores(unknown.into()), "9");
    let nobody = show((80, 24), common::snapshot(1), More::Cores(Default::default()), "9");
    let unread = show((60, 15), common::snapshot(1), More::None, "9");
    common::assert_expected("cores-unknown", &(no_grid + &nobody + &unread));
}

/// What each view is shown with.
fn with_data(view: &str, devices: usize) -> More {
    match view {
        "2" => More::History(history(devices).into()),
        "7" => More::Allocations(disputed_listing().into()),
        "9" => More::Cores(cores(devices).into()),
        _ => More::None,
    }
}

#[test]
fn any_size_is_drawn() {
    for view in ["1", "2", "3", "7", "9"] {
        for (width, height) in [(1, 1), (3, 4), (10, 3), (20, 50), (45, 9), (200, 5), (61, 16)] {
            for devices in [0, 31] {
                for keys in ["", "\tjG", "\n←←z→Gg", "m"] {
                    let snapshot = common::snapshot(devices);
                    let more = with_data(view, devices as usize + 1);
                    show((width, height), snapshot, more, &format!("{view}{keys}"));
                }
            }
        }
    }
}

#[test]
fn no_device_is_said_so() {
    for view in ["1", "2", "3", "7", "9"] {
        let mut snapshot = common::snapshot(0);
        snapshot.devices.clear();
        let picture = show((80, 24), snapshot, with_data(view, 0), &format!("{view}\t\njz<"));
        assert!(picture.contains("No device"), "{view}: {picture}");
    }
}

#[test]
fn a_stale_aggregator_is_said_so_in_every_view() {
    for view in ["1", "2", "3", "7", "9"] {
        let origin = Origin::Table { pid: 77, age_ns: 9_000_000_000 };
        let model = Model { origin, ..common::model(common::snapshot(1)) };
        let session = Session::new(view_of(view), (80, 24)).sees(model, with_data(view, 2));
        let picture = session.picture();
        assert!(picture.contains("STALE"), "{view}: {picture}");
    }
}

#[test]
fn a_frozen_screen_says_what_it_did_not_read() {
    for view in ["2", "5", "6", "7", "8"] {
        let picture = show((80, 24), common::snapshot(1), More::None, &format!("0f{view}"));
        assert!(picture.contains("frozen before") && picture.contains("f resumes"), "{view}:\n{picture}");
    }
}

#[test]
fn what_is_not_exact_is_marked() {
    let detail = show((140, 40), common::doubtful_snapshot(), More::None, "1");
    for part in
        ["≥5.0 GiB      -        -", "processes disagree", "pid 4242 says: DRAM 4.0 GiB", "may have more"]
    {
        assert!(detail.contains(part), "{part} in\n{detail}");
    }
    let overview = show((140, 40), common::doubtful_snapshot(), More::None, "0");
    for part in ["≥3.1 GiB", "≥ at least", "all devices   DRAM ≥3.1"] {
        assert!(overview.contains(part), "{part} in\n{overview}");
    }
}
