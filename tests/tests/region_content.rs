//! What stands in a region, and what contradicts itself there, on made-up regions.

use std::time::{Duration, Instant};

use tt_shm_region::{Bytes, Content, Fault, INEXACTNESS, Kind, Place, Regions};
use tt_shm_tests::region::{Five, seconds_ago};
use tt_shm_tests::{RegionImage, RegionTree};

const CHIP: u64 = 72_059_269_368_820_857;
const SOME: Five = [5_242_880, 196_608, 8192, 4096, 786_432];

fn bytes([dram, l1, l1_small, trace, cb]: Five) -> Bytes {
    Bytes { dram, l1, l1_small, trace, cb }
}

/// What is read of a region.
#[track_caller]
fn read(image: &RegionImage) -> Content {
    let tree = RegionTree::default();
    tree.publish(CHIP, image);
    let mut regions = Regions::new(tree.roots());
    assert!(regions.poll(Instant::now()));
    let [region] = regions.regions() else { panic!("{:?}", regions.regions()) };
    assert_eq!(region.chip_id, CHIP);
    region.content.clone().unwrap()
}

#[track_caller]
fn assert_faults(image: &RegionImage, expected: &[Fault]) {
    let content = read(image);
    assert_eq!(content.faults, expected);
    let names = content.faults.iter().map(|fault| format!("{}: {fault}", fault.name()));
    names.for_each(|text| assert!(text.len() > 20, "{text}"));
}

#[test]
fn every_field_of_every_version_is_read() {
    for version in 2..=4 {
        let other = [1, 2, 3, 4, 5];
        let sum: Five = std::array::from_fn(|kind| SOME[kind] + other[kind]);
        let image = RegionImage::honest(version, CHIP, &[(100, SOME), (2_000_000, other)]);
        let image = image.u32(40, 7).u32(88, 3).u32(92, 1).u32(16, 9).updated(12345).written(1, 678);
        let content = read(&image);
        assert_eq!((content.version, content.chip_id, content.device_id), (version, CHIP, 7));
        assert_eq!((content.updated_ns, content.reference_count, content.process_count), (12345, 9, 2));
        assert_eq!((content.totals, content.chip_sum()), (bytes(sum), bytes(sum)));
        let [chip] = content.chips[..] else { panic!("{:?}", content.chips) };
        assert_eq!((chip.slot, chip.chip, chip.is_remote, chip.bytes), (0, 3, true, bytes(sum)));
        let [first, second] = &content.processes[..] else { panic!("{:?}", content.processes) };
        assert_eq!((first.slot, first.pid, first.bytes), (0, 100, bytes(SOME)));
        assert_eq!((second.slot, second.pid, second.bytes), (1, 2_000_000, bytes(other)));
        assert_eq!((second.updated_ns, second.name_lossy().as_ref()), (678, "python"));
        assert!(content.is_steady && content.faults.is_empty(), "{:?}", content.faults);
        assert_eq!(content.sum(|process| process.pid == 100), bytes(SOME));
        assert_eq!((content.sum(|_| true), content.sum(|_| false)), (bytes(sum), Bytes::default()));
    }
}

#[test]
fn all_slots_are_read() {
    let processes: Vec<(i32, Five)> = (0..64).map(|slot| (1000 + slot, [1 << 20; 5])).collect();
    let mut image = RegionImage::honest(3, CHIP, &processes).chip(0, 0, [0; 5]);
    for slot in 0..16 {
        image = image.chip(slot, slot as u32, [4 << 20; 5]);
    }
    let content = read(&image);
    assert_eq!((content.processes.len(), content.chips.len()), (64, 16));
    assert_eq!(content.processes[63].pid, 1063);
    assert!(content.faults.is_empty(), "{:?}", content.faults);
}

/// A closed slot keeps its name; that is no process.
#[test]
fn a_stale_name_is_no_process() {
    let content = read(&RegionImage::new(3, CHIP).process(0, 0, [0; 5], "python"));
    assert!(content.processes.is_empty() && content.faults.is_empty(), "{content:?}");
}

#[test]
fn names_need_no_end_and_no_letters() {
    let image = RegionImage::honest(3, CHIP, &[(1, SOME), (2, [0; 5]), (3, [0; 5])]);
    let place = |slot: usize| 856 + 120 * slot + 56;
    let image =
        image.bytes(place(0), &[b'x'; 64]).bytes(place(1), b"a\xff\x1b[2J\0old").bytes(place(2), b"\0");
    let content = read(&image);
    assert_eq!(content.processes[0].name, [b'x'; 64]);
    assert_eq!(content.processes[1].name, b"a\xff\x1b[2J");
    assert_eq!(content.processes[1].name_lossy(), "a\u{fffd}\u{1b}[2J");
    assert_eq!(content.processes[2].name, b"");
}

