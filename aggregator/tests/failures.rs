//! Failed allocations: who held what at that moment, what came before, and who may be believed.

use crate::common::{Scene, TestProcess, buffer, chip};
use shm_layout::table::{FailureRecord, MAX_FAILURES, failure_flags};
use shm_layout::{Class, Event, EventKind};
use tt_shm_aggregator::{Aggregator, Claim, Config, TablePublisher};
use tt_shm_os::{WriteMap, path_of, table_file_name};
use tt_shm_reader::Table;

const BOTH: u64 = failure_flags::HOLDERS_EXACT | failure_flags::EVENTS_COMPLETE;

fn fail(process: &mut TestProcess, device: u8, class: Class, request: u64) {
    let event = buffer(EventKind::AllocFailed, device, class, request);
    process.emit(Event { address: 900, aux: 300, ..event });
}

/// A running aggregator and two processes on one chip that it has seen from their start.
fn two(scene: &Scene) -> (Aggregator, TestProcess, TestProcess) {
    let mut aggregator = scene.aggregator();
    let (a, b) = scene.pair(7);
    aggregator.settle();
    (aggregator, a, b)
}

fn failures(aggregator: &mut Aggregator) -> Vec<FailureRecord> {
    aggregator.settle();
    let failures = aggregator.snapshot().failures;
    assert!(failures.iter().all(FailureRecord::is_plausible), "{failures:?}");
    failures
}

#[test]
fn a_failure_keeps_who_held_what_then_and_what_came_before() {
    let scene = Scene::new();
    let (mut aggregator, mut a, mut b) = two(&scene);
    a.alloc(0, Class::Dram, 100);
    b.alloc(0, Class::Dram, 700);
    b.alloc(0, Class::L1, 5000);
    a.alloc(0, Class::Trace, 30);
    fail(&mut a, 0, Class::Dram, 4096);
    // What comes after is not included.
    b.alloc(0, Class::Dram, 1_000_000);
    b.free(0, Class::Dram, 700);
    let [failure] = failures(&mut aggregator)[..] else { panic!("one failure") };
    assert_eq!((failure.pid, failure.chip_id, failure.position), (a.pid(), 7, 3));
    let asked = (failure.request_bytes, failure.free_bytes, failure.largest_free_bytes);
    assert_eq!((asked, failure.class), ((4096, 900, 300), Class::Dram as u64));
    assert!(failure.has(BOTH), "{:#b}", failure.flags);
    let class = |class: Class| failure.classes[class as usize];
    assert_eq!((class(Class::Dram), class(Class::Trace), class(Class::L1)), (800, 30, 5000));
    let held = failure.holders.map(|h| (h.pid, h.classes[Class::Dram as usize]));
    assert_eq!((held[0], held[1], held[2].0), ((b.pid(), 700), (a.pid(), 100), 0));
    assert_eq!(failure.holder_count, 2);
    let past: Vec<_> = failure.past().unwrap().iter().map(|e| (e.pid, e.class, e.size)).collect();
    let (dram, trace, l1) = (Class::Dram as u64, Class::Trace as u64, Class::L1 as u64);
    assert_eq!(past, [(a.pid(), dram, 100), (b.pid(), dram, 700), (b.pid(), l1, 5000), (a.pid(), trace, 30)]);
}

#[test]
fn the_largest_holders_are_those_of_the_memory_that_was_asked_for() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let mut processes: Vec<TestProcess> = (0..10).map(|_| scene.process()).collect();
    for (number, process) in processes.iter_mut().enumerate() {
        process.register(chip(1));
        process.alloc(0, Class::L1, 10 + number as u64);
        process.alloc(0, Class::Dram, 1_000_000 - number as u64);
    }
    fail(&mut processes[0], 0, Class::L1Small, 64);
    let [failure] = failures(&mut aggregator)[..] else { panic!("one failure") };
    let l1 = |classes: &[u64; Class::COUNT]| classes[Class::L1 as usize];
    assert_eq!(failure.holders.map(|holder| l1(&holder.classes)), [19, 18, 17, 16, 15, 14, 13, 12]);
    assert_eq!((failure.holder_count, l1(&failure.others), l1(&failure.classes)), (10, 21, 145));
}

#[test]
fn only_the_last_events_are_kept_of_the_device_that_failed() {
    let scene = Scene::new();
    let (mut aggregator, mut a, mut b) = two(&scene);
    a.register(chip(8));
    for size in 1..=40 {
        a.alloc(0, Class::Dram, size);
        a.alloc(1, Class::Dram, 1000 + size);
        b.alloc(0, Class::Dram, 100 + size);
    }
    fail(&mut a, 0, Class::Dram, 1);
    let [failure] = failures(&mut aggregator)[..] else { panic!("one failure") };
    let sizes: Vec<u64> = failure.past().unwrap().iter().map(|event| event.size).collect();
    let last: Vec<u64> = (33..=40).flat_map(|size| [size, 100 + size]).collect();
    assert_eq!(sizes, last);
    assert!(failure.has(BOTH));
}

