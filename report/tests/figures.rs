//! What a report says of records whose truth is known: gaps, devices that are alike, and lists that have a limit.

use serde_json::Value;
use shm_layout::{Class, Counters, DeviceEntry, Event, EventKind, Row, SegmentHeader};
use tt_shm_record::{Begin, Entry, FrameTime, GapEntry, ProcessEntry, Record, RecordWriter, StateEntry};
use tt_shm_report::{Options, Report};

const MS: u64 = 1_000_000;

/// A record of one process that is written event by event.
struct Made {
    writer: RecordWriter<Vec<u8>>,
    counters: Vec<Counters>,
    live: Vec<Event>,
    stamp: u64,
}

impl Made {
    /// A process on this many chips, with these names from 1 on.
    fn new(chips: u64, names: &[String]) -> Made {
        let begin = Begin { host: "here".into(), monotonic_ns: MS, realtime_ns: 1 << 60, ..Begin::default() };
        let mut writer = RecordWriter::new(Vec::new(), &begin, Default::default()).unwrap();
        let header = SegmentHeader { clock_kind: 3, pid: 7, ..SegmentHeader::plan(64, 64, 4096) };
        writer.process(&ProcessEntry::new(0, header)).unwrap();
        writer.names(0, (1..).zip(names.iter().map(|name| name.clone().into_bytes())).collect()).unwrap();
        let chip = |chip: u64| (chip, DeviceEntry { chip_id: 1 + chip, ..bytemuck::zeroed() });
        writer.devices(0, (0..chips).map(chip).collect()).unwrap();
        writer.state(0, &StateEntry::nothing(MS), &[]).unwrap();
        Made { writer, counters: vec![Counters::ZERO; chips as usize], live: Vec::new(), stamp: 0 }
    }

    /// The next event, at as many milliseconds as its number. One that is lost happened all the same.
    fn event(&mut self, event: Event, is_lost: bool) {
        self.stamp += 1;
        let event = Event { stamp: self.stamp, time: (1 + self.stamp) * MS, ..event };
        self.counters[usize::from(event.device)].apply(&event).unwrap();
        if event.kind() == Some(EventKind::Alloc) {
            self.live.push(event);
        }
        if !is_lost {
            self.writer.events(0, &[event], FrameTime::at(event.time)).unwrap();
        }
    }

    fn alloc(&self, device: u8, class: Class, size: u64, name: u16) -> Event {
        let (id, class, row) = (1 + self.stamp, class as u8, self.stamp as u32);
        Event { class, id, size, aux: size, row, name, ..Event::new(EventKind::Alloc, device) }
    }

    fn checkpoint(&mut self) {
        let rows: Vec<Row> = self.live.iter().map(Row::from_event).collect();
        let state = StateEntry {
            position: self.stamp,
            counters: self.counters.clone(),
            ..StateEntry::nothing((1 + self.stamp) * MS)
        };
        self.writer.state(0, &state, &rows).unwrap();
    }

    fn report(self) -> Value {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), self.writer.finish((2 + self.stamp) * MS).unwrap()).unwrap();
        let record = Record::open(file.path()).unwrap();
        let report = Report::of(&record, &Options::default(), &mut |_| {}).unwrap();
        serde_json::from_str(&report.json().unwrap()).unwrap()
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// The time of an event in the report, which begins with the record.
fn ns(stamp: u64) -> u64 {
    stamp * MS
}

#[test]
fn nothing_across_a_gap_is_exact() {
    let mut made = Made::new(1, &["weights".to_owned()]);
    for stamp in 1..=40 {
        let is_lost = (11..=15).contains(&stamp);
        made.event(made.alloc(0, Class::Dram, 100, 1), is_lost);
        match stamp {
            15 => {
                let gap = GapEntry { process: 0, first: 11, last: 15, time_ns: 16 * MS };
                made.writer.entry(&Entry::Gap(gap), FrameTime::at(16 * MS)).unwrap();
            }
            25 => made.checkpoint(),
            _ => {}
        }
    }
    let (used, page) = (made.counters[0].dram_used(), made.report());
    assert_eq!((&page["lost"], &page["gap_count"]), (&5.into(), &1.into()));
    let device = &page["devices"][0];
    assert_eq!(device["gaps"], serde_json::json!([[ns(10), ns(25)]]));
    assert_eq!(device["peaks"][0], serde_json::json!([used, null, ns(40)]), "nothing bounds a peak");
    assert_eq!((&device["last"][0], &device["is_last_exact"]), (&used.into(), &true.into()));
    assert_eq!(page["processes"][0]["unknown"], device["gaps"]);
    let (mut inside, mut outside) = (0, 0);
    for look in list(&page["snapshots"]) {
        let (at, holding) = (look["ns"].as_u64().unwrap(), &look["devices"][0]);
        let is_inside = (ns(10)..ns(25)).contains(&at);
        assert_eq!(holding["is_exact"], !is_inside, "{at} {holding}");
        (inside, outside) = (inside + u64::from(is_inside), outside + u64::from(!is_inside));
        if !is_inside {
            assert_eq!(holding["figures"][0], 100 * (at / MS).min(40), "{at}");
        }
    }
    assert!(inside >= 3 && outside >= 3, "{inside} {outside}");
    let told = list(&page["findings"])
        .iter()
        .any(|one| one["text"].as_str().unwrap().contains("5 events are missing"));
    assert!(told, "{}", page["findings"]);
}

