//! What the driver tells, as the daemon publishes it and all commands show it.

use serde_json::{Value, json};
use tt_shm_reader::{DriverStats, Table, TableSnapshot, Told, device_flags};
use tt_shm_tests::machine::{Board, FakeProcess, Kmd};
use tt_shm_tests::space::{Process, until};
use tt_shm_tests::{Host, Machine, RegionImage, Space};
use tt_shm_writer::{Arch, DeviceInfo, Record};

use crate::common::{SMI, host};

/// The chip of the first n150 of a made-up machine.
const CHIP: u64 = 0x1279_2014_37FE_0AFE;

/// The daemon on a machine.
struct Scene {
    // Ended before its files are removed.
    daemon: Option<Process>,
    space: Space,
    machine: Machine,
}

impl Scene {
    fn new(kmd: Kmd, boards: &[Board]) -> Scene {
        let mut scene = Scene { space: Space::new(), machine: Machine::new(kmd, boards), daemon: None };
        scene.start();
        scene
    }

    fn start(&mut self) {
        // Another build of it, such as the one for users, for who measures.
        let program = std::env::var("TT_SMI_PROGRAM").unwrap_or_else(|_| SMI.to_owned());
        let mut command = self.space.command(&program);
        command.arg("aggregate").env("TT_SMI_ROOT", self.machine.path());
        self.daemon = Some(Process::spawn(command));
        self.until("a table with the driver's devices", |table| (!table.driver.is_empty()).then_some(()));
    }

    fn table(&self) -> Option<Table> {
        Table::open(self.space.namespace()).ok().filter(|table| table.freshness().is_fresh())
    }

    fn until<T>(&self, what: &str, found: impl Fn(&TableSnapshot) -> Option<T>) -> T {
        until(what, || found(&self.table()?.snapshot()))
    }

    /// What tt-smi prints.
    fn smi(&self, arguments: &[&str]) -> String {
        let mut command = self.space.command(SMI);
        let output = command.args(arguments).env("TT_SMI_ROOT", self.machine.path()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.smi(&[arguments, &["--json"]].concat())).unwrap()
    }

    fn row(table: &TableSnapshot, number: u64) -> Option<DriverStats> {
        table.driver.iter().map(|(_, stats)| *stats).find(|stats| stats.number == number)
    }

    /// The flags of the first n150, whoever reports on it.
    fn flags(table: &TableSnapshot) -> Option<u64> {
        table.devices.iter().find(|(_, device)| device.entry.chip_id == CHIP).map(|(_, device)| device.flags)
    }
}

const SILENT: u64 = device_flags::UNREPORTED_HOLDER | device_flags::INCOMPLETE;

