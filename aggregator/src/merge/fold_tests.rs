//! The fold against plain addition.

use crate::merge::fold::{FoldError, fold_events};
use crate::merge::queue::{Batch, Item};
use crate::model::Model;
use crate::model::figures::{FIGURES, Share};
use crate::model::slice::Span;
use crate::segments::clock::Clock;
use fastrand::Rng;
use shm_layout::table::{DeviceStats, HISTORY_RESOLUTIONS, ProcessStats, failure_flags};
use shm_layout::{Class, Counters, DeviceEntry, Event, EventKind, NO_DEVICE, UNKNOWN, flags};
use tt_shm_os::ClockKind;

fn model(processes: u64) -> Model {
    let mut model = Model::new(Clock::new(), 0, 1);
    for identity in 1..=processes {
        let stats = ProcessStats { identity, pid: identity, ..bytemuck::Zeroable::zeroed() };
        let row = model.add_process(stats, Some(ClockKind::Monotonic)).unwrap();
        model.add_device(row, &DeviceEntry { chip_id: 1, ..bytemuck::Zeroable::zeroed() });
    }
    model
}

fn fold(model: &mut Model, process: usize, time: u64, event: &Event) -> Result<(), FoldError> {
    fold_events(model, process, 1, &mut Batch::new(&[(time, Item::Event(*event))], time))
}

fn shown(model: &Model) -> DeviceStats {
    model.device_stats(1, model.devices.get(0).unwrap())
}

fn event(kind: EventKind, class: Class, size: u64, stamp: u64) -> Event {
    Event { class: class as u8, size, aux: size, stamp, time: stamp, ..Event::new(kind, 0) }
}

/// What a process holds: class and size of each allocation.
type Held = Vec<(Class, u64)>;

fn random_event(random: &mut Rng, held: &mut Held, stamp: u64) -> Event {
    let classes = [Class::Dram, Class::Trace, Class::L1, Class::KernelDispatch, Class::SystemMemory];
    match random.u64(..10) {
        0..4 if !held.is_empty() => {
            let (class, size) = held.swap_remove(random.usize(..held.len()));
            event(EventKind::Free, class, size, stamp)
        }
        9 => Event {
            // One dispatch, of circular buffers and of kernels on Tensix cores.
            address: 1,
            size: random.u64(..50),
            aux: random.u64(..50),
            flags: flags::RESIDENT,
            ..event(EventKind::KernelDispatch, Class::Cb, 0, stamp)
        },
        _ => {
            let class = classes[random.usize(..5)];
            let size = 1 + random.u64(..100);
            held.push((class, size));
            event(EventKind::Alloc, class, size, stamp)
        }
    }
}

#[test]
fn sums_and_peaks_are_those_of_adding_everything_up() {
    let mut random = Rng::with_seed(7);
    for _ in 0..20 {
        let mut model = model(3);
        let mut held: [Held; 3] = Default::default();
        let mut truth = [Counters::ZERO; 3];
        let (mut dram, mut l1, mut cb, mut kernels, mut made_of) = (0, 0, 0, 0, [0; 3]);
        for stamp in 1..400 {
            let process = random.usize(..3);
            let event = random_event(&mut random, &mut held[process], stamp);
            truth[process].apply(&event).unwrap();
            fold(&mut model, process, stamp, &event).unwrap();
            let used = truth.map(|counters| counters.dram_used());
            if used.iter().sum::<u64>() > dram {
                (dram, made_of) = (used.iter().sum(), used);
            }
            l1 = l1.max(truth.iter().map(Counters::l1_used).sum::<u64>());
            cb = cb.max(truth.iter().map(|own| own.cb_resident_bytes).sum::<u64>());
            let resident = |own: &Counters| own.kernel_resident_bytes + own.system_kernel_bytes;
            kernels = kernels.max(truth.iter().map(resident).sum::<u64>());
            if random.u64(..5) == 0 {
                model.advance(stamp);
            }
        }
        model.advance(400);
        let shown = shown(&model);
        assert_eq!(shown.dram_used_bytes, truth.iter().map(Counters::dram_used).sum::<u64>());
        assert_eq!(shown.l1_used_bytes, truth.iter().map(Counters::l1_used).sum::<u64>());
        assert_eq!((shown.dram_peak.low, shown.dram_peak.high), (dram, dram));
        assert_eq!((shown.l1_peak.low, shown.l1_peak.high), (l1, l1));
        assert!(cb > 0 && kernels > 0);
        assert_eq!((shown.cb_resident_peak.low, shown.cb_resident_peak.high), (cb, cb));
        assert_eq!((shown.kernel_resident_peak.low, shown.kernel_resident_peak.high), (kernels, kernels));
        for holder in shown.dram_composition.holders.iter().filter(|holder| holder.identity != 0) {
            assert_eq!(holder.bytes, made_of[holder.identity as usize - 1]);
        }
    }
}

