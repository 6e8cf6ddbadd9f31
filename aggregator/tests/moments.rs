//! Deaths, windows and unfollowed processes between two looks of an aggregator. Each of these cases was once
//! reported as exact, and was not.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Scene, TestProcess, buffer, chip, device, settled};
use shm_layout::table::{HISTORY_RESOLUTIONS, Peak, bucket_flags, failure_flags};
use shm_layout::{Class, Event, EventKind, UNKNOWN, flags};
use tt_shm_aggregator::{Aggregator, Claim, Config, Only, TablePublisher};
use tt_shm_os::{ClockKind, monotonic_ns};

const HUGE: u64 = 1 << 49;

type Work = Box<dyn FnOnce() + Send>;

/// An aggregator that does some work once, in the middle of a poll: when it has found the next segment.
fn interrupted(scene: &Scene) -> (Aggregator, impl Fn(Work)) {
    let work: Arc<Mutex<Option<Work>>> = Arc::default();
    let taken = work.clone();
    let only = Only::those(move |_| {
        let work = taken.lock().unwrap().take();
        work.into_iter().for_each(|work| work());
        true
    });
    let aggregator = Aggregator::new(Config { only, ..Config::new(scene.namespace.clone()) }).unwrap();
    (aggregator, move |new| *work.lock().unwrap() = Some(new))
}

fn pause() {
    std::thread::sleep(Duration::from_millis(1));
}

/// One process holds 500 and ends after a poll began; before that, another held 300 for a moment.
fn ended_within_a_poll(end: fn(TestProcess)) -> Peak {
    let scene = Scene::new();
    let (mut aggregator, interrupt) = interrupted(&scene);
    let (mut holder, mut other) = scene.pair(1);
    holder.alloc(0, Class::Dram, 500);
    aggregator.settle();
    let kept: Arc<Mutex<Option<TestProcess>>> = Arc::default();
    let keep = kept.clone();
    interrupt(Box::new(move || {
        pause();
        other.alloc(0, Class::Dram, 300);
        other.free(0, Class::Dram, 300);
        pause();
        end(holder);
        *keep.lock().unwrap() = Some(other);
    }));
    // Longer than between two looks at a lock.
    std::thread::sleep(Duration::from_millis(300));
    let _found = scene.process();
    aggregator.poll();
    device(&settled(&mut aggregator), 1).dram_peak
}

#[test]
fn an_end_is_not_earlier_than_it_was_asked_for() {
    for end in [TestProcess::close, drop] {
        let peak = ended_within_a_poll(end);
        assert!(peak.low <= 800 && peak.high >= 800, "{peak:?}, true 800");
    }
}

/// The aggregator is stopped in the middle of a poll for longer than clocks can differ. What happens
/// meanwhile happens then, not when the poll began.
#[test]
fn a_poll_that_was_interrupted_for_long_keeps_the_times_of_events() {
    let scene = Scene::new();
    let (mut aggregator, interrupt) = interrupted(&scene);
    let mut process = scene.process();
    process.register(chip(1));
    process.alloc(0, Class::Dram, 1);
    aggregator.settle();
    let failed: Arc<Mutex<Option<(u64, TestProcess)>>> = Arc::default();
    let keep = failed.clone();
    interrupt(Box::new(move || {
        std::thread::sleep(Duration::from_millis(70));
        process.emit(buffer(EventKind::AllocFailed, 0, Class::Dram, 7));
        *keep.lock().unwrap() = Some((monotonic_ns(), process));
    }));
    let _found = scene.process();
    aggregator.poll();
    let snapshot = settled(&mut aggregator);
    let (time, _process) = failed.lock().unwrap().take().expect("it was interrupted");
    let said = snapshot.failures[0].time;
    assert!(said.abs_diff(time) < 5_000_000, "said {said}, true {time}");
}

