//! What observers see of a replay of a made-up record. One test: the clock is that of the whole process.

use shm_layout::{Class, Counters, DeviceEntry, Event, EventKind, Row, SegmentHeader};
use tt_shm_reader::{Segment, Table, segment_paths};
use tt_shm_record::{
    Begin, EndEntry, Ended, Entry, FrameTime, GapEntry, ProcessEntry, Record, RecordWriter, StateEntry,
};
use tt_shm_replay::Replay;

const BEGIN: u64 = 1_000_000_000;

fn alloc(stamp: u64, size: u64) -> Event {
    let time = BEGIN + 1000 * stamp;
    let kind = Event::new(EventKind::Alloc, 0);
    let (class, row) = (Class::Dram as u8, stamp as u32);
    Event { stamp, time, class, id: stamp, size, aux: size, row, ..kind }
}

/// Ten allocations, five that are missing, a checkpoint, ten more, the end.
fn made_up() -> Vec<u8> {
    let begin = Begin { monotonic_ns: BEGIN, realtime_ns: 2 * BEGIN, ..Begin::default() };
    let mut writer = RecordWriter::new(Vec::new(), &begin, Default::default()).unwrap();
    let header = SegmentHeader {
        clock_kind: 3,
        identity: 7,
        pid: 42,
        anchor_monotonic_ns: BEGIN + 100,
        ..SegmentHeader::plan(64, 64, 4096)
    };
    writer.process(&ProcessEntry { seen_ns: BEGIN + 200, ..ProcessEntry::new(0, header) }).unwrap();
    let device = DeviceEntry { chip_id: 3, ..shm_layout::load_pod::<_, std::sync::atomic::AtomicU64>(&[]) };
    writer.devices(0, vec![(0, device)]).unwrap();
    writer.state(0, &StateEntry::nothing(BEGIN + 300), &[]).unwrap();
    let all: Vec<Event> = (1..=25).map(|stamp| alloc(stamp, 100 * stamp)).collect();
    let time =
        |events: &[Event]| FrameTime { first_ns: events[0].time, last_ns: events[events.len() - 1].time };
    writer.events(0, &all[..10], time(&all[..10])).unwrap();
    writer.flush().unwrap();
    let noticed = BEGIN + 15_300;
    let gap = GapEntry { process: 0, first: 11, last: 15, time_ns: noticed };
    writer.entry(&Entry::Gap(gap), FrameTime::at(noticed)).unwrap();
    let mut counters = Counters::ZERO;
    all[..15].iter().for_each(|event| counters.apply(event).unwrap());
    let rows: Vec<Row> = all[..15].iter().map(Row::from_event).collect();
    let state = StateEntry { position: 15, counters: vec![counters], ..StateEntry::nothing(noticed + 100) };
    writer.state(0, &state, &rows).unwrap();
    writer.events(0, &all[15..], time(&all[15..])).unwrap();
    let end = EndEntry { process: 0, noticed_ns: BEGIN + 40_000, how: Ended::Died, position: 25 };
    writer.entry(&Entry::End(end), FrameTime::at(end.noticed_ns)).unwrap();
    writer.finish(BEGIN + 50_000).unwrap()
}

/// What the device uses, whether that is complete, and the live allocations of the process.
fn seen(replay: &Replay) -> (u64, bool, usize) {
    let table = Table::open_fresh(replay.namespace()).expect("a fresh table").snapshot();
    let (_, device) = table.devices.first().expect("a device");
    let paths = segment_paths(replay.namespace()).unwrap();
    let segments = paths.iter().map(|path| Segment::open(path).unwrap());
    let mut live = segments.filter(|segment| segment.is_alive().unwrap());
    let segment = live.next();
    let partial = segment.as_ref().is_some_and(Segment::is_partial);
    (device.dram_used_bytes, partial, segment.map_or(0, |segment| segment.allocations().list.len()))
}

fn go(replay: &mut Replay, time: u64) {
    replay.seek(BEGIN + time, &mut |_| true).unwrap();
    assert_eq!(tt_shm_os::monotonic_ns(), BEGIN + time);
}

#[test]
fn observers_see_what_was_there_and_what_is_missing() {
    let sum = |count: u64| (1..=count).map(|stamp| 100 * stamp).sum::<u64>();
    let mut replay = Replay::open(Record::from_bytes(made_up()).unwrap()).unwrap();
    let namespace = replay.namespace().clone();
    for _ in 0..2 {
        go(&mut replay, 5_000);
        assert_eq!(seen(&replay), (sum(5), false, 5), "events of the nanosecond are included");
        go(&mut replay, 10_500);
        assert_eq!(seen(&replay), (sum(10), true, 10), "in a gap it says that something is missing");
        go(&mut replay, 16_000);
        assert_eq!(seen(&replay), (sum(16), false, 16), "the checkpoint tells everything");
        go(&mut replay, 30_000);
        assert_eq!(seen(&replay), (sum(25), false, 25));
        go(&mut replay, 45_000);
        assert_eq!(seen(&replay), (0, false, 0), "its memory went with it");
        // The second time backwards, from the end.
    }
    drop(replay);
    assert!(!tt_shm_os::past::is_set(), "the clocks are those of now again");
    let files = std::fs::read_dir(tt_shm_os::SHM_DIR).unwrap().flatten();
    let left = files.filter(|file| file.file_name().to_string_lossy().contains(namespace.as_str()));
    assert_eq!(left.count(), 0, "nothing is left");
}
