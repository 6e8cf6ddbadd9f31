use std::time::{Duration, Instant};

use tt_shm_reader::{Event, EventKind, Segment};
use tt_shm_writer::{Class, Tracker};

use super::*;
use crate::board::{DRAM_BYTES, L1_PER_CORE};
use crate::worker::Worker;

/// No waiting.
const FAST: u32 = 1_000_000_000;

fn tracker(test: &str) -> Tracker {
    let namespace = format!("demo-{test}-{}", std::process::id());
    Tracker::builder().enabled(true).namespace(namespace).open().unwrap()
}

fn worker(number: u32, workers: u32) -> Worker {
    Worker { number, workers, devices: 2, seed: 5, rate: FAST }
}

#[test]
fn a_worker_uses_what_it_may_and_frees_it_all() {
    let tracker = tracker("frees");
    let worker = Worker { rate: 10_000, ..worker(1, 3) };
    let assignment = worker.assignment();
    let mut workload = Workload::open(&tracker, &assignment, worker.devices).unwrap();
    let begun = Instant::now();
    workload.run(&|| begun.elapsed() > Duration::from_millis(400)).unwrap();
    for device in &workload.devices {
        let counters = tracker.counters(*device).unwrap();
        assert!(counters.dispatches > counters.cached_dispatches && counters.cached_dispatches > 0);
        assert!((1..DRAM_BYTES / 3).contains(&counters.dram_peak_bytes));
        assert!((1..L1_PER_CORE * u64::from(TENSIX_CORES) / 3).contains(&counters.l1_peak_bytes));
        let live: u64 = counters.classes.iter().map(|class| class.live_bytes + class.live_count).sum();
        assert_eq!((live, counters.dram_used(), counters.l1_used(), counters.eth_used()), (0, 0, 0, 0));
    }
    let segment = Segment::open(&tracker.segment_path().unwrap()).unwrap();
    assert_eq!(segment.anomalies().iter().sum::<u64>(), 0);
}

/// The failures of a run, in order.
fn failures(tracker: &Tracker, workload: &mut Workload<'_, Tracker>, steps: u64) -> Vec<Event> {
    let segment = Segment::open(&tracker.segment_path().unwrap()).unwrap();
    let mut follow = segment.follow_from_start();
    let mut found = Vec::new();
    let mut pace = Pace::per_second(FAST);
    let never = || false;
    assert!(
        workload.load_weights(&mut pace, &never).unwrap() && workload.warm_up(&mut pace, &never).unwrap()
    );
    for number in 0..steps {
        assert!(workload.run_step(number, &mut pace, &never).unwrap());
        let failed = |event: &Event| event.kind() == Some(EventKind::AllocFailed);
        found.extend(follow.by_ref().filter(failed));
        for (number, device) in workload.devices.iter().enumerate() {
            let counters = tracker.counters(*device).unwrap();
            let live = [Class::Dram, Class::Trace, Class::L1, Class::L1Small]
                .map(|class| counters.classes[class as usize].live_bytes);
            let used = [0, 1, 2, 3].map(|memory: usize| workload.memory[memory].used(number));
            assert_eq!(live, used, "what is live is what the allocator has given away");
        }
    }
    assert_eq!(follow.missed(), 0);
    found
}

#[test]
fn a_request_fails_because_l1_is_fragmented() {
    let tracker = tracker("fragments");
    let (worker, steps) = (worker(1, 3), 2000);
    assert_eq!(worker.network(), "resnet50");
    let assignment = worker.assignment();
    let mut workload = Workload::open(&tracker, &assignment, worker.devices).unwrap();
    let failed = failures(&tracker, &mut workload, steps);
    assert!((2..50).contains(&failed.len()), "{} failures in {steps} steps", failed.len());
    for event in failed {
        let [requested, free, largest] = [event.size, event.address, event.aux];
        assert_eq!(event.class, Class::L1 as u8);
        assert!(largest < requested && requested <= free, "{requested} of {free}, at most {largest}");
    }
}

#[test]
fn a_leak_grows_until_nothing_is_left() {
    let tracker = tracker("leaks");
    let worker = worker(2, 3);
    assert_eq!(worker.network(), "bert-large");
    let assignment = worker.assignment();
    let mut workload = Workload::open(&tracker, &assignment, worker.devices).unwrap();
    let failed = failures(&tracker, &mut workload, LEAK_STEPS * 10);
    assert_eq!((workload.leaked.len(), failed.len()), (10, 0));
    let dram = workload.memory[0].used(0);
    while !workload.leaked.is_empty() {
        workload.leak().unwrap();
    }
    assert!(workload.memory[0].used(0) < dram, "begun anew");
    let failed = tracker.counters(workload.devices[1]).unwrap().failed_allocs
        + tracker.counters(workload.devices[0]).unwrap().failed_allocs;
    assert_eq!(failed, 1);
}

#[test]
fn any_number_of_workers_fits() {
    for (number, workers) in [(0, 1), (3, 4), (7, 8), (61, 64), (63, 64)] {
        let tracker = tracker(&format!("{number}-of-{workers}"));
        let worker = worker(number, workers);
        let assignment = worker.assignment();
        let mut workload = Workload::open(&tracker, &assignment, worker.devices).unwrap();
        let failed = failures(&tracker, &mut workload, 20);
        assert!(
            failed.iter().all(|event| event.class == Class::L1 as u8),
            "{number} of {workers}: {failed:?}"
        );
    }
}

/// The same seed gives the same workload, failures included.
#[test]
fn a_seed_gives_a_workload() {
    let run = |test: &str| {
        let tracker = tracker(test);
        let assignment = worker(1, 3).assignment();
        let mut workload = Workload::open(&tracker, &assignment, 2).unwrap();
        let failed = failures(&tracker, &mut workload, 800);
        let failed: Vec<[u64; 3]> =
            failed.iter().map(|event| [event.size, event.address, event.aux]).collect();
        (failed, workload.memory.map(|banks| format!("{banks:?}")))
    };
    assert_eq!(run("seed-a"), run("seed-b"));
}
