//! `tt-smi list` on machines with the driver.

use serde_json::{Value, json};
use tt_shm_tests::machine::{Board, FakeProcess, Kmd};
use tt_shm_tests::{Command, Machine, Space};

use crate::common::{SMI, host};

/// The chip of the first n150 of a made-up machine.
const CHIP: u64 = 0x1279_2014_37FE_0AFE;

fn list(space: &Space, machine: &Machine, arguments: &[&str]) -> String {
    let mut command = space.command(SMI);
    command.arg("list").args(arguments).env("TT_SMI_ROOT", machine.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn document(space: &Space, machine: &Machine, arguments: &[&str]) -> Value {
    let text = list(space, machine, &[arguments, &["--json"]].concat());
    let document = serde_json::from_str(&text).unwrap();
    crate::schema::check("list", &document);
    document
}

#[test]
fn devices_that_nobody_reports_on_are_listed() {
    let (space, machine) = (Space::new(), Machine::new(Kmd::V2_9, &[Board::N150, Board::P300c]));
    let document = document(&space, &machine, &[]);
    assert_eq!(document["driver_version"], "2.9.0");
    let devices = document["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 3);
    let n150 = &devices[0];
    for (key, value) in [
        ("index", json!(0)),
        ("source", json!(["driver"])),
        ("board", json!("n150")),
        ("arch", json!("wormhole_b0")),
        ("pci_address", json!("0000:01:00.0")),
        ("chip_id", json!("0x1279201437fe0afe")),
        ("capacity_source", json!("nominal")),
        ("dram_total_bytes", json!(12_u64 << 30)),
        ("temperature_celsius", json!(38.5)),
        ("temperature_limit_celsius", json!(75.0)),
        ("power_watts", json!(15.0)),
        ("voltage_volts", json!(0.72)),
        ("pcie_transfers_per_second", json!(16e9)),
        ("pcie_lanes", json!(16.0)),
        ("aiclk_hertz", json!(5e8)),
        ("arcclk_hertz", json!(5.4e8)),
        ("fan_rpm", Value::Null),
    ] {
        assert_eq!(n150[key], value, "{key}");
    }
    for (key, value) in [
        ("number", json!(0)),
        ("asic_id", json!("0x1279201437fe0afe")),
        ("serial", json!("0x010001851172b05c")),
        ("holder_count", json!(0)),
        ("holders", json!([])),
    ] {
        assert_eq!(n150["driver"][key], value, "{key}");
    }
    assert_eq!(n150["driver"]["firmware"]["bundle"], "80.10.0.0");
    assert_eq!(n150["driver"]["absent"]["fan_rpm"], "not published by the driver");
    assert_eq!(devices[1]["driver"]["absent"]["fan_rpm"], "not fitted");
    let text = list(&space, &machine, &[]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with("SOURCE") && lines[1].ends_with("driver"), "{text}");
    assert!(
        lines[1].contains("n150") && lines[1].contains("38.5 °C") && lines[1].contains("15.0 W"),
        "{text}"
    );
    assert!(lines[2].contains("p300c") && lines[4].contains("nominal"), "{text}");
}

#[test]
fn devices_that_report_are_joined_with_the_driver() {
    let (space, machine) = (Space::new(), Machine::new(Kmd::V2_9, &[Board::N150, Board::P150a]));
    // The serial number, and a place on the board: what tt-metal calls a Blackhole board with one chip.
    let serial = (0x461_3192_4062_u64 + 1) << 5;
    let mut host = host(&space, [CHIP, serial, 5]);
    let joined = document(&space, &machine, &[]);
    let devices = joined["devices"].as_array().unwrap();
    let numbers = |chip: u64| {
        let id = json!(format!("{chip:#018x}"));
        devices.iter().find(|device| device["chip_id"] == id).unwrap()["driver"]["number"].clone()
    };
    assert_eq!((numbers(CHIP), numbers(serial), numbers(5)), (json!(0), json!(1), Value::Null));
    assert_eq!(devices.len(), 3);
    let old = Machine::new(Kmd::V2_0, &[Board::N150]);
    host.tell(Command::Register { chip: 6, dram_bytes: 1 << 30, bus: 1 });
    let by_address = document(&space, &old, &["--device", "0x6"]);
    assert_eq!(by_address["devices"][0]["driver"]["number"], 0, "a driver without ids of chips");
    let text = list(&space, &machine, &[]);
    assert!(text.contains("ring+driver") && !text.contains("nominal"), "{text}");
}

#[test]
fn devices_of_the_driver_are_selected_by_address_chip_and_board() {
    let (space, machine) = (Space::new(), Machine::new(Kmd::V2_9, &[Board::N150, Board::P300c]));
    let _host = host(&space, [CHIP]);
    for (arguments, meant) in [
        (&["--device", "0"][..], &[0][..]),
        (&["--device", "02:00.0"], &[1]),
        (&["--device", "0x1279201437fe0afe", "--device", "0000:03:00.0"], &[0, 2]),
        (&["--device", "0xfcf9bcf9e3c8b99e"], &[1]),
        (&["--query", "p300"], &[1, 2]),
        (&["--query", "dram=0"], &[0, 1, 2]),
        (&["--query", "nothing"], &[]),
    ] {
        let document = document(&space, &machine, arguments);
        let devices = document["devices"].as_array().unwrap();
        let indices: Vec<u64> = devices.iter().map(|device| device["index"].as_u64().unwrap()).collect();
        assert_eq!(indices, meant, "{arguments:?}");
    }
    assert_eq!(list(&space, &machine, &["--query", "nothing"]), "No matching devices.\n");
}

#[test]
fn holders_are_told_with_user_container_and_doubts() {
    let (space, machine) = (Space::new(), Machine::new(Kmd::V2_5, &[Board::N150]));
    let id = "0123456789abcdef".repeat(4);
    let group = format!("/system.slice/docker-{id}.scope");
    machine.add_process(&FakeProcess::new(42, "python3 \x1b[2J").in_group(&group), &[0]);
    machine.list_pids(0, &[42, 42, 43, 0]);
    let document = document(&space, &machine, &[]);
    let device = &document["devices"][0]["driver"];
    let holder = &device["holders"][0];
    for (key, value) in [
        ("pid", json!(42)),
        ("confirmed", json!(true)),
        ("handles", json!(2)),
        ("uid", json!(1000)),
        ("command", json!("python3 \x1b[2J")),
        ("host_resident_bytes", json!(4 << 20)),
        ("container_id", json!(id)),
        ("container_runtime", json!("docker")),
    ] {
        assert_eq!(holder[key], value, "{key}");
    }
    assert_eq!(
        (&device["holders"][1]["confirmed"], &device["invisible_holders"]),
        (&json!(false), &json!(1))
    );
    assert_eq!(document["driver_gaps"].as_array().unwrap().len(), 2, "{document:#}");
    assert!(
        list(&space, &machine, &[]).contains("driver: pids of the driver's list that cannot be confirmed")
    );
}

#[test]
fn machines_without_the_driver_are_as_before() {
    let space = Space::new();
    let document = crate::common::json(&space, &["list"]);
    assert_eq!((&document["driver_version"], &document["devices"]), (&Value::Null, &json!([])));
    assert!(crate::common::smi(&space, &["list"]).starts_with("No device: no process reports"));
}