/// A process is found dead, with a ring that wrapped around. What others did meanwhile is folded after that.
#[test]
fn a_life_that_was_not_followed_counts_beside_what_is_folded_later() {
    let scene = Scene::new();
    let (mut aggregator, interrupt) = interrupted(&scene);
    let mut other = scene.process();
    other.register(chip(1));
    other.alloc(0, Class::Dram, 1);
    aggregator.settle();
    let _found = scene.process();
    let mut unfollowed = TestProcess::new(&scene.namespace, 64);
    unfollowed.register(chip(1));
    (0..100).for_each(|_| unfollowed.emit(Event::new(EventKind::DeviceOpen, 0)));
    let kept: Arc<Mutex<Option<TestProcess>>> = Arc::default();
    let keep = kept.clone();
    interrupt(Box::new(move || {
        pause();
        unfollowed.alloc(0, Class::Dram, 500);
        other.alloc(0, Class::Dram, 400);
        other.free(0, Class::Dram, 400);
        pause();
        unfollowed.close();
        *keep.lock().unwrap() = Some(other);
    }));
    aggregator.poll();
    let peak = device(&settled(&mut aggregator), 1).dram_peak;
    assert!(peak.low <= 901 && peak.high >= 901, "{peak:?}, true 901");
}

/// A window is requested, a process that was alive then ends, and a flood of events keeps the merge from
/// getting that far.
#[test]
fn a_window_begins_with_those_who_ended_before_it_was_open() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let mut flood = TestProcess::new(&scene.namespace, 1 << 18);
    let (mut holder, mut other) = (scene.process(), scene.process());
    flood.register(chip(9));
    holder.register(chip(1));
    other.register(chip(1));
    holder.alloc(0, Class::Dram, 500);
    other.alloc(0, Class::Dram, 1);
    aggregator.settle();
    for _ in 0..120_000 {
        flood.alloc(0, Class::L1, 1);
        flood.free(0, Class::L1, 1);
    }
    pause();
    aggregator.reset_window();
    pause();
    holder.close();
    pause();
    while aggregator.snapshot().windows == 0 {
        aggregator.poll();
    }
    let peak = device(&settled(&mut aggregator), 1).dram_peak;
    assert!(peak.low <= 501 && peak.high >= 501, "{peak:?}, true 501");
}

/// Counters are read in full, and then an event appears whose thread had read the clock before that: it
/// happened before what others did meanwhile.
#[test]
fn an_event_from_before_a_whole_reading_comes_late() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let mut lapped = TestProcess::new(&scene.namespace, 64);
    let mut other = scene.process();
    lapped.register(chip(1));
    other.register(chip(1));
    lapped.alloc(0, Class::Dram, 1);
    aggregator.settle();
    let slept = lapped.clock.ticks();
    pause();
    other.emit(buffer(EventKind::AllocFailed, 0, Class::Dram, 7));
    other.alloc(0, Class::Dram, 500);
    other.free(0, Class::Dram, 500);
    // So many that the counters are read, later than all of that.
    (0..100).for_each(|_| lapped.emit_raw(Event { time: slept, ..Event::new(EventKind::DeviceOpen, 0) }));
    let snapshot = settled(&mut aggregator);
    assert!(snapshot.missed > 0);
    lapped.emit_raw(Event { time: slept, ..buffer(EventKind::Alloc, 0, Class::Dram, 300) });
    let snapshot = settled(&mut aggregator);
    let peak = device(&snapshot, 1).dram_peak;
    assert!(peak.low <= 801 && peak.high >= 801, "{peak:?}, true 801");
    let failure = snapshot.failures[0];
    assert_eq!(failure.flags & failure_flags::HOLDERS_EXACT, 0, "it held 301 then, not 1");
    assert!(snapshot.late > 0);
}

