//! The peak of a span of time, and what it was made of: exact, bounded or unknown, and never wrong.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::namespace;
use crate::common::segment::{SLOTS, Writer};
use shm_layout::control;
use tt_shm_reader::{Class, MemorySpan, PeakRange, ReadError, Segment, Span, SpanReport, monotonic_ns};
use tt_shm_writer::{
    Alloc, Allocation, BufferType, CircularBuffer, Device, DeviceInfo, Dispatch, NameId, Record, Tracker,
};

/// A process with one device and a ring of 64 events.
struct Host {
    tracker: Tracker,
    segment: Arc<Segment>,
    device: Device,
}

impl Host {
    fn new() -> Host {
        Host::with(|builder| builder)
    }

    fn with(change: impl FnOnce(tt_shm_writer::Builder) -> tt_shm_writer::Builder) -> Host {
        let builder = Tracker::builder().enabled(true).namespace(namespace().as_str()).ring_slots(SLOTS);
        let tracker = change(builder).open().unwrap();
        let device = tracker.register_device(&DeviceInfo { chip_id: 100, ..Default::default() }).unwrap();
        let segment = Arc::new(Segment::open(&tracker.segment_path().unwrap()).unwrap());
        Host { tracker, segment, device }
    }

    fn begin(&self) -> Span {
        Span::begin(Arc::clone(&self.segment)).unwrap()
    }

    fn name(&self, name: &str) -> NameId {
        self.tracker.intern(name).unwrap()
    }

    fn alloc(&self, id: u64, bytes: u64) {
        self.tracker.alloc(self.device, Alloc::new(BufferType::Dram, id, bytes)).unwrap();
    }

    fn alloc_named(&self, id: u64, bytes: u64, name: &str) {
        let alloc = Alloc::new(BufferType::Dram, id, bytes).name(self.name(name));
        self.tracker.alloc(self.device, alloc).unwrap();
    }

    fn free(&self, id: u64) {
        self.tracker.free(self.device, id).unwrap();
    }

    /// More events than the ring has, which leave nothing and use `bytes` at most.
    fn lap(&self, bytes: u64) {
        for _ in 0..SLOTS {
            self.alloc(9999, bytes);
            self.free(9999);
        }
    }
}

fn dram(report: &SpanReport) -> &MemorySpan {
    assert_eq!((report.broken.as_ref(), report.devices[0].chip_id), (None, Some(100)));
    &report.devices[0].dram
}

/// Name, bytes and count of each part.
fn parts(memory: &MemorySpan) -> Option<Vec<(&str, u64, u64)>> {
    let parts = memory.made_of.as_ref()?;
    Some(parts.iter().map(|part| (part.name.as_deref().unwrap_or("-"), part.bytes, part.count)).collect())
}

fn range(low: u64, high: impl Into<Option<u64>>) -> PeakRange {
    PeakRange { low, high: high.into() }
}

#[test]
fn a_span_that_was_followed_is_exact() {
    let host = Host::new();
    host.alloc_named(1, 100, "weights");
    host.alloc(2, 1000);
    host.free(2);
    let span = host.begin();
    host.alloc_named(3, 30, "input");
    host.alloc_named(4, 40, "input");
    host.alloc(5, 5);
    let reached = monotonic_ns();
    host.free(4);
    host.alloc(6, 39);
    host.free(3);
    let report = span.end();
    let dram = dram(&report);
    assert_eq!((dram.begin_bytes, dram.end_bytes, dram.peak), (100, Some(144), range(175, 175)));
    assert_eq!(dram.peak.exact(), Some(175), "not the 1000 from before it");
    assert_eq!(parts(dram).unwrap(), [("weights", 100, 1), ("input", 70, 2), ("-", 5, 1)]);
    let name_id = dram.made_of.as_ref().unwrap()[1].name_id;
    assert_eq!(host.segment.name_bytes_of(name_id).as_deref(), Some(&b"input"[..]));
    let time = dram.peak_time_ns.unwrap();
    assert!((report.begin_ns..=report.end_ns).contains(&time));
    assert!(time <= reached + 1_000_000, "when it was reached, not when it was looked at");
    assert_eq!((report.events, report.missed, report.is_doubted, report.is_behind), (6, 0, false, false));
    assert_eq!((report.begin_position, report.end_position), (3, 9));
    assert_eq!(report.devices[0].l1.peak, range(0, 0));
}