/// A few events of a process in a row; some turns come late.
fn random_turn(random: &mut Rng, held: &mut Held, stamp: &mut u64) -> Vec<(u64, Item)> {
    let behind = if random.u64(..4) == 0 { 10 } else { 0 };
    let turn = (0..1 + random.u64(..6)).map(|_| {
        *stamp += 1;
        let event = match random.u64(..8) {
            0 => Event { stamp: *stamp, ..Event::new(EventKind::Marker, NO_DEVICE) },
            _ => random_event(random, held, *stamp),
        };
        (20 + *stamp - behind, Item::Event(event))
    });
    turn.collect()
}

#[test]
fn a_run_is_folded_as_its_events_one_by_one() {
    let (mut random, mut stamp) = (Rng::with_seed(3), 0);
    let (mut together, mut apart) = (model(2), model(2));
    let mut held: [Held; 2] = Default::default();
    for _ in 0..300 {
        let process = random.usize(..2);
        let items = random_turn(&mut random, &mut held[process], &mut stamp);
        for (time, item) in &items {
            let Item::Event(event) = item else { unreachable!() };
            fold(&mut apart, process, *time, event).unwrap();
        }
        let mut run = Batch::new(&items, u64::MAX);
        fold_events(&mut together, process, 1, &mut run).unwrap();
        assert_eq!(run.left(), 0);
    }
    together.advance(stamp + 20);
    apart.advance(stamp + 20);
    assert_eq!(shown(&together), shown(&apart));
    let figures = |model: &Model| {
        let all = [0, 1].map(|row| model.process_stats(1, model.processes.get(row).unwrap()));
        (all, model.totals.events, model.totals.late)
    };
    assert_eq!(figures(&together), figures(&apart));
    assert!(together.totals.late > 0 && together.totals.events == stamp);
}

#[test]
fn a_run_ends_with_its_time() {
    let mut model = model(1);
    let event = |stamp| Item::Event(event(EventKind::Alloc, Class::Dram, 10, stamp));
    let items = [(1, event(1)), (2, event(2)), (4, event(3))];
    let mut run = Batch::new(&items, 3);
    fold_events(&mut model, 0, 1, &mut run).unwrap();
    assert_eq!((run.left(), shown(&model).dram_used_bytes), (1, 20));
}

