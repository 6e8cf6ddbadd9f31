//! A real process is recorded, and every moment that was noted is found again.

use std::sync::Arc;

use shm_layout::{Counters, Row};
use tt_shm_os::monotonic_ns;
use tt_shm_reader::{Namespace, Segment};
use tt_shm_record::{Begin, FrameSink, Record, Recorder, WriterOptions};
use tt_shm_writer::Record as _;
use tt_shm_writer::{Alloc, BufferType, DeviceInfo, Tracker};

/// What an observer saw at a moment.
struct Noted {
    ns: u64,
    position: u64,
    counters: Vec<Counters>,
    rows: Vec<Row>,
}

struct Workload {
    tracker: Tracker,
    devices: Vec<tt_shm_writer::Device>,
    segment: Arc<Segment>,
    rng: fastrand::Rng,
    live: Vec<(usize, u64)>,
    next: u64,
}

impl Workload {
    fn new(test: &str, slots: u64) -> Workload {
        let ns = Namespace::new(&format!("rec-{test}-{}", std::process::id())).unwrap();
        let tracker =
            Tracker::builder().enabled(true).namespace(ns.as_str()).ring_slots(slots).open().unwrap();
        let info = |chip_id| DeviceInfo { chip_id, ..Default::default() };
        let devices = (0..2).map(|chip| tracker.register_device(&info(chip)).unwrap()).collect();
        let segment = Arc::new(Segment::open(&tracker.segment_path().unwrap()).unwrap());
        Workload { tracker, devices, segment, rng: fastrand::Rng::with_seed(7), live: Vec::new(), next: 0 }
    }

    fn step(&mut self) {
        let types = [BufferType::Dram, BufferType::L1, BufferType::Trace];
        if self.live.len() > 50 || !self.live.is_empty() && self.rng.u8(..) < 100 {
            let (device, id) = self.live.swap_remove(self.rng.usize(..self.live.len()));
            self.tracker.free(self.devices[device], id).unwrap();
        } else {
            let device = self.rng.usize(..2);
            self.next += 1;
            let name = self.tracker.intern(format!("name {}", self.next % 40)).unwrap();
            let alloc = Alloc::new(types[self.rng.usize(..3)], self.next, self.rng.u64(1..1 << 20));
            self.tracker.alloc(self.devices[device], alloc.name(name)).unwrap();
            self.live.push((device, self.next));
        }
    }

    /// Waits a moment, so that clocks that differ by some nanoseconds agree on what came first.
    fn note(&self) -> Noted {
        std::thread::sleep(std::time::Duration::from_micros(50));
        let (now, list) = (self.segment.counters().unwrap(), self.segment.live_list());
        let ns = monotonic_ns();
        std::thread::sleep(std::time::Duration::from_micros(50));
        assert!(list.exact && list.position == now.position);
        Noted { ns, position: now.position, counters: now.counters, rows: list.rows }
    }
}

fn compare(record: &Record, noted: &[Noted]) {
    for (number, noted) in noted.iter().enumerate() {
        let state = record.state_at(0, noted.ns).unwrap();
        assert!(state.is_exact() && state.are_rows_exact(), "note {number}: {state:?}");
        assert_eq!((state.position, &state.counters), (noted.position, &noted.counters), "note {number}");
        assert_eq!(state.rows, noted.rows, "note {number}");
    }
}