/// As after a process was killed and the other has closed its device.
#[test]
fn sums_that_disagree_are_named() {
    let image = RegionImage::honest(3, CHIP, &[(100, [1_048_576, 0, 0, 0, 786_432])]);
    let image = image.totals([1_048_576, 0, 0, 0, 0]).chip(0, 0, [5_242_880, 0, 0, 0, 786_432]);
    let (dram, cb) = (Kind::Dram, Kind::Cb);
    let expected = [
        Fault::Chip { kind: dram, told: 5_242_880, total: 1_048_576 },
        Fault::Total { kind: cb, told: 0, sum: 786_432 },
        Fault::Chip { kind: cb, told: 786_432, total: 0 },
    ];
    assert_faults(&image, &expected);
    let content = read(&image);
    assert_eq!(content.totals.dram, 1_048_576, "nothing is corrected");
    assert_faults(&image.u32(4, 5), &[&[Fault::ProcessCount { told: 5, used: 1 }], &expected[..]].concat());
}

/// Between two stores of a writer, counters differ; that is no fault yet.
#[test]
fn a_writer_at_work_is_no_fault() {
    let wrong = RegionImage::honest(3, CHIP, &[(100, SOME)]).totals([0; 5]);
    assert_eq!(read(&wrong).faults.len(), 10);
    assert_faults(&wrong.clone().updated(seconds_ago(0)), &[]);
    // By a clock that was set back since, nobody ever rests: then it counts that nothing changes.
    let tree = RegionTree::default();
    let mut regions = Regions::new(tree.roots());
    tree.publish(CHIP, &wrong.updated(u64::MAX));
    let start = Instant::now();
    let counts = [0, 100].map(|ms| {
        regions.poll(start + Duration::from_millis(ms));
        regions.regions()[0].content.as_ref().unwrap().faults.len()
    });
    assert_eq!(counts, [0, 10]);
}

#[test]
fn counters_below_zero_are_absurd_and_stay_as_they_are() {
    let wrapped = 0_u64.wrapping_sub(4096);
    let image = RegionImage::honest(3, CHIP, &[(100, [0; 5]), (200, SOME)]);
    let image = image.process(0, 100, [wrapped, 0, 0, 0, 0], "python").totals([1 << 51, 0, 0, 0, 0]);
    let image = image.chip(0, 0, [1 << 50, 0, 0, 0, 0]).updated(seconds_ago(0));
    let dram = Kind::Dram;
    assert_faults(
        &image,
        &[
            Fault::Absurd { place: Place::Total, kind: dram, bytes: 1 << 51 },
            Fault::Absurd { place: Place::Process { slot: 0, pid: 100 }, kind: dram, bytes: wrapped },
        ],
    );
    let content = read(&image);
    assert_eq!(content.sum(|_| true).dram, u64::MAX);
    assert_eq!(content.sum(|process| process.bytes.is_plausible()), bytes(SOME));
}

#[test]
fn another_chip_inside_is_named() {
    let image = RegionImage::honest(3, 4_294_967_296, &[(100, SOME)]);
    assert_faults(&image, &[Fault::ChipId { named: CHIP, told: 4_294_967_296 }]);
}

#[test]
fn one_pid_in_several_slots_is_shown_as_such() {
    let image = RegionImage::honest(3, CHIP, &[(100, SOME), (200, SOME), (100, [7; 5]), (100, SOME)]);
    assert_faults(&image, &[Fault::DuplicatePid { pid: 100, slots: vec![0, 2, 3] }]);
    let shown: Vec<_> = read(&image).processes.iter().map(|process| process.is_duplicate).collect();
    assert_eq!(shown, [true, false, true, true]);
}

#[test]
fn slots_that_are_released_are_no_processes() {
    let image = RegionImage::honest(4, CHIP, &[(100, SOME), (-1, [64; 5])]);
    let content = read(&image);
    assert_eq!((content.processes.len(), content.releasing), (1, 1));
    assert!(content.faults.is_empty(), "what a slot in release holds may be counted: {:?}", content.faults);
    // Earlier versions do not release so, and there are no other negative pids.
    assert_faults(
        &RegionImage::honest(3, CHIP, &[(-1, SOME), (i32::MIN, SOME)]),
        &[Fault::BadPid { slot: 0, pid: -1 }, Fault::BadPid { slot: 1, pid: i32::MIN }],
    );
    let free = RegionImage::honest(3, CHIP, &[]).process(9, 0, SOME, "");
    assert_faults(&free, &[Fault::FreeSlot { slot: 9, bytes: bytes(SOME) }]);
}

#[test]
fn why_nothing_is_exact_is_said_in_words() {
    let keys: Vec<_> = INEXACTNESS.iter().map(|reason| reason.key).collect();
    assert_eq!(keys, ["first_thread_only", "requested_bytes", "no_dataflow_buffers", "races"]);
    assert!(INEXACTNESS.iter().all(|reason| reason.text.len() > 60 && !reason.text.contains("  ")));
}