/// A ring that is read for the first time may have old events: these count, and are in no rate.
#[test]
fn the_rates_are_those_of_the_last_second() {
    const SECOND: u64 = 1_000_000_000;
    let (old, recent) = (9 * SECOND, 9 * SECOND + 1);
    let mut model = model(2);
    model.now = 10 * SECOND;
    model.advance(0);
    let dispatch = |times, stamp| Event {
        address: times,
        flags: flags::RESIDENT,
        ..event(EventKind::KernelDispatch, Class::Cb, 0, stamp)
    };
    let marker = |stamp| Event { device: NO_DEVICE, ..event(EventKind::Marker, Class::Dram, 0, stamp) };
    let alloc = |stamp| event(EventKind::Alloc, Class::Dram, 1, stamp);
    // In order: one is old, two are recent.
    for (time, event) in [(old, dispatch(5, 1)), (recent, dispatch(7, 2)), (recent + 1, alloc(3))] {
        fold(&mut model, 0, time, &event).unwrap();
    }
    // Late: one is old, four are recent. On no device: two are old, six are recent.
    let late = [old - 1, recent, recent, recent, recent].map(|time| (time, alloc(1)));
    let nowhere = [old, old, recent, recent, recent, recent, recent, recent].map(|time| (time, marker(1)));
    for (time, event) in late.into_iter().chain(nowhere) {
        fold(&mut model, 1, time, &event).unwrap();
    }
    model.now += SECOND / 8;
    model.advance(0);
    let shown = shown(&model);
    assert_eq!((shown.events, shown.events_per_1000s, shown.dispatches_per_1000s), (8, 6000, 7000));
    let rates = [0, 1].map(|row| model.process_stats(1, model.processes.get(row).unwrap()).events_per_1000s);
    assert_eq!((model.totals.events, model.totals.late, rates), (16, 5, [2000, 10_000]));
}

#[test]
fn a_late_free_lowers_what_is_certain_of_a_peak() {
    let mut model = model(2);
    fold(&mut model, 0, 10, &event(EventKind::Alloc, Class::Dram, 100, 1)).unwrap();
    fold(&mut model, 1, 30, &event(EventKind::Alloc, Class::Dram, 100, 1)).unwrap();
    assert_eq!(shown(&model).dram_peak.low, 200);
    // In truth process 0 had freed before process 1 allocated.
    fold(&mut model, 0, 20, &event(EventKind::Free, Class::Dram, 100, 2)).unwrap();
    let peak = shown(&model).dram_peak;
    assert_eq!((peak.low, peak.high), (100, 200));
    assert_eq!(model.totals.late, 1);
}

#[test]
fn a_late_dispatch_takes_the_certainty_from_what_was_resident() {
    let dispatch = |cb, kernels, stamp| Event {
        address: 1,
        size: cb,
        aux: kernels,
        flags: flags::RESIDENT,
        ..event(EventKind::KernelDispatch, Class::Cb, 0, stamp)
    };
    let mut model = model(2);
    let cb = |bytes, stamp| event(EventKind::CbAlloc, Class::Cb, bytes, stamp);
    for process in 0..2 {
        fold(&mut model, process, 5, &cb(100, 1)).unwrap();
    }
    fold(&mut model, 0, 10, &dispatch(100, 0, 2)).unwrap();
    fold(&mut model, 1, 30, &dispatch(100, 0, 2)).unwrap();
    let peak = shown(&model).cb_resident_peak;
    assert_eq!((peak.low, peak.high), (200, 200));
    // In truth another program, as large in all, had taken the place of the first before.
    fold(&mut model, 0, 20, &dispatch(40, 60, 3)).unwrap();
    let peak = shown(&model).cb_resident_peak;
    assert_eq!((peak.low, peak.high), (140, 200));
}

#[test]
fn an_impossible_event_changes_nothing_of_the_device() {
    let mut model = model(2);
    fold(&mut model, 0, 10, &event(EventKind::Alloc, Class::Dram, 100, 1)).unwrap();
    model.advance(10);
    let before = shown(&model);
    let unload =
        Event { flags: flags::ETHERNET, ..event(EventKind::KernelUnload, Class::KernelFabric, 9, 1) };
    assert!(fold(&mut model, 1, 11, &unload).is_err());
    assert_eq!(shown(&model), before);
}

