//! A small record of two made-up processes, whose truth is known.

use shm_layout::{Class, Counters, Event, EventKind, SegmentHeader};
use tt_shm_os::{Anchor, ClockKind};
use tt_shm_record::{
    Begin, ClockEntry, EndEntry, Ended, Entry, FrameTime, ProcessEntry, RecordWriter, StateEntry,
    WriterOptions,
};

/// Ticks are a third of a nanosecond: 3 ticks each, from tick 3000 at 1000 ns.
pub(crate) fn ticks(ns: u64) -> u64 {
    ns * 3
}

pub(crate) fn header(identity: u64) -> SegmentHeader {
    SegmentHeader {
        clock_kind: u64::from(ClockKind::Tsc.code()),
        identity,
        pid: identity,
        process_name: shm_layout::text::encode("made-up"),
        ..SegmentHeader::plan(64, 64, 4096)
    }
}

pub(crate) fn alloc(stamp: u64, ns: u64, size: u64) -> Event {
    Event {
        stamp,
        time: ticks(ns),
        class: Class::Dram as u8,
        id: stamp,
        size,
        aux: size,
        row: stamp as u32,
        name: 1,
        ..Event::new(EventKind::Alloc, 0)
    }
}

pub(crate) fn free(stamp: u64, ns: u64, of: &Event) -> Event {
    Event { stamp, time: ticks(ns), kind: EventKind::Free as u8, ..*of }
}

/// The events of one of the processes: every third one frees the one before it.
pub(crate) fn events(count: u64, shift: u64) -> Vec<Event> {
    let mut list: Vec<Event> = Vec::new();
    for stamp in 1..=count {
        let ns = 10_000 + 100 * stamp + shift;
        let event = match stamp % 3 {
            0 => free(stamp, ns, &list[stamp as usize - 2]),
            _ => alloc(stamp, ns, 100 + stamp),
        };
        list.push(event);
    }
    list
}

/// What the process holds after these events.
pub(crate) fn truth(events: &[Event]) -> Counters {
    let mut counters = Counters::ZERO;
    events.iter().for_each(|event| counters.apply(event).unwrap());
    counters
}

pub(crate) fn begin() -> Begin {
    Begin { host: "here".into(), monotonic_ns: 9_000, realtime_ns: 1_000_009_000, ..Begin::default() }
}

pub(crate) fn clock(ns: u64) -> Entry {
    let anchor =
        Anchor { ticks: ticks(ns), monotonic_ns: ns, realtime_ns: 1_000_000_000 + ns, suspended_ns: 0 };
    Entry::Clock(ClockEntry { kind: ClockKind::Tsc, anchor })
}

/// A finished record of two processes with 30 events each, in frames of five, with a second checkpoint after the 15th.
pub(crate) fn record() -> Vec<u8> {
    let options = WriterOptions { index_every: 4, ..WriterOptions::default() };
    let mut writer = RecordWriter::new(Vec::new(), &begin(), options).unwrap();
    let lists = [events(30, 0), events(30, 50)];
    writer.entry(&clock(9_000), FrameTime::at(9_000)).unwrap();
    for number in 0..2 {
        writer.process(&ProcessEntry::new(number, header(7 + u64::from(number)))).unwrap();
        writer.names(number, vec![(1, b"weights".to_vec())]).unwrap();
        writer
            .devices(number, vec![(0, shm_layout::DeviceEntry { chip_id: 3, ..bytemuck::zeroed() })])
            .unwrap();
        writer.state(number, &StateEntry::nothing(9_500), &[]).unwrap();
    }
    for round in 0..6 {
        for (number, list) in (0..).zip(&lists) {
            let part = &list[5 * round..5 * (round + 1)];
            let time = FrameTime { first_ns: part[0].time / 3, last_ns: part[4].time / 3 };
            writer.events(number, part, time).unwrap();
            if round == 2 {
                checkpoint(&mut writer, number, &list[..15]);
            }
        }
        let now = lists[1][5 * round + 4].time / 3;
        writer.entry(&clock(now + 1), FrameTime::NONE).unwrap();
        writer.entry(&Entry::AsOf { time_ns: now }, FrameTime::at(now)).unwrap();
        writer.flush().unwrap();
    }
    let end = EndEntry { process: 1, noticed_ns: 20_000, how: Ended::Died, position: 30 };
    writer.entry(&Entry::End(end), FrameTime::at(20_000)).unwrap();
    writer.finish(20_000).unwrap()
}

fn checkpoint(writer: &mut RecordWriter<Vec<u8>>, number: u32, events: &[Event]) {
    let counters = vec![truth(events)];
    let is_freed = |event: &Event| events.iter().any(|free| free.kind == 2 && free.id == event.id);
    let live = events.iter().filter(|event| event.kind == 1 && !is_freed(event));
    let rows: Vec<shm_layout::Row> = live.map(shm_layout::Row::from_event).collect();
    let state = StateEntry { position: 15, counters, ..StateEntry::nothing(events[14].time / 3 + 1) };
    writer.state(number, &state, &rows).unwrap();
}