#[test]
fn a_ring_that_went_round_is_said_to_lack_events_and_holders() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let mut process = TestProcess::new(&scene.namespace, 64);
    process.register(chip(7));
    aggregator.settle();
    process.alloc(0, Class::Dram, 1);
    aggregator.settle();
    // On another device, so that none of the events before the failure is left.
    process.register(chip(8));
    (0..100).for_each(|_| process.alloc(1, Class::Dram, 1));
    aggregator.settle();
    (0..70).for_each(|_| process.alloc(1, Class::Dram, 1));
    aggregator.settle();
    fail(&mut process, 0, Class::Dram, 9);
    let [failure] = failures(&mut aggregator)[..] else { panic!("one failure") };
    assert_eq!((failure.event_count, failure.flags & failure_flags::EVENTS_COMPLETE), (0, 0));
    assert!(failure.has(failure_flags::HOLDERS_EXACT), "its counters were read as a whole before");
    assert_eq!(failure.holders[0].classes[Class::Dram as usize], 1);
}

#[test]
fn a_failure_from_before_anybody_looked_has_no_certain_holders() {
    let scene = Scene::new();
    let mut process = scene.process();
    process.register(chip(7));
    process.alloc(0, Class::Dram, 50);
    fail(&mut process, 0, Class::Dram, 60);
    let mut aggregator = scene.aggregator();
    let [failure] = failures(&mut aggregator)[..] else { panic!("one failure") };
    assert_eq!(failure.flags & BOTH, failure_flags::EVENTS_COMPLETE);
    assert_eq!(failure.holders[0].classes[Class::Dram as usize], 50);
}

#[test]
fn a_flood_of_one_process_leaves_the_failures_of_others() {
    let scene = Scene::new();
    let (mut aggregator, mut a, mut b) = two(&scene);
    fail(&mut a, 0, Class::L1, 1);
    for round in 0..20 {
        (0..10).for_each(|n| fail(&mut b, 0, Class::Dram, 1000 + 10 * round + n));
        aggregator.settle();
    }
    let kept = failures(&mut aggregator);
    assert_eq!(kept.len(), MAX_FAILURES);
    assert!(kept.is_sorted_by(|x, y| x.time >= y.time));
    assert_eq!(kept.iter().filter(|failure| failure.pid == a.pid()).count(), 1);
    assert_eq!(kept[0].request_bytes, 1197, "the eighth of the last ten");
    assert_eq!(aggregator.snapshot().devices[0].1.failed_allocs, 201);
}

fn table(scene: &Scene) -> Table {
    let uid = rustix::process::geteuid().as_raw();
    Table::open_path(&path_of(&table_file_name(&scene.namespace, uid)), uid).unwrap()
}

fn publish(scene: &Scene, aggregator: &Aggregator) -> TablePublisher {
    TablePublisher::create(Claim::take(&scene.namespace).unwrap(), aggregator).unwrap()
}

/// Starts where the table of a killed aggregator ends.
fn restart(scene: &Scene) -> Aggregator {
    let claim = Claim::take(&scene.namespace).unwrap();
    let adopted = claim.adopt();
    assert!(adopted.is_some());
    Aggregator::resume(Config::new(scene.namespace.clone()), adopted).unwrap()
}

#[test]
fn failures_are_published_and_outlive_their_aggregator_once() {
    let scene = Scene::new();
    let (mut aggregator, mut a, mut b) = two(&scene);
    b.alloc(0, Class::Dram, 11);
    fail(&mut a, 0, Class::Dram, 5);
    let known = failures(&mut aggregator);
    let publisher = publish(&scene, &aggregator);
    assert_eq!(table(&scene).snapshot().failures, known);
    assert_eq!(table(&scene).failures(), known);
    drop((publisher, aggregator, b));
    // The ring of `a` still has the event, but who held what then only the table knows.
    let again = failures(&mut restart(&scene));
    let without_batch = |failure: &FailureRecord| FailureRecord { generation: 0, ..*failure };
    assert_eq!(
        again.iter().map(without_batch).collect::<Vec<_>>(),
        known.iter().map(without_batch).collect::<Vec<_>>()
    );
}

/// Overwrites the only failure of a published table.
fn forge(scene: &Scene, change: impl Fn(&mut FailureRecord)) {
    let opened = table(scene);
    let mut record = opened.failures()[0];
    change(&mut record);
    let file = std::fs::File::options().read(true).write(true).open(opened.path()).unwrap();
    let map = WriteMap::new(&file, opened.header().total_len as usize).unwrap();
    let words = shm_layout::table::TableWords::carve(map.words(), opened.header());
    shm_layout::protocol::latch::LatchWriter::resume(&words.failures[0])
        .turn(&words.failures[0], |copy| shm_layout::store_pod(copy, &record));
}

