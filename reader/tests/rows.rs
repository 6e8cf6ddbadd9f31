//! What is in a table: rows, notices, history, and all of it at one generation.

use std::sync::atomic::Ordering;

use crate::common::table::Publisher;
use shm_layout::table::control;
use tt_shm_reader::{
    Bucket, DeviceStats, HISTORY_BUCKETS, HISTORY_RESOLUTIONS, Notice, ProcessStats, UsageStats, monotonic_ns,
};

fn device(generation: u64, used: u64) -> DeviceStats {
    DeviceStats { generation, dram_used_bytes: used, ..bytemuck::zeroed() }
}

#[test]
fn device_rows_are_read_in_place() {
    let publisher = Publisher::new();
    let table = publisher.open();
    let used = |index| table.device(index).read(|row| (row.generation(), row.dram_used_bytes()));
    assert_eq!(used(0), None);
    publisher.device(2, device(1, 50));
    assert_eq!((used(0), used(2), used(3), used(usize::MAX)), (None, Some((1, 50)), None, None));
    publisher.device(2, device(2, 60));
    assert_eq!(used(2), Some((2, 60)));
    publisher.device(2, device(0, 60));
    assert_eq!(used(2), None, "no longer in use");
}

#[test]
fn a_row_that_never_stands_still_is_given_up() {
    let publisher = Publisher::new();
    let table = publisher.open();
    publisher.device(0, device(1, 50));
    let mut tries = 0;
    let read = table.device(0).read(|_| {
        tries += 1;
        publisher.device(0, device(1, tries));
    });
    assert_eq!(read, None);
    assert!((2..1000).contains(&tries), "{tries}");
    assert_eq!(table.device(0).read(|row| row.dram_used_bytes()), Some(tries));
}

#[test]
fn rows_come_with_their_numbers() {
    let publisher = Publisher::new();
    let table = publisher.open();
    publisher.device(1, device(1, 5));
    publisher.process(0, ProcessStats { generation: 1, pid: 42, ..bytemuck::zeroed() });
    publisher.process(3, ProcessStats { generation: 1, pid: 43, ..bytemuck::zeroed() });
    publisher.usage(2, UsageStats { generation: 1, process: 3, device: 1, ..bytemuck::zeroed() });
    let devices: Vec<_> = table.devices().map(|(row, d)| (row, d.dram_used_bytes)).collect();
    let processes: Vec<_> = table.processes().map(|(row, p)| (row, p.pid)).collect();
    let usages: Vec<_> = table.usages().map(|(row, u)| (row, u.process, u.device)).collect();
    assert_eq!((devices, processes, usages), (vec![(1, 5)], vec![(0, 42), (3, 43)], vec![(2, 3, 1)]));
}

#[test]
fn counts_beyond_the_capacity_do_not_panic() {
    let publisher = Publisher::new();
    for word in publisher.words().control {
        word.store(u64::MAX, Ordering::Relaxed);
    }
    let table = publisher.open();
    let snapshot = table.snapshot();
    assert!(snapshot.devices.is_empty() && snapshot.notices.is_empty());
    assert!(table.history(0, 0).is_empty() && !snapshot.freshness.is_fresh());
}

#[test]
fn notices_are_newest_first_also_round_the_end() {
    let publisher = Publisher::new();
    let table = publisher.open();
    assert!(table.notices().is_empty());
    let notice = |time| Notice { generation: 1, time, ..bytemuck::zeroed() };
    (0..3).for_each(|number| publisher.notice(number, notice(number)));
    let times = || table.notices().iter().map(|notice| notice.time).collect::<Vec<_>>();
    assert_eq!(times(), [2, 1, 0]);
    (3..100).for_each(|number| publisher.notice(number, notice(number)));
    assert_eq!(times(), (36..100).rev().collect::<Vec<_>>());
}