#[test]
fn telemetry_is_in_the_table_in_every_output_and_in_the_past() {
    let mut scene = Scene::new(Kmd::V2_9, &[Board::N150, Board::P150a]);
    let snapshot = scene.json(&["snapshot"]);
    let device = &snapshot["devices"][0];
    assert_eq!((&device["temperature_celsius"], &device["source"]), (&json!(38.5), &json!(["driver"])));
    assert_eq!(
        (&device["dram_used_bytes"], &device["dram_used_exact"]),
        (&json!(0), &json!(true)),
        "nobody holds it"
    );
    assert_eq!(device["driver"]["heartbeat_moves"], Value::Null, "not known yet");
    scene.machine.set(0, "temp1_input", "91000");
    scene.machine.set(1, "power1_input", "not a number");
    scene.until("the new temperature", |table| {
        (Scene::row(table, 0)?.number(Told::Temperature) == Ok(91_000)).then_some(())
    });
    let csv = scene.smi(&["snapshot", "--format", "csv"]);
    let place =
        csv.lines().next().unwrap().split(',').position(|head| head == "temperature_celsius").unwrap();
    assert_eq!(csv.lines().nth(1).unwrap().split(',').nth(place), Some("91"));
    let metrics = scene.smi(&["snapshot", "--format", "prometheus"]);
    assert!(metrics.contains("\ntt_device_temperature_celsius{device=\"0\""), "{metrics}");
    let second = &scene.json(&["snapshot"])["devices"][1];
    assert_eq!(
        (&second["power_watts"], &second["driver"]["absent"]["power_watts"]),
        (&Value::Null, &json!("not understood"))
    );
    assert!(second["driver"]["note"].as_str().unwrap().contains("not a number"), "{second:#}");
    // The least and the most of the last minutes, also for who comes later, and after the daemon was killed.
    let range = |scene: &Scene| {
        let table = scene.table()?;
        let row = table.driver().find(|(_, stats)| stats.number == 0)?.0;
        let buckets = table.telemetry(row, 2);
        let trends = buckets.iter().filter_map(|bucket| bucket.trend(Told::Temperature));
        let (mins, maxs): (Vec<i64>, Vec<i64>) =
            trends.map(|trend| (trend.range().0, trend.range().1)).unzip();
        Some((*mins.iter().min()?, *maxs.iter().max()?))
    };
    assert_eq!(range(&scene), Some((38_500, 91_000)));
    let history = scene.json(&["history", "--span", "day"]);
    crate::schema::check("history", &history);
    let measured = history["devices"][0]["telemetry"].as_array().unwrap();
    let ends = |key: &str| {
        measured.iter().filter_map(|bucket| bucket["temperature_celsius"][key].as_f64()).collect::<Vec<_>>()
    };
    assert_eq!(ends("min").into_iter().reduce(f64::min), Some(38.5), "{history:#}");
    assert_eq!(ends("max").into_iter().reduce(f64::max), Some(91.0), "{history:#}");
    let fan = |device: usize| {
        history["devices"][device]["telemetry"].as_array().unwrap().last().unwrap()["fan_rpm"].clone()
    };
    assert_eq!((&fan(0), &fan(1)["last"]), (&Value::Null, &json!(1680.0)), "an n150 has no fan of its own");
    let table = scene.smi(&["history", "--span", "day", "--device", "0"]);
    assert!(table.contains("91.0") && table.contains("°C"), "{table}");
    let csv = scene.smi(&["history", "--span", "day", "--format", "csv"]);
    let place =
        csv.lines().next().unwrap().split(',').position(|head| head == "temperature_celsius_max").unwrap();
    assert!(csv.lines().skip(1).any(|line| line.split(',').nth(place) == Some("91")), "{csv}");
    scene.daemon.take().unwrap().kill();
    scene.start();
    assert_eq!(range(&scene), Some((38_500, 91_000)), "adopted");
}

#[test]
fn devices_come_go_and_are_renumbered() {
    let mut scene = Scene::new(Kmd::V2_9, &[Board::N150, Board::N150]);
    let serials = |table: &TableSnapshot| -> Vec<(u64, u64)> {
        let mut found: Vec<(u64, u64)> =
            table.driver.iter().map(|(_, row)| (row.number, row.asic_id)).collect();
        found.sort_unstable();
        found
    };
    let [(0, first), (1, second)] = scene.until("two devices", |table| Some(serials(table)))[..] else {
        panic!()
    };
    let gone = scene.machine.detach(0);
    scene.until("one device", |table| {
        (serials(table) == [(1, second)] && table.devices.len() == 1).then_some(())
    });
    scene.machine.attach_again(gone, 7);
    scene.until("both again", |table| (serials(table) == [(1, second), (7, first)]).then_some(()));
    let listed = scene.json(&["list"]);
    let numbers: Vec<&Value> =
        listed["devices"].as_array().unwrap().iter().map(|one| &one["driver"]["number"]).collect();
    assert_eq!(numbers, [&json!(1), &json!(7)]);
}