#[test]
fn a_failure_that_cannot_be_is_not_taken_over() {
    type Spoil = fn(&mut FailureRecord);
    let spoils: [(&str, Spoil); 9] = [
        ("from the future", |f| f.time = u64::MAX),
        ("without a time", |f| f.time = 0),
        ("of nobody", |f| f.identity = 0),
        ("of no event", |f| f.position = 0),
        ("sum that is none", |f| f.classes[0] += 1),
        ("holders that overflow", |f| f.holders.iter_mut().for_each(|h| h.classes[0] = u64::MAX)),
        ("more holders than processes", |f| f.holder_count = u64::MAX),
        ("more events than there is room for", |f| f.event_count = 17),
        ("events after it", |f| f.events[0].time = f.time + 1),
    ];
    for (what, spoil) in spoils {
        let scene = Scene::new();
        let (mut aggregator, mut a, mut b) = two(&scene);
        b.alloc(0, Class::Dram, 11);
        fail(&mut a, 0, Class::Dram, 5);
        failures(&mut aggregator);
        // Without its ring, which would tell of the event again.
        std::fs::remove_file(&a.path).unwrap();
        drop((publish(&scene, &aggregator), aggregator, a));
        forge(&scene, spoil);
        assert_eq!(failures(&mut restart(&scene)).len(), 0, "{what}");
    }
}

#[test]
fn the_ring_of_a_dead_process_still_tells_what_failed() {
    let scene = Scene::new();
    let mut process = scene.process();
    process.register(chip(7));
    process.alloc(0, Class::Dram, 50);
    fail(&mut process, 0, Class::Dram, 60);
    let pid = process.pid();
    drop(process);
    let mut aggregator = scene.aggregator();
    let [failure] = failures(&mut aggregator)[..] else { panic!("one failure") };
    assert_eq!((failure.pid, failure.request_bytes, failure.chip_id), (pid, 60, 7));
    assert_eq!((failure.holder_count, failure.flags & failure_flags::HOLDERS_EXACT), (0, 0));
    assert_eq!(failure.past().unwrap()[0].size, 50);
}

#[test]
fn who_ended_right_after_a_failure_is_among_its_holders() {
    let scene = Scene::new();
    let merge_window = std::time::Duration::from_millis(50);
    let config = Config { merge_window, ..Config::new(scene.namespace.clone()) };
    let mut aggregator = Aggregator::new(config).unwrap();
    let (mut a, mut b) = scene.pair(7);
    b.alloc(0, Class::Dram, 700);
    aggregator.settle();
    fail(&mut a, 0, Class::Dram, 4096);
    b.close();
    aggregator.poll();
    let [failure] = failures(&mut aggregator)[..] else { panic!("one failure") };
    assert_eq!((failure.holder_count, failure.classes[Class::Dram as usize]), (1, 700));
    assert!(failure.has(BOTH));
}

#[test]
fn the_events_of_who_is_gone_are_said_to_be_missing() {
    let scene = Scene::new();
    let (mut aggregator, mut a, mut b) = two(&scene);
    a.alloc(0, Class::Dram, 1);
    b.alloc(0, Class::Dram, 700);
    b.free(0, Class::Dram, 700);
    aggregator.settle();
    b.close();
    aggregator.settle();
    fail(&mut a, 0, Class::Dram, 2);
    // Once all that is shown is younger than what is gone, nothing is missing.
    (0..20).for_each(|_| a.alloc(0, Class::Dram, 1));
    fail(&mut a, 0, Class::Dram, 3);
    let [second, first] = failures(&mut aggregator)[..] else { panic!("two failures") };
    assert_eq!((first.event_count, first.flags & BOTH), (1, failure_flags::HOLDERS_EXACT));
    assert_eq!((second.event_count, second.flags & BOTH), (16, BOTH));
}

/// Anybody can read the name of a segment, and give another one the same identity.
#[test]
fn nobody_hides_the_failures_of_a_segment_by_claiming_to_be_it() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let mut victim = scene.process();
    victim.register(chip(7));
    let mut other = TestProcess::with_identity(&scene.namespace, 1024, victim.header.identity);
    other.register(chip(7));
    aggregator.settle();
    (0..9).for_each(|_| fail(&mut other, 0, Class::Dram, 1));
    (0..2).for_each(|_| fail(&mut victim, 0, Class::Dram, 2));
    let kept = failures(&mut aggregator);
    assert_eq!(kept.iter().filter(|failure| failure.pid == victim.pid()).count(), 2);
}

/// An impossible record is not shown, so that nobody can forge one about another process.
#[test]
fn nobody_makes_the_failures_of_others_impossible() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let mut victim = scene.process();
    victim.register(chip(7));
    victim.alloc(0, Class::Dram, 3);
    // Zero marks the end of the holders.
    let mut nobody = TestProcess::with_identity(&scene.namespace, 1024, 0);
    nobody.register(chip(7));
    nobody.alloc(0, Class::Dram, 5);
    // More entries for one chip than there are processes.
    let mut many: Vec<TestProcess> = (0..9).map(|_| scene.process()).collect();
    for process in &mut many {
        for device in 0..128 {
            process.register(chip(7));
            process.alloc(device, Class::Dram, shm_layout::MAX_BYTES);
        }
    }
    aggregator.settle();
    fail(&mut victim, 0, Class::Dram, 1);
    let [failure] = failures(&mut aggregator)[..] else { panic!("one failure") };
    assert_eq!((failure.pid, failure.holder_count), (victim.pid(), 10));
}