#[test]
fn a_late_event_takes_the_certainty_from_the_holders_of_a_failure() {
    let mut model = model(2);
    fold(&mut model, 0, 10, &event(EventKind::Alloc, Class::Dram, 100, 1)).unwrap();
    fold(&mut model, 1, 15, &event(EventKind::AllocFailed, Class::Dram, 7, 1)).unwrap();
    fold(&mut model, 1, 30, &event(EventKind::Alloc, Class::Dram, 100, 2)).unwrap();
    fold(&mut model, 1, 31, &event(EventKind::AllocFailed, Class::Dram, 7, 3)).unwrap();
    model.settle_failures();
    let held: Vec<u64> = model.failures.newest_first().iter().map(|failure| failure.classes[0]).collect();
    assert_eq!((held, exact(&model)), (vec![200, 100], vec![true, true]));
    // In truth process 0 had freed before the second failure, and after the first.
    fold(&mut model, 0, 20, &event(EventKind::Free, Class::Dram, 100, 2)).unwrap();
    assert_eq!(exact(&model), [false, true]);
}

/// Of each failure, the latest first, whether its holders are certain.
fn exact(model: &Model) -> Vec<bool> {
    let failures = model.failures.newest_first();
    failures.iter().map(|failure| failure.has(failure_flags::HOLDERS_EXACT)).collect()
}

#[test]
fn the_holders_of_a_failure_that_comes_late_are_not_certain() {
    let mut model = model(2);
    fold(&mut model, 1, 30, &event(EventKind::Alloc, Class::Dram, 100, 1)).unwrap();
    fold(&mut model, 0, 20, &event(EventKind::AllocFailed, Class::Dram, 7, 1)).unwrap();
    fold(&mut model, 0, 40, &event(EventKind::AllocFailed, Class::Dram, 7, 2)).unwrap();
    model.settle_failures();
    assert_eq!(exact(&model), [true, false]);
    assert_eq!((model.totals.late, shown(&model).dram_peak.low, shown(&model).dram_peak.high), (1, 100, 100));
}

#[test]
fn what_happened_before_a_failure_and_came_after_it_is_noticed() {
    let mut model = model(2);
    fold(&mut model, 0, 10, &event(EventKind::Alloc, Class::Dram, 100, 1)).unwrap();
    fold(&mut model, 1, 15, &event(EventKind::AllocFailed, Class::Dram, 7, 1)).unwrap();
    fold(&mut model, 1, 30, &event(EventKind::AllocFailed, Class::Dram, 7, 2)).unwrap();
    model.settle_failures();
    assert_eq!(exact(&model), [true, true]);
    // The failures changed nothing, so that the peak is as certain as it was.
    fold(&mut model, 0, 20, &event(EventKind::Free, Class::Dram, 100, 2)).unwrap();
    assert_eq!(exact(&model), [false, true]);
    assert_eq!((model.totals.late, shown(&model).dram_peak.low, shown(&model).dram_peak.high), (1, 100, 100));
}

#[test]
fn a_late_event_on_one_chip_leaves_the_failures_on_others() {
    let mut model = model(2);
    for process in 0..2 {
        model.add_device(process, &DeviceEntry { chip_id: 2, ..bytemuck::Zeroable::zeroed() });
    }
    let on = |device, event: Event| Event { device, ..event };
    let mut fold = |process, time, event: Event| {
        fold_events(&mut model, process, 2, &mut Batch::new(&[(time, Item::Event(event))], time)).unwrap();
    };
    fold(0, 30, event(EventKind::Alloc, Class::Dram, 100, 1));
    fold(0, 31, on(1, event(EventKind::AllocFailed, Class::Dram, 7, 2)));
    fold(0, 32, event(EventKind::AllocFailed, Class::Dram, 7, 3));
    fold(0, 33, event(EventKind::Alloc, Class::Dram, 100, 4));
    fold(0, 34, on(1, event(EventKind::Alloc, Class::Dram, 100, 5)));
    fold(1, 20, event(EventKind::Alloc, Class::Dram, 100, 1));
    assert_eq!(exact(&model), [false, true]);
}