#[test]
fn what_a_span_began_with_may_be_its_peak() {
    let host = Host::new();
    host.alloc_named(1, 100, "weights");
    host.alloc_named(2, 50, "cache");
    let span = host.begin();
    host.free(2);
    host.alloc(3, 50);
    let report = span.end();
    let dram = dram(&report);
    assert_eq!(dram.peak.exact(), Some(150));
    assert_eq!(parts(dram).unwrap(), [("weights", 100, 1), ("cache", 50, 1)], "as much again is no new peak");
    assert_eq!(dram.peak_time_ns, None, "it was reached before");
}

#[test]
fn a_span_without_events_has_what_is_live() {
    let host = Host::new();
    let report = host.begin().end();
    assert_eq!(dram(&report).peak.exact(), Some(0));
    assert_eq!(parts(dram(&report)).unwrap(), []);
    host.alloc_named(1, 7, "x");
    let report = host.begin().end();
    assert_eq!(parts(dram(&report)).unwrap(), [("x", 7, 1)]);
    assert_eq!((report.events, report.begin_position, report.end_position), (0, 1, 1));
}

#[test]
fn a_name_that_comes_after_the_peak_is_that_of_its_part() {
    let host = Host::new();
    let span = host.begin();
    host.alloc(1, 10);
    host.alloc(2, 20);
    host.free(2);
    host.alloc(3, 3);
    for id in [1, 3] {
        let name = host.name("matmul");
        host.tracker.name(host.device, Allocation::Buffer(id), name, NameId::NONE).unwrap();
    }
    let report = span.end();
    assert_eq!(parts(dram(&report)).unwrap(), [("-", 20, 1), ("matmul", 10, 1)], "3 came after the peak");
}

#[test]
fn a_long_span_that_is_polled_misses_nothing() {
    let host = Host::new();
    let mut span = host.begin();
    for round in 0..100 {
        for id in 0..SLOTS / 8 {
            host.alloc(id, 10 + round);
        }
        for id in 0..SLOTS / 8 {
            host.free(id);
        }
        assert_eq!(span.poll(), SLOTS / 4);
    }
    assert_eq!(span.poll(), 0);
    let report = span.end();
    assert_eq!((report.events, report.missed), (100 * SLOTS / 4, 0));
    assert_eq!(dram(&report).peak.exact(), Some(109 * SLOTS / 8));
    assert_eq!(parts(dram(&report)).unwrap(), [("-", 109 * SLOTS / 8, SLOTS / 8)]);
}

#[test]
fn the_own_peak_bounds_what_was_missed() {
    let host = Host::new();
    host.alloc(1, 1000);
    host.free(1);
    host.alloc(1, 100);
    let span = host.begin();
    host.alloc(2, 20);
    host.lap(500);
    let report = span.end();
    assert!(report.missed > SLOTS && report.events == 0, "{report:?}");
    assert_eq!(report.begin_position + report.missed, report.end_position);
    let dram = dram(&report);
    assert_eq!((dram.begin_bytes, dram.end_bytes), (100, Some(120)));
    assert_eq!((dram.peak, dram.peak.exact()), (range(120, 1000), None), "it was 620");
    assert_eq!(dram.peak_time_ns, None, "it may have been any time");
    assert_eq!(parts(dram).unwrap(), [("-", 120, 2)], "of a moment at which that much was used");
}

#[test]
fn an_own_peak_that_rose_is_the_peak() {
    let host = Host::new();
    host.alloc(1, 100);
    let span = host.begin();
    host.alloc(2, 900);
    let reached = monotonic_ns();
    host.free(2);
    host.lap(500);
    let report = span.end();
    assert!(report.missed > 0);
    let dram = dram(&report);
    assert_eq!((dram.peak.exact(), dram.end_bytes), (Some(1000), Some(100)));
    let time = dram.peak_time_ns.unwrap();
    assert!((report.begin_ns..=reached + 1_000_000).contains(&time));
    assert_eq!(parts(dram), None, "nobody saw what it was made of");
}