#[test]
fn a_mesh_is_one_line_but_for_the_device_whose_allocation_failed() {
    let mut made = Made::new(4, &["cache".to_owned()]);
    for round in 0..5 {
        for device in 0..4 {
            made.event(made.alloc(device, Class::L1, 1000 + round, 1), false);
        }
        if round == 2 {
            let failed = Event {
                class: Class::L1 as u8,
                size: 5000,
                id: 700,
                address: 900,
                aux: 600,
                ..Event::new(EventKind::AllocFailed, 3)
            };
            made.event(failed, false);
        }
    }
    let (used, page) = (made.counters[0].l1_used(), made.report());
    let labels: Vec<_> =
        list(&page["devices"]).iter().map(|device| device["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["0-2 x3", "3"]);
    for device in list(&page["devices"]) {
        assert_eq!((&device["peaks"][1][0], &device["peaks"][1][1]), (&used.into(), &used.into()), "exact");
        assert_eq!(device["gaps"], serde_json::json!([]));
    }
    let failure = &list(&page["failures"])[0];
    assert_eq!(
        (&failure["device"], &failure["on"], &failure["ns"]),
        (&1.into(), &"3".into(), &ns(13).into())
    );
    assert_eq!((&failure["held"], &failure["is_exact"]), (&serde_json::json!([0, 3003]), &true.into()));
    let look = &page["snapshots"][failure["snapshot"].as_u64().unwrap() as usize];
    let holding = list(&look["devices"]).iter().find(|holding| holding["device"] == 1).unwrap();
    assert_eq!((&holding["figures"][1], &holding["is_exact"]), (&3003.into(), &true.into()));
    assert_eq!(page["failure_count"], 1);
    let lists: u64 = list(&page["left"]).iter().map(|row| row[4].as_u64().unwrap()).sum();
    assert_eq!(lists, 2 * used, "what was never freed, of the first device of each line");
}

#[test]
fn failures_that_differ_are_not_one_line() {
    let mut made = Made::new(2, &[]);
    for device in 0..2 {
        let (class, size) = (Class::L1 as u8, 5000 + u64::from(device));
        made.event(Event { class, size, ..Event::new(EventKind::AllocFailed, device) }, false);
    }
    assert_eq!(list(&made.report()["devices"]).len(), 2);
}

#[test]
fn many_groups_of_dram_leave_those_of_l1_in_the_list() {
    let names: Vec<String> = (1..=3000).map(|name| format!("tensor.{name}")).collect();
    let mut made = Made::new(1, &names);
    for name in 1..=2900 {
        made.event(made.alloc(0, Class::Dram, 1 << 20, name), false);
    }
    for name in 2901..=3000 {
        made.event(made.alloc(0, Class::L1, 32, name), false);
    }
    let page = made.report();
    let mut peaks = list(&page["snapshots"]).iter().filter(|look| look["kind"] == "peak");
    let of: Vec<_> = peaks.clone().map(|look| look["of"].clone()).collect();
    assert_eq!(of, [serde_json::json!([0, 0]), serde_json::json!([0, 1])]);
    let holding = &peaks.next_back().unwrap()["devices"][0];
    let listed = |class: Class| {
        list(&holding["groups"]).iter().filter(|group| group[0] == class as u64).count() as u64
    };
    assert_eq!(listed(Class::L1), 100);
    assert!(listed(Class::Dram) >= 1000);
    let rest = 2900 - listed(Class::Dram);
    assert!(rest > 0, "the limit of DRAM is reached");
    assert_eq!(holding["others"], serde_json::json!([[rest, rest << 20], [0, 0]]));
    assert_eq!(holding["unlisted"], serde_json::json!([0, 0]));
    assert_eq!((&page["left_count"], list(&page["left"]).len()), (&3000.into(), 2000));
}
