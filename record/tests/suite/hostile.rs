//! Damaged and hostile records: nothing panics, nothing false is claimed.

use shm_layout::{Event, SegmentHeader};
use tt_shm_record::{
    ClockEntry, EndEntry, Ended, Entry, FrameTime, GapEntry, ProcessEntry, Record, RecordWriter, StateEntry,
    WriterOptions,
};

use super::made_up::{self, truth};

/// Everything that a reader of a record can ask for.
fn use_all(record: &Record) {
    let _ = (record.span_ns(), record.to_realtime_ns(u64::MAX), record.clocks().to_monotonic_of_wall(5));
    record.events().take(10_000).for_each(drop);
    record.entries_from(10_500).take(10_000).for_each(drop);
    for process in record.processes() {
        for ns in [0, 10_800, 12_000, u64::MAX] {
            let _ = record.state_at(process.number(), ns);
        }
    }
}

/// What a damaged record still says is true: events are those that were written, exact states are those of the time.
fn check_claims(record: &Record) {
    for event in record.events() {
        let event = event.unwrap();
        let expected = made_up::events(30, 50 * u64::from(event.process));
        assert_eq!(event.event, expected[event.event.stamp as usize - 1]);
    }
    for process in record.processes() {
        let events = made_up::events(30, 50 * u64::from(process.number()));
        for ns in (10_000..13_200).step_by(225) {
            let state = record.state_at(process.number(), ns).unwrap();
            if state.is_exact() {
                let before = events.iter().filter(|event| event.time <= made_up::ticks(ns)).count();
                let counters = state.counters.first().copied().unwrap_or(shm_layout::Counters::ZERO);
                assert_eq!((state.position, counters), (before as u64, truth(&events[..before])), "at {ns}");
            }
        }
    }
}

#[test]
fn flipped_bits_cost_frames_and_never_the_truth() {
    let (bytes, mut rng) = (made_up::record(), fastrand::Rng::with_seed(17));
    let (mut opened, mut damaged) = (0, 0);
    for _ in 0..400 {
        let mut bytes = bytes.clone();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..bytes.len());
            bytes[at] ^= 1 << rng.u8(..8);
        }
        if let Ok(record) = Record::from_bytes(bytes) {
            opened += 1;
            damaged += u64::from(record.damage().is_some());
            // Clocks that are lost move times by a little: events are compared, states only where the clock is whole.
            if record.frames().first().is_some_and(|frame| frame.header.sequence == 0)
                && record.frames().get(1).is_some_and(|frame| frame.header.sequence == 1)
            {
                check_claims(&record);
            }
            use_all(&record);
        }
    }
    assert!(opened > 300 && damaged == opened, "{opened} opened, {damaged} damaged");
}

#[test]
fn frames_that_are_missing_are_noticed_and_doubted() {
    let bytes = made_up::record();
    let whole = Record::from_bytes(bytes.clone()).unwrap();
    for frame in &whole.frames()[2..] {
        let (start, len) = (frame.offset as usize, 64 + frame.header.stored_len as usize);
        let without = [&bytes[..start], &bytes[start + len..]].concat();
        let record = Record::from_bytes(without).unwrap();
        assert_eq!(record.damage().map(|damage| damage.lost_frames), Some(1));
        check_claims(&record);
    }
    let doubled = [&bytes[..], &bytes[..]].concat();
    let record = Record::from_bytes(doubled).unwrap();
    assert_eq!(record.totals().events, 60, "frames that were there before do not count");
    check_claims(&record);
}