#[test]
fn an_own_peak_that_is_still_held_is_known_by_its_parts() {
    let host = Host::new();
    let span = host.begin();
    host.lap(10);
    host.alloc_named(1, 900, "cache");
    let report = span.end();
    assert!(report.missed > 0);
    assert_eq!(dram(&report).peak.exact(), Some(900));
    assert_eq!(parts(dram(&report)).unwrap(), [("cache", 900, 1)]);
}

#[test]
fn nothing_above_what_was_held_all_along_is_exact() {
    let host = Host::new();
    host.alloc_named(1, 1000, "weights");
    host.alloc(2, 10);
    let span = host.begin();
    host.free(2);
    host.lap(5);
    let report = span.end();
    assert!(report.missed > 0);
    assert_eq!(dram(&report).peak.exact(), Some(1010), "the own peak, which the span began with");
    assert_eq!(parts(dram(&report)).unwrap(), [("weights", 1000, 1), ("-", 10, 1)]);
}

#[test]
fn a_reset_meanwhile_leaves_no_bound() {
    let host = Host::new();
    host.alloc(1, 1000);
    let span = host.begin();
    host.alloc(2, 5000);
    host.free(2);
    host.tracker.reset_peaks(host.device).unwrap();
    host.alloc(3, 70);
    host.free(3);
    host.lap(60);
    let report = span.end();
    let dram = dram(&report);
    assert_eq!(dram.peak, range(1070, None), "it was 6000, and 1070 after the reset");
    assert!(dram.peak_time_ns.is_some(), "of the 1070");
}

/// The reset of a peak that rises above the one before looks like no reset.
#[test]
fn a_reset_is_noticed_where_the_peak_is_higher_than_before() {
    let host = Host::new();
    host.alloc(1, 10);
    let span = host.begin();
    host.alloc(2, 5000);
    host.free(2);
    host.tracker.reset_peaks(host.device).unwrap();
    host.alloc(3, 90);
    host.lap(1);
    let report = span.end();
    assert_eq!(dram(&report).peak, range(101, None));
}

#[test]
fn what_was_held_at_a_reset_has_no_time() {
    let host = Host::new();
    let span = host.begin();
    host.alloc(1, 100);
    host.tracker.reset_peaks(host.device).unwrap();
    host.free(1);
    host.lap(1);
    let report = span.end();
    assert_eq!((dram(&report).peak, dram(&report).peak_time_ns), (range(100, None), None));
}

#[test]
fn a_reset_that_was_seen_takes_nothing_away() {
    let host = Host::new();
    host.alloc(1, 100);
    let mut span = host.begin();
    host.alloc(2, 50);
    host.free(2);
    host.tracker.reset_peaks(host.device).unwrap();
    span.poll();
    host.lap(20);
    let report = span.end();
    assert!(report.missed > 0);
    assert_eq!(dram(&report).peak.exact(), Some(150), "no more than 120 was used in what was missed");
    assert_eq!(parts(dram(&report)).unwrap(), [("-", 150, 2)]);
}

#[test]
fn a_peak_that_was_seen_later_settles_what_was_missed() {
    let host = Host::new();
    host.alloc(1, 1000);
    host.free(1);
    let mut span = host.begin();
    host.lap(10);
    span.poll();
    host.alloc_named(2, 1001, "big");
    let report = span.end();
    assert!(report.missed > 0 && report.events > 0);
    assert_eq!(dram(&report).peak.exact(), Some(1001));
    assert_eq!(parts(dram(&report)).unwrap(), [("big", 1001, 1)]);
}

/// In the gap 1 got the name that 2 had all along, and then another: 2 keeps its name.
#[test]
fn a_name_after_a_gap_is_given_to_nothing_else() {
    let host = Host::new();
    let rename = |name: &str| {
        host.tracker.name(host.device, Allocation::Buffer(1), host.name(name), NameId::NONE).unwrap();
    };
    let mut span = host.begin();
    host.alloc(1, 10);
    host.alloc_named(2, 20, "x");
    host.alloc(3, 30);
    host.free(3);
    span.poll();
    rename("x");
    host.lap(1);
    span.poll();
    rename("y");
    let report = span.end();
    assert_eq!(dram(&report).peak.exact(), Some(60));
    assert_eq!(parts(dram(&report)).unwrap(), [("-", 40, 2), ("x", 20, 1)]);
}