#[test]
fn history_has_the_buckets_of_the_last_round_only() {
    let publisher = Publisher::new();
    let table = publisher.open();
    publisher.device(1, device(1, 0));
    let resolution = HISTORY_RESOLUTIONS.len() - 1;
    let length = HISTORY_RESOLUTIONS[resolution];
    // Far enough from both ends that it does not matter if a bucket ends while this runs.
    let now = monotonic_ns() / length;
    let bucket = |number: u64| Bucket { start: number * length, dram_max: number, ..bytemuck::zeroed() };
    let of = |numbers: &[u64]| numbers.iter().map(|number| bucket(*number)).collect::<Vec<_>>();
    // Of an earlier round, or of the future: in cells whose time is another now.
    for number in [now + 5, now + HISTORY_BUCKETS as u64 + 5] {
        publisher.bucket(1, resolution, bucket(number));
    }
    assert_eq!(table.history(1, resolution), []);
    let recent: Vec<u64> = (1..=now).rev().take(3).collect();
    for number in &recent {
        publisher.bucket(1, resolution, bucket(*number));
    }
    let mut expected = recent;
    expected.reverse();
    assert_eq!(table.history(1, resolution), of(&expected));
    assert_eq!(table.history(1, 0), [], "another resolution");
    assert_eq!(table.history(0, resolution), [], "another device");
    assert_eq!((table.history(2, resolution), table.history(1, 3)), (vec![], vec![]));
}

#[test]
fn history_of_the_finest_resolution_forgets_the_round_before() {
    let publisher = Publisher::new();
    let table = publisher.open();
    publisher.device(0, device(1, 0));
    let length = HISTORY_RESOLUTIONS[0];
    let now = monotonic_ns() / length;
    let bucket = |number: u64| Bucket { start: number * length, l1_last: number, ..bytemuck::zeroed() };
    let Some(old) = now.checked_sub(HISTORY_BUCKETS as u64 + 7) else { return };
    publisher.bucket(0, 0, bucket(old));
    assert_eq!(table.history(0, 0), []);
    publisher.bucket(0, 0, bucket(now));
    assert_eq!(table.history(0, 0), [bucket(now)]);
}

#[test]
fn a_snapshot_is_of_one_generation() {
    let publisher = Publisher::new();
    let table = publisher.open();
    publisher.device(0, device(4, 7));
    publisher.process(0, ProcessStats { generation: 5, ..bytemuck::zeroed() });
    publisher.usage(0, UsageStats { generation: 3, ..bytemuck::zeroed() });
    publisher.notice(0, Notice { generation: 2, ..bytemuck::zeroed() });
    publisher.set(control::GENERATION, 5);
    let figures = [
        control::EVENTS,
        control::MISSED,
        control::LATE,
        control::REFUSED,
        control::WINDOW_SINCE,
        control::WINDOWS,
        control::OVERFLOW,
    ];
    for (value, word) in (10..).zip(figures) {
        publisher.set(word, value);
    }
    let s = table.snapshot();
    assert!(s.consistent && s.freshness.is_fresh());
    assert_eq!(s.generation, 5);
    assert_eq!((s.devices.len(), s.processes.len(), s.usages.len(), s.notices.len()), (1, 1, 1, 1));
    assert_eq!((s.events, s.missed, s.late, s.refused), (10, 11, 12, 13));
    assert_eq!((s.window_since, s.windows, s.overflow, s.gap), (14, 15, 16, None));
    publisher.set(control::GAP_START, 3);
    publisher.set(control::GAP_END, 8);
    assert_eq!(table.snapshot().gap, Some((3, 8)));
}

#[test]
fn a_snapshot_in_the_middle_of_a_batch_says_so() {
    let publisher = Publisher::new();
    let table = publisher.open();
    publisher.device(0, device(1, 7));
    publisher.set(control::GENERATION, 1);
    assert!(table.snapshot().consistent);
    for kind in 0..3 {
        match kind {
            0 => publisher.device(0, device(2, 8)),
            1 => publisher.process(0, ProcessStats { generation: 3, ..bytemuck::zeroed() }),
            _ => publisher.usage(0, UsageStats { generation: 4, ..bytemuck::zeroed() }),
        }
        let torn = table.snapshot();
        assert!(!torn.consistent, "the batch has not ended");
        assert_eq!(torn.devices[0].1.dram_used_bytes, 8, "each row is whole all the same");
        publisher.set(control::GENERATION, kind + 2);
        assert!(table.snapshot().consistent);
    }
}
