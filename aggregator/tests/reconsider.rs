//! A refused file is considered again when it, or what kept it out, has changed.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use crate::common::{Scene, TestProcess, chip, settled};
use shm_layout::Class;
use tt_shm_aggregator::Aggregator;
use tt_shm_reader::{TableSnapshot, notice_kind};

fn chmod(process: &TestProcess, mode: u32) {
    std::fs::set_permissions(&process.path, Permissions::from_mode(mode)).unwrap();
}

fn complaints(snapshot: &TableSnapshot) -> usize {
    snapshot.notices.iter().filter(|notice| notice.kind == notice_kind::REFUSED).count()
}

/// Polls until the number of refused files is this.
#[track_caller]
fn await_refused(aggregator: &mut Aggregator, refused: u64) -> TableSnapshot {
    // The folder is scanned every second; a change of mode is reported at once.
    for _ in 0..2000 {
        let snapshot = settled(aggregator);
        if snapshot.refused == refused {
            return snapshot;
        }
    }
    panic!("{} files are refused, not {refused}", aggregator.snapshot().refused);
}

#[test]
fn a_file_is_followed_once_its_mode_is_mended() {
    let scene = Scene::new();
    let mut process = scene.process();
    let device = process.register(chip(1));
    process.alloc(device, Class::Dram, 77);
    chmod(&process, 0o666);
    let mut aggregator = scene.aggregator();
    let before = aggregator.snapshot();
    assert_eq!((before.refused, complaints(&before), before.devices.len()), (1, 1, 0));
    chmod(&process, 0o600);
    let mended = await_refused(&mut aggregator, 0);
    assert_eq!((mended.devices[0].1.dram_used_bytes, complaints(&mended)), (77, 0));
}

#[test]
fn a_file_is_followed_once_its_second_name_is_gone() {
    let scene = Scene::new();
    let mut process = scene.process();
    let device = process.register(chip(1));
    process.alloc(device, Class::Dram, 5);
    let second = process.path.with_extension("second");
    std::fs::hard_link(&process.path, &second).unwrap();
    let mut aggregator = scene.aggregator();
    assert_eq!(aggregator.snapshot().refused, 1);
    std::fs::remove_file(second).unwrap();
    let mended = await_refused(&mut aggregator, 0);
    assert_eq!(mended.devices[0].1.dram_used_bytes, 5);
}

#[test]
fn a_file_that_stays_as_it_is_is_complained_of_once() {
    let scene = Scene::new();
    let process = scene.process();
    chmod(&process, 0o622);
    let mut aggregator = scene.aggregator();
    for _ in 0..20 {
        settled(&mut aggregator);
    }
    assert_eq!(complaints(&aggregator.snapshot()), 1);
    chmod(&process, 0o644);
    await_refused(&mut aggregator, 0);
}