#[test]
fn a_process_that_doubts_itself_is_never_exact() {
    let doubts: [fn(&Host); 2] =
        [|host| host.tracker.partial().unwrap(), |host| host.tracker.self_checks(3, 1).unwrap()];
    for doubt in doubts {
        for is_before in [true, false] {
            let host = Host::new();
            if is_before {
                doubt(&host);
            }
            let span = host.begin();
            host.alloc(1, 10);
            if !is_before {
                doubt(&host);
            }
            let report = span.end();
            assert!(report.is_doubted && report.missed == 0);
            assert_eq!(dram(&report).peak, range(10, None));
        }
    }
    let host = Host::new();
    host.tracker.self_checks(3, 0).unwrap();
    assert!(!host.begin().end().is_doubted);
}

/// What was in doubt at any moment of the span is in doubt.
#[test]
fn a_doubt_that_was_seen_stays() {
    let host = Host::new();
    host.tracker.partial().unwrap();
    let span = host.begin();
    host.tracker.complete().unwrap();
    assert!(span.end().is_doubted);
}

#[test]
fn l1_is_buffers_and_the_circular_buffers_of_resident_programs() {
    let host = Host::new();
    let (tracker, device) = (&host.tracker, host.device);
    let l1 = |id, bytes| Alloc::new(BufferType::L1, id, bytes);
    let dispatch = |program, name: &str| {
        tracker.dispatch(device, Dispatch::new(program).name(host.name(name))).unwrap();
    };
    for (program, bytes) in [(5, 70), (6, 40), (7, 8)] {
        tracker.cb_alloc(device, CircularBuffer::new(program, program, bytes, 1)).unwrap();
    }
    dispatch(5, "softmax");
    tracker.alloc(device, l1(1, 10).name(host.name("out"))).unwrap();
    let mut span = host.begin();
    dispatch(6, "add");
    let early = {
        span.poll();
        let report = host.begin().end();
        (report.devices[0].l1.peak.exact(), parts(&report.devices[0].l1).map(|parts| parts.len()))
    };
    assert_eq!(early, (Some(50), Some(2)));
    let report = span.end();
    let memory = &report.devices[0].l1;
    assert_eq!((memory.begin_bytes, memory.end_bytes, memory.peak.exact()), (80, Some(50), Some(80)));
    assert_eq!(parts(memory).unwrap(), [("softmax", 70, 1), ("out", 10, 1)]);
    assert_eq!(memory.made_of.as_ref().unwrap()[0].class, Class::Cb);

    let span = host.begin();
    tracker.alloc(device, l1(2, 31)).unwrap();
    dispatch(7, "copy");
    let report = span.end();
    let memory = &report.devices[0].l1;
    assert_eq!((memory.peak.exact(), memory.end_bytes), (Some(81), Some(49)));
    assert_eq!(parts(memory).unwrap(), [("add", 40, 1), ("-", 31, 1), ("out", 10, 1)]);
    assert_eq!(report.devices[0].dram.peak, range(0, 0));
}

#[test]
fn a_device_that_comes_in_the_span_began_with_nothing() {
    for is_lapped in [false, true] {
        let host = Host::new();
        let span = host.begin();
        let info = DeviceInfo { chip_id: 101, ..Default::default() };
        let other = host.tracker.register_device(&info).unwrap();
        host.tracker.alloc(other, Alloc::new(BufferType::Dram, 1, 10)).unwrap();
        host.tracker.free(other, 1).unwrap();
        if is_lapped {
            host.lap(1);
        }
        let report = span.end();
        assert_eq!(report.missed > 0, is_lapped);
        let [first, second] = &report.devices[..] else { panic!("{report:?}") };
        assert_eq!((first.device, second.device, second.chip_id), (0, 1, Some(101)));
        assert_eq!((second.dram.begin_bytes, second.dram.peak.exact()), (0, Some(10)));
    }
}

/// Without a row, an allocation has no name that anybody could read; what it uses is counted.
#[test]
fn what_is_not_listed_is_a_part_without_a_name() {
    let host = Host::with(|builder| builder.live_capacity(1));
    host.alloc_named(1, 10, "listed");
    for id in 2..5 {
        host.alloc_named(id, 5, "not listed");
    }
    let report = host.begin().end();
    assert_eq!(dram(&report).peak.exact(), Some(25));
    assert_eq!(parts(dram(&report)).unwrap(), [("-", 15, 3), ("listed", 10, 1)]);
}

