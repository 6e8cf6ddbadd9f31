//! What it costs to look: at one device, at all, at everything that is live; beside what there was.

use serde_json::{Value, json};
use std::hint::black_box;
use tt_shm_benches::child::{Player, play_part_if_asked};
use tt_shm_benches::options::Options;
use tt_shm_benches::region::Region;
use tt_shm_benches::report::{Base, Report};
use tt_shm_measure::message::{Kind, place};
use tt_shm_measure::scene::Scene;
use tt_shm_measure::sink::chip;
use tt_shm_measure::socket::SocketClient;
use tt_shm_measure::timing::{Measured, measure};
use tt_shm_measure::workload::{SIZE, Single};
use tt_shm_reader::{Segment, Table};
use tt_shm_writer::{Alloc, BufferType, Record, Tracker};

const DEVICES: u64 = 32;
const LIVE: u64 = 10_000;

fn main() {
    play_part_if_asked();
    let options = Options::from_env();
    let mut read = Read { report: Report::new("read", &options), row: None, options };
    let harness = read.measure(1, || _ = black_box(1));
    read.table();
    read.add("harness alone", &[], harness);
    read.segment();
    read.region();
    read.socket();
    read.report.finish();
}

struct Read {
    options: Options,
    report: Report,
    /// One device row: what the others are a multiple of.
    row: Option<Base>,
}

impl Read {
    fn add(&mut self, name: &str, parameters: &[(&str, Value)], measured: Measured) {
        let row = self.row.as_ref().expect("measured first");
        self.report.add_to(row, name, parameters, measured);
    }

    /// Something that takes about so many times as long as reading a row.
    fn measure(&self, times: u64, call: impl FnMut()) -> Measured {
        measure(&mut Single(call), self.options.effort().over(times))
    }

    /// The rows that an aggregator in another process publishes.
    fn table(&mut self) {
        let scene = Scene::new();
        let _tracker = tracker(&scene, 1);
        let _aggregator = Player::aggregator(&scene);
        let table = scene.wait_for_table("all devices", |table| {
            table.devices.iter().filter(|(_, device)| device.dram_used_bytes == SIZE).count()
                == DEVICES as usize
        });
        let used = |row: usize| table.device(row).read(|row| (row.dram_used_bytes(), row.l1_used_bytes()));
        assert_eq!(used(0), Some((SIZE, 0)));
        let one = self.measure(1, || _ = black_box(used(black_box(3))));
        self.row = Some(self.report.add("one device row, in place", &[], one));
        let row = table.device(3);
        let kept = self.measure(1, || _ = black_box(black_box(row).read(|row| row.dram_used_bytes())));
        self.add("one figure of a row that was looked up before", &[], kept);
        let all = self.measure(16, || {
            for row in 0..DEVICES as usize {
                black_box(used(row));
            }
        });
        self.add("all device rows, in place", &[("devices", json!(DEVICES))], all);
        let copied = self.measure(64, || assert_eq!(table.devices().count(), DEVICES as usize));
        self.add("all device rows, copied", &[("devices", json!(DEVICES))], copied);
        let opened = self.measure(500, || _ = black_box(Table::open(&scene.namespace).expect("a table")));
        self.add("opening the table", &[], opened);
    }

    /// The figures of one process, from its own segment.
    fn segment(&mut self) {
        let scene = Scene::new();
        let tracker = tracker(&scene, LIVE);
        let segment = Segment::open(&tracker.segment_path().expect("enabled")).expect("a segment");
        let now = segment.counters().expect("exact counters");
        assert_eq!(now.counters[0].dram_used(), LIVE * SIZE);
        let counters = self.measure(100, || _ = black_box(segment.counters().expect("counters")));
        self.add("all counters of a process", &[("devices", json!(DEVICES))], counters);
        let list = segment.allocations();
        assert!(list.exact && list.list.len() as u64 == LIVE + DEVICES - 1);
        let live = self.measure(20_000, || _ = black_box(segment.allocations()));
        self.add("live list of a process", &[("live", json!(LIVE))], live);
    }

    fn region(&mut self) {
        let region = Region::new(0).expect("shared memory");
        region.record(SIZE.cast_signed());
        assert_eq!(region.totals()[0], SIZE);
        let totals = self.measure(1, || _ = black_box(region.totals()));
        self.add("tt-metal region, one chip", &[], totals);
    }

    /// A round trip to a server that keeps as many allocations.
    fn socket(&mut self) {
        let scene = Scene::new();
        let path = scene.path("socket");
        let _server = Player::server(&path);
        let client = SocketClient::connect(&path);
        for id in 0..LIVE {
            client.send(Kind::Alloc, 0, id, SIZE);
        }
        assert_eq!(client.query(0)[place::DRAM], LIVE * SIZE);
        let query = self.measure(500, || _ = black_box(client.query(0)));
        self.add("socket QUERY, one device", &[], query);
        let all = self.measure(5_000, || {
            for device in 0..DEVICES as i32 {
                black_box(client.query(device));
            }
        });
        self.add("socket QUERY, all devices", &[("devices", json!(DEVICES))], all);
    }
}

/// So many allocations on the first device and one on each of the others.
fn tracker(scene: &Scene, live: u64) -> Tracker {
    let tracker = scene.builder().open().expect("a segment");
    for chip_id in 0..DEVICES {
        let device = tracker.register_device(&chip(chip_id)).expect("a device");
        for id in 0..if chip_id == 0 { live } else { 1 } {
            tracker.alloc(device, Alloc::new(BufferType::Dram, id, SIZE)).expect("new");
        }
    }
    tracker
}
