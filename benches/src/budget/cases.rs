//! What is counted. Each case sets itself up, does its operations where they are counted, and says how many.

use crate::capi::{CTracker, Library};
use crate::crowd::{Crowd, Size, fold, observer};
use std::hint::black_box;
use std::time::{Duration, Instant};
use tt_shm_aggregator::Aggregator;
use tt_shm_measure::launches::Host;
use tt_shm_measure::scene::Scene;
use tt_shm_measure::sink::{Sink, Tracked, chip};
use tt_shm_measure::workload::{Order, Pairs, SIZE, Untimed, Workload};
use tt_shm_reader::Segment;
use tt_shm_writer::{DEFAULT_RING_SLOTS, Record, Tracker};

/// Operations of a case, if nothing else bounds them. So many that a rare one, such as a checkpoint of the
/// counters, has its share.
const OPERATIONS: u64 = 20_000;
const LIVE: usize = 1_000;
/// Rows of the live list that is read.
const LISTED: usize = 10_000;
/// Rings that the aggregator folds, and events of a process before another one has its turn.
const RINGS: usize = 8;
const TURN: u64 = 64;

/// One thing that has a budget.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name, which is its key in the book.
    pub name: &'static str,
    /// Does it and says how many operations that was.
    pub run: fn() -> u64,
}

/// All of them.
pub const CASES: [Case; 11] = [
    Case { name: "emit, exclusive, 1000 live", run: emit_exclusive },
    Case { name: "emit, shared, 1000 live", run: emit_shared },
    Case { name: "emit from C, exclusive", run: c_exclusive },
    Case { name: "emit from C, by numbers", run: c_numbers },
    Case { name: "emit from C, by a struct", run: c_struct },
    Case { name: "cached dispatch", run: cached_dispatch },
    Case { name: "call while disabled", run: disabled },
    Case { name: "follow one event", run: follow },
    Case { name: "read one device row", run: row },
    Case { name: "fold one event of 8 rings", run: fold_events },
    Case { name: "one row of the live list", run: live_list },
];

/// Counting is on only in here: callgrind is told this name.
#[inline(never)]
pub fn instructions_are_counted_here(work: &mut dyn FnMut()) {
    work();
    // Without something after it the call would be a jump, and callgrind would not see where it ends.
    black_box(());
}

fn repeat(mut operation: impl FnMut()) -> u64 {
    instructions_are_counted_here(&mut || {
        for _ in 0..OPERATIONS {
            operation();
        }
    });
    OPERATIONS
}

fn emit_exclusive() -> u64 {
    let scene = Scene::new();
    emit(scene.tracked().into_exclusive())
}

fn emit_shared() -> u64 {
    let scene = Scene::new();
    emit(scene.tracked())
}

/// Beside the Rust calls: the same workload, through the shared library's own functions.
fn c_exclusive() -> u64 {
    emit_from_c(Library::exclusive, |tracker| tracker)
}

fn c_numbers() -> u64 {
    emit_from_c(Library::tracker, |tracker| tracker)
}

fn c_struct() -> u64 {
    emit_from_c(Library::tracker, CTracker::by_struct)
}

fn emit_from_c(open: fn(Library, &str) -> CTracker, call: fn(CTracker) -> CTracker) -> u64 {
    let scene = Scene::new();
    let library = Library::load().expect("libtt_shm.so, which cargo builds for this program");
    let tracker = call(open(library, scene.namespace.as_str()));
    let mut pairs = Pairs::new(tracker, LIVE, Order::Random, 0);
    for _ in 0..2 * LIVE {
        pairs.step(&mut Untimed);
    }
    let steps = repeat(|| pairs.step(&mut Untimed));
    assert_eq!(pairs.sink.dram_bytes(), pairs.live_bytes(), "what is live is counted");
    steps * pairs.events()
}

/// Any allocation is freed and a new one made.
fn emit<R: Record>(sink: Tracked<R>) -> u64 {
    let mut pairs = Pairs::new(sink, LIVE, Order::Random, 0);
    for _ in 0..2 * LIVE {
        pairs.step(&mut Untimed);
    }
    let steps = repeat(|| pairs.step(&mut Untimed));
    pairs.check().expect("what is live is counted");
    steps * pairs.events()
}

fn cached_dispatch() -> u64 {
    let scene = Scene::new();
    let host = Host::tracked(&scene.builder().open().expect("a segment"), 1);
    host.check().expect("dispatches are counted");
    repeat(|| host.dispatch())
}

fn disabled() -> u64 {
    let tracker = Tracker::disabled();
    let device = tracker.register_device(&chip(1)).expect("nothing happens");
    repeat(|| _ = black_box(black_box(&tracker).free(black_box(device), black_box(1)).is_ok()))
}

/// A cursor over a ring that is full.
fn follow() -> u64 {
    let scene = Scene::new();
    let mut pairs = Pairs::new(scene.tracked(), LIVE, Order::Random, 0);
    for _ in 0..DEFAULT_RING_SLOTS {
        pairs.step(&mut Untimed);
    }
    let segment = Segment::open(&pairs.sink.tracker.segment_path().expect("enabled")).expect("a segment");
    let mut events = segment.follow_from_start();
    let mut followed = 0;
    instructions_are_counted_here(&mut || {
        for event in events.by_ref() {
            black_box(event);
            followed += 1;
        }
    });
    // All, or all but the one that is overwritten next.
    assert!(followed + 1 >= DEFAULT_RING_SLOTS, "only {followed} events");
    followed
}

fn row() -> u64 {
    let scene = Scene::new();
    let mut sink = scene.tracked();
    sink.alloc(1, SIZE);
    let table = scene.publish().expect("a table");
    let used = || table.device(black_box(0)).read(|row| (row.dram_used_bytes(), row.l1_used_bytes()));
    assert_eq!(used(), Some((SIZE, 0)));
    repeat(|| _ = black_box(used()))
}

fn fold_events() -> u64 {
    let scene = Scene::new();
    let mut crowd = Crowd::new(&scene, Size { processes: RINGS, devices: 1, live: LIVE });
    let mut aggregator = observer(&scene);
    settle(&mut aggregator);
    let events = crowd.fill(TURN);
    // Longer than an event waits for others: none is left for a second look.
    std::thread::sleep(Duration::from_millis(20));
    instructions_are_counted_here(&mut || fold(&mut aggregator, events));
    let used = aggregator.snapshot().devices.first().map(|(_, device)| device.dram_used_bytes);
    assert_eq!(used, Some(crowd.first_device_bytes()));
    events
}

/// Until the aggregator corrects its clock only every four seconds, as it does from then on: a correction between an
/// event and its fold costs more, and when it comes is no matter of instructions.
fn settle(aggregator: &mut Aggregator) {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(4_300) {
        aggregator.poll();
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn live_list() -> u64 {
    let scene = Scene::new();
    let pairs = Pairs::new(scene.tracked(), LISTED, Order::Random, 0);
    let segment = Segment::open(&pairs.sink.tracker.segment_path().expect("enabled")).expect("a segment");
    let mut rows = 0;
    instructions_are_counted_here(&mut || rows = black_box(segment.allocations()).list.len());
    assert_eq!(rows, LISTED);
    rows as u64
}