/// An event appears after an aggregator was killed, whose thread had read the clock before others did something that is
/// in the table. The next aggregator has adopted what was made without it, and those others may be gone.
fn adopted_before_a_late_event(is_late_for_both: bool) {
    let scene = Scene::new();
    let (mut slow, mut other) = scene.pair(1);
    let mut first = scene.aggregator();
    slow.alloc(0, Class::Dram, 100);
    first.settle();
    first.reset_window();
    first.settle();
    let slept = slow.clock.ticks();
    pause();
    other.alloc(0, Class::Dram, 500);
    other.emit(buffer(EventKind::AllocFailed, 0, Class::Dram, 7));
    other.free(0, Class::Dram, 500);
    if is_late_for_both {
        first.settle();
        other.close();
        std::thread::sleep(Duration::from_millis(300));
    }
    let before = settled(&mut first);
    assert_eq!(device(&before, 1).dram_peak.low, 600);
    assert_ne!(before.failures[0].flags & failure_flags::HOLDERS_EXACT, 0);
    let publisher = TablePublisher::create(Claim::take(&scene.namespace).unwrap(), &first).unwrap();
    drop((publisher, first));

    let late = Event { time: slept, ..buffer(EventKind::Free, 0, Class::Dram, 100) };
    let begin = || {
        let claim = Claim::take(&scene.namespace).unwrap();
        Aggregator::resume(Config::new(scene.namespace.clone()), claim.adopt()).unwrap()
    };
    let mut second = if is_late_for_both {
        let mut second = begin();
        let peak = device(&settled(&mut second), 1).dram_peak;
        assert_eq!((peak.low, peak.high), (600, UNKNOWN), "nothing is known to be wrong with it yet");
        slow.emit_raw(late);
        second
    } else {
        slow.emit_raw(late);
        begin()
    };
    let after = settled(&mut second);
    let peak = device(&after, 1).dram_peak;
    assert!(peak.low <= 500, "{peak:?}, true 500");
    assert_eq!(after.failures[0].flags & failure_flags::HOLDERS_EXACT, 0, "it held 0 then, not 100");
}

#[test]
fn what_was_adopted_is_doubted_since_an_event_that_came_late_for_it() {
    adopted_before_a_late_event(false);
}

#[test]
fn what_was_adopted_is_doubted_since_an_event_that_comes_late_for_both() {
    adopted_before_a_late_event(true);
}

/// The next aggregator reads so much from a ring that it takes several batches. What was held at the end of
/// one of them was long before the window.
#[test]
fn what_is_read_again_from_before_the_window_does_not_count_in_it() {
    let scene = Scene::new();
    let mut process = TestProcess::new(&scene.namespace, 1 << 14);
    process.register(chip(1));
    let mut first = scene.aggregator();
    process.alloc(0, Class::Dram, 900);
    (0..6000).for_each(|_| process.emit(Event::new(EventKind::DeviceOpen, 0)));
    process.free(0, Class::Dram, 900);
    process.alloc(0, Class::Dram, 10);
    first.settle();
    first.reset_window();
    first.settle();
    let peak = device(&settled(&mut first), 1).dram_peak;
    assert_eq!((peak.low, peak.high), (10, 10));
    let publisher = TablePublisher::create(Claim::take(&scene.namespace).unwrap(), &first).unwrap();
    drop((publisher, first));

    process.alloc(0, Class::Dram, 1);
    let claim = Claim::take(&scene.namespace).unwrap();
    let mut second = Aggregator::resume(Config::new(scene.namespace.clone()), claim.adopt()).unwrap();
    let peak = device(&settled(&mut second), 1).dram_peak;
    assert!(peak.low <= 11, "{peak:?}, true 11");
}