#[test]
fn a_holder_that_does_not_report_makes_its_device_inexact_until_it_reports() {
    let scene = Scene::new(Kmd::V2_9, &[Board::N150]);
    scene.until("an exact device", |table| (Scene::flags(table)? & SILENT == 0).then_some(()));
    // It is started, opens the device, and reports later, as tt-metal with the tap does.
    let mut host = Host::start(crate::common::HOST, &scene.space, []);
    scene.machine.list_pids(0, &[host.pid(), host.pid()]);
    scene.machine.add_process(&FakeProcess::new(host.pid(), "python3 train.py"), &[0]);
    if host_reports(&scene.space, &host) {
        // A host has a segment from the beginning, on whatever device.
        scene.until("a device that is exact", |table| (Scene::flags(table)? & SILENT == 0).then_some(()));
    }
    host.tell(tt_shm_tests::Command::Register { chip: CHIP, dram_bytes: 1 << 30, bus: 1 });
    scene.until("an exact device with a process", |table| {
        let device = table.devices.iter().find(|(_, device)| device.entry.chip_id == CHIP)?.1;
        (device.flags & SILENT == 0 && device.processes <= 1 && Scene::row(table, 0)?.holders == 1)
            .then_some(())
    });
    // Somebody else opens it, who never reports.
    scene.machine.add_process(&FakeProcess::new(4_000_000, "python3 other.py"), &[0]);
    scene.machine.list_pids(0, &[host.pid(), 4_000_000]);
    scene
        .until("a device that is not exact", |table| (Scene::flags(table)? & SILENT == SILENT).then_some(()));
    let snapshot = scene.json(&["snapshot"]);
    let device = &snapshot["devices"][0];
    assert_eq!((&device["dram_used_exact"], &device["dram_used_high_bytes"]), (&json!(false), &Value::Null));
    assert_eq!((&device["dram_peak_exact"], &device["unreported_holder"]), (&json!(false), &json!(true)));
    let errors = snapshot["errors"].as_array().unwrap();
    let silent = errors.iter().find(|error| error["kind"] == "silent").expect("told");
    let message = silent["message"].as_str().unwrap();
    assert!(message.contains("4000000 (python3 other.py)") && message.contains("tt-smi run"), "{message}");
    let ps = scene.json(&["ps"]);
    let silent = &ps["silent_holders"];
    assert_eq!(
        (&silent[0]["pid"], &silent[0]["devices"], &silent[1]),
        (&json!(4_000_000), &json!([0]), &Value::Null)
    );
    let text = scene.smi(&["ps"]);
    assert!(text.contains("without a report") && text.contains("python3 other.py"), "{text}");
    // It leaves: what is used now is known, what the peak was is not.
    scene.machine.list_pids(0, &[host.pid()]);
    scene.until("an exact device again", |table| (Scene::flags(table)? & SILENT == 0).then_some(()));
    let device = &scene.json(&["snapshot"])["devices"][0];
    assert_eq!((&device["dram_used_exact"], &device["dram_peak_exact"]), (&json!(true), &json!(false)));
}

/// Whether a host has a segment already.
fn host_reports(space: &Space, host: &Host) -> bool {
    space.segments().iter().any(|path| path.to_string_lossy().contains(&format!(".{}-", host.pid())))
}

#[test]
fn the_driver_is_believed_before_processes() {
    let scene = Scene::new(Kmd::V2_9, &[Board::N150]);
    let mut liar = host(&scene.space, []);
    // The chip of the device, at another address.
    liar.tell(tt_shm_tests::Command::Register { chip: CHIP, dram_bytes: 1 << 30, bus: 9 });
    let device = until("a conflict", || {
        let device = scene.json(&["snapshot"])["devices"][0].clone();
        (device["conflict"] == json!(true)).then_some(device)
    });
    assert_eq!((&device["pci_address"], &device["board"]), (&json!("0000:01:00.0"), &json!("n150")));
    assert_eq!(device["capacity_source"], "producer", "the driver does not know how much memory there is");
}

