//! What outputs say of peaks and histories, with and without an aggregator.

use std::collections::HashMap;
use std::time::Duration;

use crate::common::{SMI, host, json, smi, tracker};
use serde_json::Value;
use tt_shm_reader::{Bucket, monotonic_ns, realtime_ns};
use tt_shm_tests::space::until;
use tt_shm_tests::{Command, Monitor, Space};
use tt_shm_writer::{Alloc, BufferType, DeviceInfo, Record, Tracker};
use tt_smi::model::Origin;
use tt_smi::model::{Model, rfc3339};
use tt_smi::source::Source;

const CHIP: u64 = 5;

/// Cells of the only line of `snapshot --format csv`, by heading.
fn csv(space: &Space) -> HashMap<String, String> {
    let text = smi(space, &["snapshot", "--format", "csv"]);
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
    let (heads, cells) = (lines.next().unwrap(), lines.next().unwrap());
    heads.zip(cells).collect()
}

/// Value of a metric of the only device.
fn metric(space: &Space, name: &str) -> Option<f64> {
    let text = smi(space, &["snapshot", "--format", "prometheus"]);
    let line = text.lines().find(|line| line.starts_with(&format!("{name}{{")))?.to_owned();
    line.rsplit(' ').next()?.parse().ok()
}

/// Without an aggregator each call looks for itself. The peak is what the process knows of itself, with its own time,
/// and stays when what made it is freed.
#[test]
fn a_peak_neither_falls_nor_takes_the_time_of_the_look() {
    let space = Space::new();
    let tracker = tracker(&space);
    let info = DeviceInfo { chip_id: CHIP, logical_id: Some(0), ..DeviceInfo::default() };
    let device = tracker.register_device(&info).unwrap();
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 1000)).unwrap();
    let before = realtime_ns();
    tracker.alloc(device, Alloc::new(BufferType::Dram, 2, 4000)).unwrap();
    let after = realtime_ns();
    // RFC 3339 in UTC sorts as its times do.
    let around = rfc3339(before - 1_000_000)..=rfc3339(after + 1_000_000);
    let check = |when: &str, used: u64| {
        // A look later than this cannot be taken for the time of the peak.
        until("a later moment", || (realtime_ns() > after + 20_000_000).then_some(()));
        let is_then = |time: &Value| time.as_str().is_some_and(|time| around.contains(&time.to_owned()));
        let snapshot = json(&space, &["snapshot"]);
        let shown = &snapshot["devices"][0];
        assert_eq!(
            (&shown["dram_used_bytes"], &shown["dram_used_exact"]),
            (&used.into(), &true.into()),
            "{when}"
        );
        assert_eq!(
            (&shown["dram_peak_bytes"], &shown["dram_peak_exact"]),
            (&5000.into(), &false.into()),
            "{when}"
        );
        assert_eq!(shown["dram_peak_high_bytes"], Value::Null, "{when}: others may have come and gone");
        assert!(is_then(&shown["dram_peak_time"]), "{when}: {} not in {around:?}", shown["dram_peak_time"]);
        let own = &snapshot["processes"][0]["devices"][0];
        assert_eq!(
            (&own["dram_peak_bytes"], &own["dram_peak_exact"]),
            (&5000.into(), &true.into()),
            "{when}"
        );
        assert!(is_then(&own["dram_peak_time"]), "{when}: {}", own["dram_peak_time"]);
        let peak = &json(&space, &["peak"])["devices"][0]["dram"];
        assert_eq!((&peak["low_bytes"], &peak["high_bytes"]), (&5000.into(), &Value::Null), "{when}");
        assert!(is_then(&peak["time"]), "{when}: {}", peak["time"]);
        let cells = csv(&space);
        assert_eq!((&*cells["dram_peak_bytes"], &*cells["dram_peak_exact"]), ("5000", "false"), "{when}");
        assert_eq!(cells["dram_peak_high_bytes"], "", "{when}");
        assert!(around.contains(&cells["dram_peak_time"]), "{when}: {}", cells["dram_peak_time"]);
        assert_eq!(metric(&space, "tt_dram_peak_bytes"), Some(5000.0), "{when}");
        assert_eq!(metric(&space, "tt_dram_peak_exact"), Some(0.0), "{when}");
        assert!(smi(&space, &["peak"]).contains("at least 4.9 KiB"), "{when}");
    };
    check("held", 5000);
    tracker.free(device, 2).unwrap();
    check("freed", 1000);
}

/// A window that an aggregator has opened is exact, whoever came before it.
#[test]
fn a_later_window_is_exact() {
    let space = Space::new();
    let _monitor = Monitor::start(SMI, &space);
    let mut host = host(&space, [CHIP]);
    host.tell(Command::Grow { count: 3 });
    smi(&space, &["peak", "--reset"]);
    let l1 = until("an exact peak", || {
        let l1 = json(&space, &["peak"])["devices"][0]["l1"].clone();
        (l1["exact"] == true).then_some(l1)
    });
    assert_eq!((&l1["low_bytes"], &l1["high_bytes"]), (&192.into(), &192.into()));
    assert_eq!(l1["composition_exact"], true);
    assert_eq!(metric(&space, "tt_l1_peak_exact"), Some(1.0));
}

