//! What was written is read back, at any time and after any cut.

use tt_shm_record::{Ended, Record};

use super::made_up::{self, truth};

#[test]
fn a_record_is_read_back() {
    let record = Record::from_bytes(made_up::record()).unwrap();
    assert_eq!((record.damage(), record.has_index(), record.finished_ns()), (None, true, Some(20_000)));
    let totals = record.totals();
    assert_eq!((totals.events, totals.lost, totals.gaps, totals.checkpoints), (60, 0, 0, 4));
    assert_eq!((record.begin().host.as_str(), record.to_realtime_ns(9_000)), ("here", 1_000_009_000));
    let second = record.process(1).unwrap();
    assert_eq!((second.events, second.positions, second.span_ns), (30, (1, 30), (10_150, 13_050)));
    assert_eq!((second.name(1).unwrap().as_ref(), second.process_name().as_str()), ("weights", "made-up"));
    assert_eq!(second.end.map(|end| end.how), Some(Ended::Died));
    assert_eq!(second.devices[0].unwrap().chip_id, 3);
}

#[test]
fn events_are_merged_by_time() {
    let record = Record::from_bytes(made_up::record()).unwrap();
    let merged: Vec<_> = record.events().map(Result::unwrap).collect();
    assert_eq!(merged.len(), 60);
    assert!(merged.windows(2).all(|pair| pair[0].ns < pair[1].ns));
    assert!(merged.chunks(2).all(|pair| pair[0].process == 0 && pair[1].process == 1));
    let some: Vec<_> = record.events_between(10_550..=10_700).map(Result::unwrap).collect();
    assert_eq!(some.iter().map(|event| event.ns).collect::<Vec<_>>(), [10_550, 10_600, 10_650, 10_700]);
}

#[test]
fn the_state_at_any_time_is_that_of_the_events_before_it() {
    let record = Record::from_bytes(made_up::record()).unwrap();
    for number in 0..2 {
        let events = made_up::events(30, 50 * u64::from(number));
        for ns in (10_000..13_200).step_by(25) {
            let before = events.iter().filter(|event| event.time <= made_up::ticks(ns)).count();
            let state = record.state_at(number, ns).unwrap();
            assert!(state.is_exact() && state.are_rows_exact(), "{number} {ns}");
            assert_eq!(state.position, before as u64);
            let expected = truth(&events[..before]);
            assert_eq!(state.counters.first().copied().unwrap_or(shm_layout::Counters::ZERO), expected);
            let live: u64 = state.rows.iter().map(|row| row.size).sum();
            assert_eq!((live, state.rows.len() as u64), (expected.dram_used(), expected.dram_count()));
        }
    }
    assert_eq!(record.states_at(10_050).unwrap().len(), 2);
    assert_eq!(record.states_at(20_001).unwrap().len(), 1, "one has ended");
}

/// The promise of the format: a file that was cut anywhere is read up to its last whole frame.
#[test]
fn a_record_cut_at_any_byte_is_read_up_to_the_cut() {
    let bytes = made_up::record();
    let whole = Record::from_bytes(bytes.clone()).unwrap();
    let mut counts = Vec::new();
    for cut in 0..bytes.len() {
        let ends = whole.frames().iter().map(|frame| frame.offset + 64 + u64::from(frame.header.stored_len));
        let frames = ends.filter(|end| *end <= cut as u64).count();
        let record = match Record::from_bytes(bytes[..cut].to_vec()) {
            Ok(record) => record,
            Err(error) => {
                assert_eq!(frames, 0, "{error}");
                continue;
            }
        };
        assert_eq!(record.totals().frames, frames as u64, "cut at {cut}");
        assert_eq!(record.events().count() as u64, record.totals().events);
        for number in record.processes().map(|process| process.number()) {
            let events = made_up::events(30, 50 * u64::from(number));
            let state = record.state_at(number, record.complete_until_ns()).unwrap();
            let known = events.iter().filter(|event| event.time <= made_up::ticks(state.time_ns)).count();
            assert!(state.is_exact(), "cut at {cut}");
            assert_eq!(state.position, known as u64, "cut at {cut}");
            assert!(!record.state_at(number, 15_000).unwrap().is_exact() || record.finished_ns().is_some());
        }
        counts.push(record.totals().events);
    }
    assert_eq!((counts.first(), counts.last()), (Some(&0), Some(&60)));
    assert!(counts.is_sorted());
}