/// A thread allocates, another polls: what is called exact is what the process itself knows.
#[test]
fn a_span_is_polled_on_another_thread() {
    let host = Host::with(|builder| builder.ring_slots(1 << 14));
    host.tracker.reset_peaks(host.device).unwrap();
    let mut span = host.begin();
    let is_done = AtomicBool::new(false);
    let report = std::thread::scope(|scope| {
        let poller = scope.spawn(|| {
            while !is_done.load(Ordering::Acquire) {
                span.poll();
            }
            span.end()
        });
        for round in 0..2000 {
            for id in 0..50 {
                host.alloc(id, 1 + (round * 7 + id) % 101);
            }
            (0..50).for_each(|id| host.free(id));
        }
        is_done.store(true, Ordering::Release);
        poller.join().unwrap()
    });
    let truth = host.tracker.counters(host.device).unwrap();
    let dram = dram(&report);
    assert_eq!((dram.peak.exact(), dram.end_bytes), (Some(truth.dram_peak_bytes), Some(0)), "{report:?}");
    assert_eq!(report.events + report.missed, 2000 * 100);
    if let Some(made_of) = parts(dram) {
        assert_eq!(made_of, [("-", truth.dram_peak_bytes, truth.dram_peak_count)]);
    }
}

/// What a process did, kept by the test: what is live by id, and since the span began the most that was used and its parts.
#[derive(Default)]
struct Truth {
    live: BTreeMap<u64, (u64, usize)>,
    used: u64,
    peak: u64,
    at_peak: BTreeMap<u64, (u64, usize)>,
}

impl Truth {
    fn begin(&mut self) {
        (self.peak, self.at_peak) = (self.used, self.live.clone());
    }

    fn alloc(&mut self, id: u64, bytes: u64, name: usize) {
        self.live.insert(id, (bytes, name));
        self.used += bytes;
        if self.used > self.peak {
            self.begin();
        }
    }

    fn free(&mut self, id: u64) {
        self.used -= self.live.remove(&id).map_or(0, |(bytes, _)| bytes);
    }

    /// Bytes and numbers at the peak by name.
    fn parts(&self) -> BTreeMap<usize, (u64, u64)> {
        let mut parts = BTreeMap::new();
        for (bytes, name) in self.at_peak.values() {
            let part: &mut (u64, u64) = parts.entry(*name).or_default();
            *part = (part.0 + bytes, part.1 + 1);
        }
        parts
    }
}