/// Who held what is noted when the next thing happens on the device, or nothing does. If that is a doubt, it is about this
/// failure, too.
#[test]
fn a_failure_that_is_not_noted_yet_is_doubted_as_well() {
    let mut model = model(2);
    fold(&mut model, 0, 10, &event(EventKind::Alloc, Class::Dram, 100, 1)).unwrap();
    fold(&mut model, 1, 15, &event(EventKind::AllocFailed, Class::Dram, 7, 1)).unwrap();
    model.doubt_failures(0, 12);
    model.settle_failures();
    assert_eq!(exact(&model), [false]);
}

/// A clock stepped between two looks: what was merged of that time may have been in another order.
#[test]
fn when_a_clock_steps_only_what_was_before_is_certain() {
    let mut model = model(2);
    model.begin_history(0);
    fold(&mut model, 0, 10, &event(EventKind::Alloc, Class::Dram, 100, 1)).unwrap();
    fold(&mut model, 0, 11, &event(EventKind::AllocFailed, Class::Dram, 7, 2)).unwrap();
    fold(&mut model, 1, 30, &event(EventKind::Alloc, Class::Dram, 500, 1)).unwrap();
    fold(&mut model, 1, 31, &event(EventKind::AllocFailed, Class::Dram, 7, 2)).unwrap();
    fold(&mut model, 1, 32, &event(EventKind::Free, Class::Dram, 500, 3)).unwrap();
    model.settle_failures();
    assert_eq!((shown(&model).dram_peak.low, shown(&model).dram_peak.high), (600, 600));
    assert_eq!(exact(&model), [true, true]);
    model.doubt_order(Span { from: 20, to: 40 });
    let peak = shown(&model).dram_peak;
    // Each of them had that by itself; together they may have had anything.
    assert_eq!((peak.low, peak.high), (500, UNKNOWN));
    assert_eq!(exact(&model), [false, true]);
}

/// A process said when it closed its segment, and that is noticed when the next bucket of the history has begun.
#[test]
fn an_end_that_is_noticed_later_makes_the_open_bucket_doubtful() {
    const BUCKET: u64 = HISTORY_RESOLUTIONS[0];
    // Right after its last event, and right before the bucket begins that does not know of it.
    for (alloc, closed) in [(2 * BUCKET + 1, 2 * BUCKET + 3), (3 * BUCKET - 5, 3 * BUCKET - 3)] {
        let mut model = model(2);
        model.begin_history(BUCKET);
        fold(&mut model, 0, alloc, &event(EventKind::Alloc, Class::Dram, 100, 1)).unwrap();
        model.advance(alloc + 1);
        model.advance(3 * BUCKET + 1);
        model.bury(0, Some(closed), alloc, 3 * BUCKET + 2);
        model.advance(4 * BUCKET + 1);
        let device = model.devices.get_mut(0).unwrap();
        device.history.flush();
        let buckets = device.history.buckets(0);
        let seen: Vec<_> = buckets.iter().map(|bucket| (bucket.dram_max, bucket.flags)).collect();
        // The third had nothing, but saw what was there before.
        assert_eq!(seen, [(0, 1), (100, 1), (100, 1), (0, 0)], "closed at {closed}");
    }
}

/// A device that is used for the first time may have been used before histories began: the buckets that reach back to
/// then are not exact, the others are.
#[test]
fn the_history_of_a_new_device_is_exact_only_since_histories_began() {
    const BUCKET: u64 = HISTORY_RESOLUTIONS[0];
    let coarse = HISTORY_RESOLUTIONS[1];
    let mut model = model(1);
    model.begin_history(coarse + 1);
    for (time, coarse_flags) in [(coarse + 2 * BUCKET, 1), (2 * coarse + 2 * BUCKET, 0)] {
        model.now = time;
        model.add_device(0, &DeviceEntry { chip_id: time, ..bytemuck::Zeroable::zeroed() });
        let row = model.devices.values().find(|(_, device)| device.entry.chip_id == time).unwrap().0;
        let history = &mut model.devices.get_mut(row).unwrap().history;
        history.flush();
        assert_eq!((history.buckets(0)[0].flags, history.buckets(1)[0].flags), (0, coarse_flags));
    }
}