/// The history of the device, oldest first.
fn history(source: &Source, model: &Model) -> Vec<Bucket> {
    model.devices.first().map_or(Vec::new(), |device| source.history(device.row, device.id.chip_id, 0))
}

fn has(buckets: &[Bucket], l1: u64) -> bool {
    buckets.iter().any(|bucket| bucket.l1_max == l1)
}

/// Who has a screen open reads from another source when a daemon is started, killed or started again. What was there
/// before stays.
#[test]
fn a_change_of_the_source_drops_no_history() {
    let space = Space::new();
    let tracker = tracker(&space);
    let device = tracker.register_device(&DeviceInfo { chip_id: CHIP, ..DeviceInfo::default() }).unwrap();
    tracker.alloc(device, Alloc::new(BufferType::L1, 1, 192)).unwrap();
    let mut source = Source::open(space.namespace()).unwrap();
    let mut read_until = |what: &str, is_so: &dyn Fn(&Source, &Model) -> bool| {
        until(what, || {
            source.poll();
            let model = Model::new(&source.read().unwrap());
            is_so(&source, &model).then_some(())
        });
    };
    read_until("a history", &|source, model| has(&history(source, model), 192));
    // Buckets of the minute are a quarter of a second long: those before belong to no later source.
    let past = monotonic_ns() + Duration::from_millis(600).as_nanos() as u64;
    until("the next buckets", || (monotonic_ns() > past).then_some(()));
    tracker.alloc(device, Alloc::new(BufferType::L1, 2, 128)).unwrap();
    let known = |source: &Source, model: &Model| {
        let all = history(source, model);
        has(&all, 192) && all.windows(2).all(|pair| pair[0].start < pair[1].start)
    };
    let mut monitor = Monitor::start(SMI, &space);
    let is_table = |model: &Model| matches!(model.origin, Origin::Table { .. });
    read_until("the daemon", &|_, model| is_table(model));
    read_until("the history from before", &known);
    monitor.kill();
    drop(monitor);
    read_until("no daemon", &|_, model| model.origin == Origin::Embedded);
    read_until("the history from before both", &known);
}

/// A process whose own figures differ from its allocator's, or that holds more than it can tell, takes "exact" away from
/// everything that it is part of, and from nothing else.
#[test]
fn a_process_that_is_not_to_be_relied_on_takes_away_exact() {
    for doubt in [|tracker: &Tracker| tracker.self_checks(5, 1), |tracker: &Tracker| tracker.partial()] {
        let space = Space::new();
        let (honest, other) = (tracker(&space), tracker(&space));
        let info = |chip_id| DeviceInfo { chip_id, ..DeviceInfo::default() };
        for (tracker, chip) in [(&honest, CHIP), (&other, CHIP), (&honest, CHIP + 1)] {
            let device = tracker.register_device(&info(chip)).unwrap();
            tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 1000)).unwrap();
        }
        other.self_checks(3, 0).unwrap();
        let exact = || {
            let snapshot = json(&space, &["snapshot"]);
            let flags = |list: &Value| -> Vec<bool> {
                list.as_array().unwrap().iter().map(|one| one["dram_used_exact"].as_bool().unwrap()).collect()
            };
            let processes = snapshot["processes"].as_array().unwrap();
            let mut usages: Vec<Vec<bool>> = processes.iter().map(|one| flags(&one["devices"])).collect();
            usages.sort();
            (flags(&snapshot["devices"]), usages)
        };
        assert_eq!(exact(), (vec![true, true], vec![vec![true], vec![true, true]]));
        doubt(&other).unwrap();
        assert_eq!(exact(), (vec![false, true], vec![vec![false], vec![true, true]]));
        let snapshot = json(&space, &["snapshot"]);
        assert_eq!(snapshot["devices"][0]["dram_used_high_bytes"], Value::Null);
        assert_eq!(snapshot["devices"][0]["dram_used_bytes"], 2000);
    }
}

/// A process that was not sure whether it reports everything, and has made sure: what it holds is exact again, also for who
/// has followed it. What it may have held meanwhile is not.
#[test]
fn what_is_held_is_exact_again_once_a_process_is_sure() {
    let space = Space::new();
    let _monitor = Monitor::start(SMI, &space);
    let tracker = tracker(&space);
    let device = tracker.register_device(&DeviceInfo { chip_id: CHIP, ..DeviceInfo::default() }).unwrap();
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 1000)).unwrap();
    let wait = |what: &str, used: u64, is_exact: bool| {
        until(what, || {
            let device = json(&space, &["snapshot"])["devices"][0].clone();
            let as_expected =
                device["dram_used_bytes"] == used && device["dram_used_exact"] == Value::Bool(is_exact);
            as_expected.then_some(device)
        })
    };
    wait("it is sure", 1000, true);
    tracker.partial().unwrap();
    wait("it is not", 1000, false);
    tracker.alloc(device, Alloc::new(BufferType::Dram, 2, 500)).unwrap();
    tracker.complete().unwrap();
    let shown = wait("it is again", 1500, true);
    assert_eq!(shown["dram_peak_exact"], false);
    assert_eq!(shown["dram_peak_high_bytes"], Value::Null);
}