/// An event from just before an aggregator began its history is folded after that, together with one of the next bucket.
#[test]
fn what_happened_before_the_history_began_is_in_it() {
    let scene = Scene::new();
    let mut process = scene.process();
    process.register(chip(1));
    process.alloc(0, Class::Dram, 1);
    let slept = process.clock.ticks();
    let mut aggregator = scene.aggregator();
    process.emit_raw(Event { time: slept, ..buffer(EventKind::Alloc, 0, Class::Dram, 500) });
    let bucket = HISTORY_RESOLUTIONS[0];
    let next = monotonic_ns().next_multiple_of(bucket);
    std::thread::sleep(Duration::from_nanos(next + bucket / 10 - monotonic_ns()));
    process.free(0, Class::Dram, 500);
    // So that both are folded in one go.
    pause();
    aggregator.settle();
    let (row, _) = aggregator.snapshot().devices[0];
    let first = aggregator.history(row, 0).into_iter().find(|bucket| bucket.start == next);
    let first = first.expect("a bucket that began after us");
    assert_eq!((first.dram_min, first.dram_max), (1, 501));
}

/// A process whose counters have to be read in full holds the merge back for a moment. That does not make
/// devices doubtful that it does not use.
#[test]
fn who_is_waited_for_makes_no_history_doubtful() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let mut process = scene.process();
    process.register(chip(1));
    process.alloc(0, Class::Dram, 100);
    let bucket = HISTORY_RESOLUTIONS[0];
    // Longer than the merge is ever held back.
    let last = (monotonic_ns() + 2_200_000_000).next_multiple_of(bucket);
    while monotonic_ns() < last + bucket + bucket / 2 {
        aggregator.poll();
        pause();
    }
    let mut lapped = TestProcess::new(&scene.namespace, 64);
    lapped.register(chip(2));
    (0..100).for_each(|_| lapped.emit(Event::new(EventKind::DeviceOpen, 0)));
    aggregator.settle();
    (0..100).for_each(|_| lapped.emit(Event::new(EventKind::DeviceOpen, 0)));
    assert!(settled(&mut aggregator).missed > 0);
    let snapshot = aggregator.snapshot();
    let (row, _) = snapshot.devices.iter().find(|(_, device)| device.entry.chip_id == 1).unwrap();
    let seen = aggregator.history(*row, 0).into_iter().find(|bucket| bucket.start == last).unwrap();
    assert_eq!((seen.dram_max, seen.flags & bucket_flags::INEXACT), (100, 0));
}

/// Two programs in two lanes run one kernel: it is loaded once, and resident twice.
#[test]
fn more_may_be_resident_than_is_loaded() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let mut process = TestProcess::new(&scene.namespace, 64);
    process.register(chip(1));
    process.emit(Event::new(EventKind::DeviceOpen, 0));
    aggregator.settle();
    let dispatch = |program: u64, lane: u16, bytes: u64| Event {
        id: program,
        aux: bytes,
        address: 1,
        place: lane,
        flags: flags::RESIDENT,
        class: Class::KernelApplication as u8,
        ..Event::new(EventKind::KernelDispatch, 0)
    };
    process.emit(buffer(EventKind::KernelLoad, 0, Class::KernelApplication, 100));
    process.emit(dispatch(1, 0, 100));
    process.emit(dispatch(2, 3, 100));
    assert_eq!(process.counters(0).kernels_resident(), 200);
    process.emit(dispatch(3, 0, 0));
    process.emit(dispatch(4, 3, 0));
    (0..100).for_each(|_| process.emit(Event::new(EventKind::DeviceOpen, 0)));
    let snapshot = settled(&mut aggregator);
    assert!(snapshot.missed > 0);
    let peak = device(&snapshot, 1).kernel_resident_peak;
    assert!(peak.high >= 200, "{peak:?}, true 200");
}

#[test]
fn who_could_not_be_read_may_have_used_a_chip_that_is_named_later() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let brief = scene.process();
    std::fs::remove_file(&brief.path).unwrap();
    drop(brief);
    assert_eq!(settled(&mut aggregator).lost, 1);
    let mut later = scene.process();
    later.register(chip(2));
    later.alloc(0, Class::Dram, 100);
    let peak = device(&settled(&mut aggregator), 2).dram_peak;
    assert_eq!((peak.low, peak.high), (100, UNKNOWN));
    aggregator.reset_window();
    aggregator.settle();
    later.register(chip(3));
    later.alloc(1, Class::Dram, 50);
    let peak = device(&settled(&mut aggregator), 3).dram_peak;
    assert_eq!((peak.low, peak.high), (50, 50), "not in a later window");
}