#[test]
fn every_moment_that_was_noted_is_found_again() {
    let mut work = Workload::new("noted", 1024);
    let mut recorder = Recorder::new(&Begin::default());
    let mut sink = FrameSink::new(Vec::new(), WriterOptions::default()).unwrap();
    recorder.add(Arc::clone(&work.segment), Default::default());
    let mut noted = Vec::new();
    for round in 0..200 {
        (0..work.rng.usize(0..400)).for_each(|_| work.step());
        noted.push(work.note());
        recorder.poll();
        if round % 7 == 0 {
            recorder.flush();
        }
        recorder.take().iter().for_each(|frame| sink.write(frame).unwrap());
    }
    recorder.finish();
    recorder.take().iter().for_each(|frame| sink.write(frame).unwrap());
    sink.finish().unwrap();
    let record = Record::from_bytes(sink.into_output()).unwrap();
    assert_eq!((record.damage(), record.has_index(), record.totals().lost), (None, true, 0));
    assert_eq!(record.totals().events, work.segment.head());
    let process = record.process(0).unwrap();
    assert_eq!((process.names().count(), process.devices.len()), (40, 2));
    compare(&record, &noted);
    let merged: Vec<_> = record.events().map(Result::unwrap).collect();
    assert!(merged.iter().map(|event| event.event.stamp).eq(1..=work.segment.head()));
}

/// A ring that wraps around before it is read leaves a counted gap, after which everything is exact again.
#[test]
fn what_was_overwritten_is_counted_and_not_claimed() {
    let mut work = Workload::new("gap", 64);
    let mut recorder = Recorder::new(&Begin::default());
    let mut sink = FrameSink::new(Vec::new(), WriterOptions::default()).unwrap();
    recorder.add(Arc::clone(&work.segment), Default::default());
    (0..20).for_each(|_| work.step());
    recorder.poll();
    let before = work.note();
    (0..100).for_each(|_| work.step());
    let during = work.note();
    (0..900).for_each(|_| work.step());
    recorder.poll();
    // A checkpoint after a gap is not taken at every poll.
    std::thread::sleep(std::time::Duration::from_millis(60));
    recorder.poll();
    let mut after = vec![work.note()];
    for _ in 0..20 {
        (0..30).for_each(|_| work.step());
        after.push(work.note());
        recorder.poll();
    }
    let counts = recorder.counts();
    recorder.finish();
    recorder.take().iter().for_each(|frame| sink.write(frame).unwrap());
    sink.finish().unwrap();
    let record = Record::from_bytes(sink.into_output()).unwrap();
    assert!(counts.gaps > 0 && counts.lost > 800);
    assert_eq!((record.totals().gaps, record.totals().lost), (counts.gaps, counts.lost));
    assert_eq!(record.totals().events + counts.lost, work.segment.head());
    let gap = record.process(0).unwrap().gaps[0];
    assert!(gap.noticed && gap.first == 21 && gap.after_ns < before.ns && gap.before_ns > before.ns);
    compare(&record, &after);
    // Before the gap the state is certain; from the last event before it on, something may be missing.
    assert!(!record.state_at(0, during.ns).unwrap().is_exact());
    let events: Vec<_> = record.events().map(Result::unwrap).take(20).collect();
    assert!(record.state_at(0, events[10].ns).unwrap().is_exact());
}

/// A process that had a life before the recording begins with a checkpoint; a new file repeats what is needed.
#[test]
fn a_late_start_and_each_part_of_a_recording_are_exact() {
    let mut work = Workload::new("parts", 64);
    (0..500).for_each(|_| work.step());
    let mut recorder = Recorder::new(&Begin::default());
    recorder.add(Arc::clone(&work.segment), Default::default());
    let mut parts = Vec::new();
    for part in 1..=3 {
        let mut noted = Vec::new();
        let mut sink = FrameSink::new(Vec::new(), WriterOptions::default()).unwrap();
        for _ in 0..30 {
            (0..30).for_each(|_| work.step());
            noted.push(work.note());
            recorder.poll();
        }
        recorder.finish();
        recorder.take().iter().for_each(|frame| sink.write(frame).unwrap());
        parts.push((sink.into_output(), noted));
        recorder.begin_part(&Begin { part, ..Begin::default() });
    }
    for (part, (bytes, noted)) in parts.into_iter().enumerate() {
        let record = Record::from_bytes(bytes).unwrap();
        assert_eq!((record.begin().part, record.totals().lost), (part as u64, 0));
        assert!(record.process(0).unwrap().names().count() >= 40);
        compare(&record, &noted);
    }
}