#[test]
fn entries_that_no_recorder_writes_are_refused_or_harmless() {
    let event = |stamp| Event { stamp, ..made_up::alloc(1, 10_000, 5) };
    let state = |position, row_count| StateEntry { position, row_count, ..StateEntry::nothing(1) };
    let events = |events: Vec<Event>| Entry::Events { process: 0, events };
    let checkpoint = |state: StateEntry| Entry::State { process: 0, state: Box::new(state) };
    let gap = |first, last| Entry::Gap(GapEntry { process: 0, first, last, time_ns: 0 });
    let broken = SegmentHeader { total_len: 3, ..made_up::header(1) };
    let clock = |ticks, monotonic_ns| {
        let anchor = tt_shm_os::Anchor { ticks, monotonic_ns, realtime_ns: 0, suspended_ns: 0 };
        Entry::Clock(ClockEntry { kind: tt_shm_os::ClockKind::Tsc, anchor })
    };
    let cases: Vec<Entry> = vec![
        events(vec![event(0)]),
        events(vec![event(u64::MAX), event(0)]),
        events(vec![event(2), event(1)]),
        events(vec![Event { device: 200, ..event(1) }]),
        events(vec![Event { size: u64::MAX, ..event(1) }]),
        events(vec![Event { kind: 2, ..event(1) }]),
        events(vec![Event { time: u64::MAX, ..event(1) }]),
        events(Vec::new()),
        checkpoint(state(u64::MAX, 0)),
        checkpoint(state(5, u64::MAX)),
        checkpoint(state(5, 1 << 20)),
        gap(0, u64::MAX),
        gap(9, 3),
        gap(1, 1 << 60),
        Entry::End(EndEntry { process: 0, noticed_ns: 0, how: Ended::Died, position: u64::MAX }),
        Entry::End(EndEntry { process: 9, noticed_ns: 0, how: Ended::Died, position: 7 }),
        Entry::Process(Box::new(ProcessEntry::new(0, broken))),
        Entry::Names { process: 0, names: vec![(1, vec![0xff; 2000])] },
        Entry::Names { process: 77, names: vec![(1, vec![0xff; 20])] },
        Entry::Devices { process: 0, devices: vec![(1 << 40, bytemuck::zeroed())] },
        Entry::Rows { process: 0, position: 3, first: 99, rows: vec![bytemuck::zeroed(); 5] },
        clock(u64::MAX, 0),
        clock(0, u64::MAX),
        Entry::AsOf { time_ns: u64::MAX },
    ];
    for (number, case) in cases.iter().enumerate() {
        let mut writer = RecordWriter::new(Vec::new(), &made_up::begin(), WriterOptions::default()).unwrap();
        writer.process(&ProcessEntry::new(0, made_up::header(7))).unwrap();
        writer.state(0, &StateEntry::nothing(1), &[]).unwrap();
        writer.flush().unwrap();
        writer.entry(case, FrameTime::NONE).unwrap();
        writer.flush().unwrap();
        writer.events(0, &made_up::events(3, 0), FrameTime::NONE).unwrap();
        let record = Record::from_bytes(writer.finish(20_000).unwrap()).unwrap();
        use_all(&record);
        assert!(record.totals().events <= 4, "case {number}");
    }
}

#[test]
fn bytes_that_are_no_entries_are_refused() {
    let mut rng = fastrand::Rng::with_seed(3);
    for len in (0..600).chain([1 << 16]) {
        let raw: Vec<u8> =
            (0..len).map(|at| if at % 16 == 0 { rng.u8(1..18) } else { rng.u8(..) & 3 }).collect();
        if let Ok(record) = Record::from_bytes(tt_shm_record::file_of(raw)) {
            use_all(&record);
        }
    }
}

#[test]
fn what_is_no_record_says_so() {
    let error = |bytes: &[u8]| Record::from_bytes(bytes.to_vec()).unwrap_err().to_string();
    assert!(error(b"").contains("no whole frame"));
    assert!(error(&[b'x'; 200]).contains("not a record"), "{}", error(&[b'x'; 200]));
    let folder = tempfile::tempdir().unwrap();
    let error = Record::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");
    assert!(Record::open(folder.path().join("missing")).unwrap_err().to_string().contains("missing"));
}