/// What a broken process reported, including the times of its events, is not believed.
#[test]
fn a_broken_process_is_in_no_figure_whatever_times_it_claimed() {
    let hour = 3_600_000_000_000;
    for (ahead, is_old) in [(hour, false), (0, true)] {
        let scene = Scene::new();
        let mut aggregator = scene.aggregator();
        let mut honest = scene.process();
        honest.register(chip(1));
        honest.alloc(0, Class::Dram, 10);
        for _ in 0..3 {
            // Several slices of time.
            std::thread::sleep(Duration::from_millis(15));
            honest.free(0, Class::Dram, 10);
            honest.alloc(0, Class::Dram, 10);
            aggregator.settle();
        }
        let mut broken = scene.process();
        broken.change_header(|header| header.anchor_monotonic_ns += ahead);
        broken.register(chip(1));
        aggregator.settle();
        let now = broken.clock.ticks();
        broken.emit_raw(Event {
            time: if is_old { 1 } else { now },
            ..buffer(EventKind::Alloc, 0, Class::Dram, HUGE)
        });
        aggregator.settle();
        std::thread::sleep(Duration::from_millis(300));
        aggregator.settle();
        broken.free(0, Class::Dram, HUGE + 1);
        let peak = device(&settled(&mut aggregator), 1).dram_peak;
        assert_eq!((peak.low, peak.high), (10, UNKNOWN));
        for resolution in 0..3 {
            let history = aggregator.history(0, resolution);
            let spoilt = history.iter().find(|b| b.dram_max >= HUGE && b.flags & bucket_flags::INEXACT == 0);
            assert!(spoilt.is_none(), "{spoilt:?}");
        }
    }
}

/// A process of another time namespace without a counter of its own: its times are an hour behind.
#[test]
fn times_that_mean_nothing_are_not_merged() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let (mut elsewhere, mut here) = (scene.process(), scene.process());
    elsewhere.change_header(|header| {
        header.clock_kind = u64::from(ClockKind::Monotonic.code());
        header.time_namespace = 12345;
    });
    elsewhere.register(chip(1));
    here.register(chip(1));
    here.alloc(0, Class::Dram, 700);
    here.free(0, Class::Dram, 700);
    aggregator.settle();
    let behind = monotonic_ns().saturating_sub(3_600_000_000_000);
    elsewhere.emit_raw(Event { time: behind, ..buffer(EventKind::Alloc, 0, Class::Dram, 100) });
    let snapshot = settled(&mut aggregator);
    let shown = device(&snapshot, 1);
    assert_eq!(shown.dram_used_bytes, 100);
    assert!(shown.dram_peak.low <= 700 && shown.dram_peak.high >= 700, "{:?}, true 700", shown.dram_peak);
    let own = snapshot.usages.iter().find(|(_, usage)| usage.counters.dram_peak_bytes == 100).unwrap().1;
    assert_eq!(own.counters.dram_peak_time, 0, "unknown, not {behind}");
    elsewhere.emit_raw(Event { time: behind + 1, ..buffer(EventKind::Free, 0, Class::Dram, 100) });
    let snapshot = settled(&mut aggregator);
    assert_eq!((device(&snapshot, 1).dram_used_bytes, snapshot.missed), (0, 0));
    drop(elsewhere);
    while aggregator.segments() == 2 {
        aggregator.settle();
    }
    aggregator.reset_window();
    let peak = device(&settled(&mut aggregator), 1).dram_peak;
    assert_eq!((peak.low, peak.high), (0, 0), "exact again in a later window");
}