/// Neither chip nor address tell which one it is, as on boards whose ids tt-metal and the driver form differently.
#[test]
fn a_device_is_known_by_its_number_to_a_process_that_holds_it() {
    let (space, machine) = (Space::new(), Machine::new(Kmd::V2_9, &[Board::N150, Board::N150]));
    let scene = Scene { daemon: None, space, machine };
    let tracker = crate::common::tracker(&scene.space);
    let info = |number: u32, arch| DeviceInfo {
        chip_id: 5000 + u64::from(number),
        logical_id: Some(number),
        arch,
        ..DeviceInfo::default()
    };
    tracker.register_device(&info(0, Arch::Blackhole)).unwrap();
    tracker.register_device(&info(1, Arch::Wormhole)).unwrap();
    let joined = || {
        let devices = scene.json(&["list"])["devices"].as_array().unwrap().clone();
        let number = |device: &Value| (device["chip_id"].clone(), device["driver"]["number"].clone());
        devices.iter().map(number).collect::<Vec<_>>()
    };
    assert_eq!(joined().len(), 4, "it does not hold them, so nothing tells that they are the same");
    for number in [0, 1] {
        scene.machine.list_pids(number, &[std::process::id()]);
    }
    let joined = joined();
    let chip = |chip: u64| json!(format!("{chip:#018x}"));
    assert!(
        joined.contains(&(chip(5001), json!(1))) && joined.contains(&(chip(CHIP), json!(0))),
        "{joined:?}"
    );
    assert!(
        joined.contains(&(chip(5000), Value::Null)) && joined.len() == 3,
        "of another architecture: {joined:?}"
    );
    let devices = scene.json(&["list"])["devices"].clone();
    let by_number =
        devices.as_array().unwrap().iter().find(|device| device["chip_id"] == chip(5001)).unwrap();
    assert_eq!(by_number["driver"]["joined_by_logical_id"], json!(true));
}

/// What the daemon costs with a Galaxy: 32 devices, their telemetry and holders, and 32 regions.
#[test]
#[ignore = "prints what share of a core the daemon takes: a time is no reason to fail, so nobody waits for it"]
fn cost_of_the_daemon_with_32_devices_and_regions() {
    let (space, machine) = (Space::new(), Machine::new(Kmd::V2_9, &[Board::GalaxyWormhole]));
    std::fs::create_dir_all(machine.path().join("dev/shm")).unwrap();
    for chip in 0..32_u64 {
        let image = RegionImage::honest(3, chip, &[(std::process::id() as i32, [1 << 20, 0, 0, 0, 0])]);
        std::fs::write(machine.path().join(format!("dev/shm/tt_device_{chip}_memory")), &image.0).unwrap();
        machine.list_pids(chip as u32, &[std::process::id()]);
    }
    let mut scene = Scene { daemon: None, space, machine };
    scene.start();
    let pid = scene.daemon.as_ref().unwrap().0.id();
    let ticks = || -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let (before, since) = (ticks(), std::time::Instant::now());
    std::thread::sleep(std::time::Duration::from_secs(30));
    let used = (ticks() - before) as f64 / 100.0;
    println!("{:.2} % of a core", 100.0 * used / since.elapsed().as_secs_f64());
}

#[test]
fn without_a_daemon_it_is_the_same() {
    let (space, machine) = (Space::new(), Machine::new(Kmd::V2_5, &[Board::GalaxyWormhole]));
    let scene = Scene { space, machine, daemon: None };
    scene.machine.list_pids(31, &[4_000_001]);
    let snapshot = scene.json(&["snapshot"]);
    let devices = snapshot["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 32);
    let numbers: Vec<u64> =
        devices.iter().map(|device| device["driver"]["number"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted(), "10 after 9: {numbers:?}");
    let silent: Vec<bool> = devices.iter().map(|device| device["unreported_holder"] == json!(true)).collect();
    assert_eq!((silent[31], silent.iter().filter(|silent| **silent).count()), (true, 1));
    let text = scene.smi(&["list"]);
    assert!(text.lines().nth(1).unwrap().contains("~12.0 GiB") && text.contains("~ nominal"), "{text}");
}