/// Counters of a process that holds `live` now and had `peak` at a time.
fn counters(live: u64, peak: u64, time: u64) -> Counters {
    let mut counters = Counters::ZERO;
    let dram = &mut counters.classes[Class::Dram as usize];
    (dram.live_bytes, dram.live_count, dram.alloc_count) = (live, 1, 2);
    (dram.peak_bytes, dram.peak_time, dram.peak_count) = (peak, time, 1);
    (counters.dram_peak_bytes, counters.dram_peak_time, counters.time) = (peak, time, time);
    counters
}

/// Events of a process were missed, twice. Together they cannot have had more than each its own peak, unless one of them
/// has forgotten it.
#[test]
fn what_was_missed_is_bounded_by_what_each_had_at_most() {
    for (reset, most) in [(0, 700 + 50), (25, UNKNOWN)] {
        let mut model = model(2);
        fold(&mut model, 0, 10, &event(EventKind::Alloc, Class::Dram, 100, 1)).unwrap();
        fold(&mut model, 1, 11, &event(EventKind::Alloc, Class::Dram, 50, 1)).unwrap();
        // Both reach back to its last event.
        for (time, since) in [(30, 10), (50, 10)] {
            let counters = Counters { peak_reset_time: reset, ..counters(80, 700, 20) };
            model.fold_counters(0, counters, time, since);
        }
        model.end_generation();
        let peak = shown(&model).dram_peak;
        assert_eq!((shown(&model).dram_used_bytes, peak.high), (130, most), "{peak:?}");
        assert!(peak.low >= 700, "it had that by itself: {peak:?}");
    }
}

/// Something that happened after counters were read is merged already: with what was known before.
#[test]
fn counters_that_are_folded_late_concern_what_was_merged_since() {
    let mut model = model(2);
    fold(&mut model, 0, 10, &event(EventKind::Alloc, Class::Dram, 100, 1)).unwrap();
    fold(&mut model, 1, 50, &event(EventKind::Alloc, Class::Dram, 50, 1)).unwrap();
    assert_eq!(shown(&model).dram_peak.low, 150);
    model.fold_counters(0, counters(80, 100, 10), 30, 10);
    model.end_generation();
    let peak = shown(&model).dram_peak;
    assert_eq!((peak.low, peak.high), (130, 150));
}

/// What a process holds when it ends in an orderly way, it held until then.
#[test]
fn an_end_whose_time_is_known_leaves_peaks_exact() {
    for (closed, low) in [(Some(20), 600), (None, 100)] {
        let mut model = model(2);
        fold(&mut model, 0, 10, &event(EventKind::Alloc, Class::Dram, 500, 1)).unwrap();
        fold(&mut model, 1, 15, &event(EventKind::Alloc, Class::Dram, 100, 1)).unwrap();
        // If it did not say when, it may have ended before the other one came.
        model.bury(0, closed, 12, 30);
        let peak = shown(&model).dram_peak;
        assert_eq!(peak.high, 600);
        assert!(if closed.is_some() { peak.low == low } else { peak.low < 600 }, "{peak:?}");
        assert_eq!(shown(&model).dram_used_bytes, 100);
    }
}

#[test]
fn a_life_that_nobody_followed_had_no_more_than_its_own_peak() {
    for (reset, most) in [(0, 400), (6, UNKNOWN)] {
        let mut model = model(1);
        fold(&mut model, 0, 10, &event(EventKind::Alloc, Class::Dram, 100, 1)).unwrap();
        let counters = Counters { peak_reset_time: reset, ..counters(0, 300, 7) };
        let share = Share { identity: 9, pid: 9, counters: &counters };
        model.fold_unfollowed(0, &share, Span { from: 5, to: 20 }, &[None; FIGURES]);
        let peak = shown(&model).dram_peak;
        assert_eq!((peak.low, peak.high), (100, most));
    }
}