/// Random histories with polls, laps and resets: what is called exact is true, and a range contains the truth.
#[test]
fn no_claim_about_a_span_is_false() {
    const NAMES: [&str; 4] = ["-", "a", "b", "c"];
    let (mut exact, mut bounded, mut unbounded, mut composed) = (0, 0, 0, 0);
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let host = Host::new();
        let names = NAMES.map(|name| if name == "-" { NameId::NONE } else { host.name(name) });
        let mut truth = Truth::default();
        let (mut span, mut began_with) = (None, 0);
        let (begin, is_reset, busy) = (random.u32(1..200), random.bool(), random.u64(1..10));
        for step in 0..random.u32(200..800) {
            if step == begin {
                (began_with, span) = (truth.used, Some(host.begin()));
                truth.begin();
            }
            match random.u64(0..100) {
                0..=1 if is_reset => host.tracker.reset_peaks(host.device).unwrap(),
                // The busier, the more of them are lapped.
                2..20 if random.u64(0..busy * busy) == 0 => _ = span.as_mut().map(Span::poll),
                0..60 => {
                    let (id, bytes, name) = (random.u64(0..20), random.u64(1..1000), random.usize(0..4));
                    if !truth.live.contains_key(&id) {
                        let alloc = Alloc::new(BufferType::Dram, id, bytes).name(names[name]);
                        host.tracker.alloc(host.device, alloc).unwrap();
                        truth.alloc(id, bytes, name);
                    }
                }
                _ => {
                    if let Some(id) = truth.live.keys().copied().nth(random.usize(0..20)) {
                        host.free(id);
                        truth.free(id);
                    }
                }
            }
        }
        let report = span.unwrap().end();
        let (dram, peak) = (dram(&report), dram(&report).peak);
        assert_eq!((dram.begin_bytes, dram.end_bytes), (began_with, Some(truth.used)), "seed {seed}");
        let is_in = peak.low <= truth.peak && peak.high.is_none_or(|high| truth.peak <= high);
        assert!(is_in, "seed {seed}: {} is not in {peak:?}", truth.peak);
        assert!(report.missed > 0 || peak.exact().is_some(), "seed {seed}");
        exact += usize::from(peak.exact().is_some());
        bounded += usize::from(peak.exact().is_none() && peak.high.is_some());
        unbounded += usize::from(peak.high.is_none());
        if let Some(parts) = parts(dram) {
            assert_eq!(parts.iter().map(|(_, bytes, _)| bytes).sum::<u64>(), peak.low, "seed {seed}");
            if report.missed == 0 {
                let expected = truth.parts().into_iter();
                let expected = expected.map(|(name, (bytes, count))| (NAMES[name], bytes, count));
                let mut expected: Vec<_> = expected.collect();
                let mut parts = parts;
                expected.sort_unstable();
                parts.sort_unstable();
                assert_eq!(parts, expected, "seed {seed}");
                composed += 1;
            }
        } else {
            assert!(report.missed > 0, "seed {seed}");
        }
    }
    let counts = [exact, bounded, unbounded, composed];
    assert!(counts.iter().all(|count| *count > 5), "each case is there: {counts:?}");
}

#[test]
fn an_impossible_event_ends_belief() {
    let mut writer = Writer::new(1);
    let mut span = Span::begin(Arc::new(writer.open())).unwrap();
    writer.alloc(0, Class::Dram, 1, 10);
    assert_eq!(span.poll(), 1);
    writer.free(0, Class::Dram, 1, 11);
    let report = span.end();
    assert!(matches!(report.broken, Some(ReadError::ImplausibleEvent { .. })), "{report:?}");
    assert!(report.devices.is_empty());
}

#[test]
fn an_event_of_a_device_that_is_not_listed_ends_belief() {
    for device in [1, 200] {
        let mut writer = Writer::new(1);
        let span = Span::begin(Arc::new(writer.open())).unwrap();
        writer.commit(tt_shm_reader::Event {
            class: Class::Dram as u8,
            ..tt_shm_reader::Event::new(tt_shm_reader::EventKind::Alloc, device)
        });
        let report = span.end();
        assert!(matches!(report.broken, Some(ReadError::UnlistedDevice { listed: 1, .. })), "{report:?}");
    }
}

/// A process that cannot be read at the end: what was seen before is certain, and nothing bounds the rest.
#[test]
fn a_process_that_is_too_fast_at_the_end_has_no_bound() {
    let mut writer = Writer::new(1);
    writer.alloc(0, Class::Dram, 1, 10);
    let segment = Arc::new(writer.open());
    let mut span = Span::begin(Arc::clone(&segment)).unwrap();
    writer.alloc(0, Class::Dram, 2, 20);
    span.poll();
    writer.set(control::HEAD, 1 << 40);
    writer.words().ring.iter().for_each(|slot| slot[0].store(u64::MAX, Ordering::Relaxed));
    assert_eq!(span.poll(), 0);
    assert!(matches!(Span::begin(segment), Err(ReadError::Busy { .. })));
    let report = span.end();
    assert!(report.is_behind && report.broken.is_none());
    let dram = &report.devices[0].dram;
    assert_eq!((dram.begin_bytes, dram.end_bytes, dram.peak), (10, None, range(30, None)));
    assert_eq!(parts(dram).unwrap(), [("-", 30, 2)]);
}

#[test]
fn a_span_of_a_dead_process_is_what_it_left() {
    let mut writer = Writer::new(1);
    let segment = Arc::new(writer.open());
    let span = Span::begin(Arc::clone(&segment)).unwrap();
    writer.alloc(0, Class::Dram, 1, 10);
    writer.kill();
    assert!(!segment.is_alive().unwrap());
    assert_eq!(span.end().devices[0].dram.peak.exact(), Some(10));
}