/// What it does between two readings of its counters concerns no peak from before the first of them.
#[test]
fn without_times_a_process_is_in_doubt_only_since_it_was_last_read() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let (mut elsewhere, mut here) = (scene.process(), scene.process());
    elsewhere.change_header(|header| {
        header.clock_kind = u64::from(ClockKind::Monotonic.code());
        header.time_namespace = 12345;
    });
    elsewhere.register(chip(1));
    here.register(chip(1));
    here.alloc(0, Class::Dram, 700);
    here.free(0, Class::Dram, 700);
    aggregator.settle();
    elsewhere.emit_raw(Event::new(EventKind::DeviceOpen, 0));
    aggregator.settle();
    elsewhere.emit_raw(buffer(EventKind::Alloc, 0, Class::Dram, 100));
    let shown = device(&settled(&mut aggregator), 1);
    let peak = shown.dram_peak;
    assert_eq!((shown.dram_used_bytes, peak.low, peak.high), (100, 700, 700));
}

#[test]
fn what_was_missed_is_in_doubt_only_since_the_last_event_before_it() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let (mut lapped, mut other) = (TestProcess::new(&scene.namespace, 64), scene.process());
    lapped.register(chip(1));
    other.register(chip(1));
    aggregator.settle();
    other.alloc(0, Class::Dram, 700);
    other.free(0, Class::Dram, 700);
    // What is longer ago than this is told apart.
    std::thread::sleep(Duration::from_millis(20));
    aggregator.settle();
    lapped.emit(Event::new(EventKind::DeviceOpen, 0));
    aggregator.settle();
    for _ in 0..50 {
        lapped.alloc(0, Class::Dram, 100);
        lapped.free(0, Class::Dram, 100);
    }
    let snapshot = settled(&mut aggregator);
    let peak = device(&snapshot, 1).dram_peak;
    assert!(snapshot.missed > 0);
    assert_eq!((peak.low, peak.high), (700, 700));
}

/// An aggregator that is not notified of names and publishes no table cannot know which processes came and
/// went.
#[test]
fn without_being_told_of_names_a_peak_is_at_least() {
    let scene = Scene::new();
    let mut process = scene.process();
    let unwatched = Config { watch: false, ..Config::new(scene.namespace.clone()) };
    let mut aggregator = Aggregator::new(unwatched).unwrap();
    process.register(chip(1));
    process.alloc(0, Class::Dram, 100);
    aggregator.settle();
    aggregator.reset_window();
    assert_eq!(device(&settled(&mut aggregator), 1).dram_peak.high, UNKNOWN);
    aggregator.watch();
    aggregator.settle();
    aggregator.reset_window();
    let peak = device(&settled(&mut aggregator), 1).dram_peak;
    assert_eq!((peak.low, peak.high), (100, 100), "from when it is told");
}

/// A process has so much in its ring that others are merged without it. What it holds by then may be more
/// than what was folded of it.
#[test]
fn who_is_passed_in_the_merge_may_have_had_more() {
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let (mut flood, mut other) = (TestProcess::new(&scene.namespace, 1 << 18), scene.process());
    flood.register(chip(1));
    other.register(chip(1));
    let long_ago = flood.clock.ticks();
    aggregator.settle();
    std::thread::sleep(Duration::from_millis(2_200));
    other.alloc(0, Class::Dram, 500);
    other.free(0, Class::Dram, 500);
    let idle = Event { time: long_ago, ..Event::new(EventKind::DeviceOpen, 0) };
    (0..250_000).for_each(|_| flood.emit_raw(idle));
    flood.emit_raw(Event { time: long_ago, ..buffer(EventKind::Alloc, 0, Class::Dram, 100) });
    pause();
    aggregator.poll();
    let peak = device(&aggregator.snapshot(), 1).dram_peak;
    assert!(peak.low <= 600 && peak.high >= 600, "{peak:?}, true 600");
    while aggregator.poll().events > 0 {}
    let shown = device(&settled(&mut aggregator), 1);
    assert_eq!(shown.dram_used_bytes, 100);
    assert!(shown.dram_peak.low <= 600 && shown.dram_peak.high >= 600, "{:?}, true 600", shown.dram_peak);
}
