//! Devices, as the driver's files describe them, on made-up machines.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use tt_shm_driver::{
    Absence, Architecture, Clock, Component, Device, Holders, KernelFiles, Monitor, Pace, Quantity, Roots,
    Sensor,
};
use tt_shm_tests::Machine;
use tt_shm_tests::machine::{Board, FaultyFiles, Kmd};

/// Time between two polls, and between two scans.
const POLL: Duration = Duration::from_secs(1);
const SCAN: Duration = Duration::from_secs(10);

/// A monitor of a machine, with its clock, and with files that fail on demand.
struct Watch {
    monitor: Monitor<FaultyFiles>,
    files: FaultyFiles,
    now: Instant,
}

impl Watch {
    fn new(machine: &Machine) -> Watch {
        let files = FaultyFiles::default();
        let monitor = Monitor::with(machine.roots(), Pace { poll: POLL, scan: SCAN }, files.clone());
        let mut watch = Watch { monitor, files, now: Instant::now() };
        watch.after(Duration::ZERO);
        watch
    }

    fn after(&mut self, time: Duration) -> &[Device] {
        self.now += time;
        self.monitor.poll(self.now);
        self.monitor.devices()
    }

    fn numbers(&self) -> Vec<u32> {
        self.monitor.devices().iter().map(|device| device.number).collect()
    }

    fn first(&self) -> &Device {
        &self.monitor.devices()[0]
    }
}

fn devices(machine: &Machine) -> Vec<Device> {
    Watch::new(machine).monitor.devices().to_vec()
}

fn version(device: &Device, component: Component) -> Option<&str> {
    device.firmware(component).as_ref().ok().map(|version| version.as_str())
}

fn input(device: &Device, quantity: Quantity) -> &Result<i64, Absence> {
    &device.sensor(quantity).input
}

#[test]
fn an_n150_is_read_completely() {
    let machine = Machine::new(Kmd::V2_9, &[Board::N150]);
    let watch = Watch::new(&machine);
    let device = watch.first();
    let identity = &device.identity;
    assert_eq!(watch.monitor.version().as_ref().unwrap().as_str(), "2.9.0");
    assert_eq!(identity.pci.as_ref().unwrap().to_string(), "0000:01:00.0");
    assert_eq!(device.architecture(), Some(Architecture::Wormhole));
    assert_eq!(identity.card.as_deref(), Ok("n150"));
    assert_eq!(
        (&identity.serial, &identity.asic_id),
        (&Ok(0x0100_0185_1172_B05C), &Ok(0x1279_2014_37FE_0AFE))
    );
    assert_eq!(identity.numa_node, Ok(0));
    let firmware = Component::ALL.map(|component| version(device, component).unwrap());
    assert_eq!(firmware, ["80.10.0.0", "5.9.0.0", "129.2.0.0", "2.27.0.0", "6.9.0", "3.4.0.0"]);
    assert_eq!(device.clocks, [Ok(500), Ok(900), Ok(540)]);
    assert_eq!((&device.link.current.speed, &device.link.current.width), (&Ok(16_000), &Ok(16)));
    assert_eq!((&device.link.max.speed, &device.link.max.width), (&Ok(16_000), &Ok(16)));
    let sensor = |input, max| Sensor { input: Ok(input), max: Ok(max) };
    let measured =
        [sensor(38_500, 75_000), sensor(720, 950), sensor(20_000, 160_000), sensor(15_000_000, 75_000_000)];
    assert_eq!(device.sensors[..4], measured);
    assert_eq!(*input(device, Quantity::Fan), Err(Absence::Missing), "a Wormhole publishes none");
    assert_eq!((&device.health.heartbeat, device.health.heartbeat_moves), (&Ok(43_874), None));
    assert_eq!(device.health.thermal_trips, Err(Absence::Missing));
    assert_eq!(device.nominal().unwrap().dram_bytes, 12 << 30);
    assert_eq!(device.chip_ids(), [0x1279_2014_37FE_0AFE]);
}

#[test]
fn a_p300c_is_two_devices_without_a_fan() {
    let devices = devices(&Machine::new(Kmd::V2_9, &[Board::P300c]));
    assert_eq!(devices.len(), 2);
    let [one, other] = [&devices[0], &devices[1]];
    assert_eq!(one.identity.serial, other.identity.serial);
    assert_ne!(one.identity.asic_id, other.identity.asic_id);
    assert_ne!(one.identity.pci, other.identity.pci);
    for device in &devices {
        assert_eq!(device.architecture(), Some(Architecture::Blackhole));
        assert_eq!(*input(device, Quantity::Fan), Err(Absence::NotFitted));
        assert_eq!(device.sensor(Quantity::Fan).max, Err(Absence::Missing));
        assert_eq!(*input(device, Quantity::Temperature), Ok(38_036));
        assert_eq!(device.health.thermal_trips, Ok(0));
        assert_eq!(version(device, Component::Ethernet), None, "published for Wormhole only");
        assert_eq!(device.chip_ids().len(), 1, "its place on the board is not known");
    }
}

#[test]
fn other_boards_are_told_by_their_names() {
    for board in Board::ALL {
        let devices = devices(&Machine::new(Kmd::V2_9, &[board]));
        assert_eq!(devices.len(), board.devices() as usize, "{board:?}");
        for device in &devices {
            assert_eq!(device.identity.card.as_deref(), Ok(board.name()));
            let architecture = if board.is_wormhole() { "wormhole_b0" } else { "blackhole" };
            assert_eq!(device.architecture().map(Architecture::name), Some(architecture));
            assert!(device.nominal().is_some_and(|nominal| nominal.l1_bytes().is_some()), "{board:?}");
        }
    }
    let n300 = devices(&Machine::new(Kmd::V2_9, &[Board::N300]));
    assert_eq!(n300[0].nominal().unwrap().chips, 2, "the driver has one of them");
    let p150a = devices(&Machine::new(Kmd::V2_9, &[Board::P150a]));
    assert_eq!(*input(&p150a[0], Quantity::Fan), Ok(1680));
    assert_eq!(p150a[0].chip_ids()[1], 0x461_3192_4062 << 5, "as tt-metal names a board with one chip");
}

#[test]
fn old_drivers_lack_attributes_and_nothing_else() {
    for kmd in Kmd::ALL {
        for board in [Board::N150, Board::P300c] {
            let device = &devices(&Machine::new(kmd, &[board]))[0];
            let missing_unless =
                |has: bool, is_missing: bool| assert_eq!(has, !is_missing, "{kmd:?} {board:?}");
            missing_unless(kmd.has_asic_ids(), device.identity.asic_id == Err(Absence::Missing));
            missing_unless(kmd.has_heartbeat(), device.health.heartbeat == Err(Absence::Missing));
            let has_limits = board.is_wormhole() || kmd.has_blackhole_limits();
            missing_unless(has_limits, device.sensor(Quantity::Power).max == Err(Absence::Missing));
            assert!(device.sensor(Quantity::Power).input.is_ok() && device.clock(Clock::Ai).is_ok());
        }
    }
}

#[test]
fn a_galaxy_is_in_the_order_of_numbers() {
    for board in [Board::GalaxyWormhole, Board::GalaxyBlackhole] {
        let watch = Watch::new(&Machine::new(Kmd::V2_9, &[board]));
        assert_eq!(watch.numbers(), (0..32).collect::<Vec<_>>());
    }
}

#[test]
fn without_the_driver_there_are_no_devices() {
    let folder = tempfile::tempdir().unwrap();
    let mut monitor = Monitor::new(Roots::below(folder.path()));
    assert!(monitor.poll(Instant::now()));
    assert_eq!((monitor.listed(), monitor.version()), (&Err(Absence::Missing), &Err(Absence::Missing)));
    assert!(monitor.devices().is_empty());
}

#[test]
fn polls_read_through_handles_that_stay_open() {
    let machine = Machine::new(Kmd::V2_9, &[Board::GalaxyBlackhole]);
    let mut watch = Watch::new(&machine);
    watch.files.take_counts();
    machine.set(31, "tt_aiclk", "1350");
    machine.set(31, "temp1_input", "-500");
    let device = &watch.after(POLL)[31];
    assert_eq!((device.clock(Clock::Ai), input(device, Quantity::Temperature)), (&Ok(1350), &Ok(-500)));
    assert_eq!(watch.files.take_counts(), (0, 32 * 10));
    watch.after(POLL / 2);
    assert_eq!(watch.files.take_counts(), (0, 0), "not due yet");
}

#[test]
fn a_heartbeat_that_stands_still_is_told() {
    let machine = Machine::new(Kmd::V2_9, &[Board::N150]);
    let mut watch = Watch::new(&machine);
    machine.set(0, "tt_heartbeat", "43884");
    assert_eq!(watch.after(POLL)[0].health.heartbeat_moves, Some(true));
    assert_eq!(watch.after(POLL)[0].health.heartbeat_moves, Some(true), "one reading proves nothing");
    assert_eq!(watch.after(POLL)[0].health.heartbeat_moves, Some(false));
}

#[test]
fn a_reset_is_told_and_passes() {
    let machine = Machine::new(Kmd::V2_9, &[Board::P150a, Board::N150]);
    let mut watch = Watch::new(&machine);
    for name in ["temp1_input", "power1_input", "fan1_input", "tt_aiclk", "tt_heartbeat"] {
        watch.files.fail(machine.attribute(0, name), Errno::NODATA);
    }
    watch.files.take_counts();
    let device = &watch.after(POLL)[0];
    assert_eq!(*input(device, Quantity::Temperature), Err(Absence::Resetting));
    assert_eq!(*device.clock(Clock::Ai), Err(Absence::Resetting));
    assert_eq!((&device.health.heartbeat, device.health.heartbeat_moves), (&Err(Absence::Resetting), None));
    assert_eq!(*input(device, Quantity::Voltage), Ok(718), "the others are read");
    assert_eq!(*input(&watch.monitor.devices()[1], Quantity::Temperature), Ok(38_500));
    watch.files.heal();
    assert_eq!(*input(&watch.after(POLL)[0], Quantity::Temperature), Ok(38_036));
    assert_eq!(watch.files.take_counts().0, 0, "handles outlive a reset");
}

#[test]
fn a_device_that_is_gone_is_looked_for_at_once() {
    let mut machine = Machine::new(Kmd::V2_9, &[Board::N150, Board::P150a]);
    let mut watch = Watch::new(&machine);
    // Reading through a handle fails as soon as the device is detached.
    watch.files.fail(machine.attribute(0, "temp1_input"), Errno::NODEV);
    watch.files.fail(machine.attribute(0, "tt_aiclk"), Errno::NODEV);
    let detached = machine.detach(0);
    let device = &watch.after(POLL)[0];
    assert_eq!(*input(device, Quantity::Temperature), Err(Absence::Gone));
    assert_eq!(*device.clock(Clock::Ai), Err(Absence::Gone));
    watch.after(POLL);
    assert_eq!(watch.numbers(), [1]);
    machine.attach_again(detached, 5);
    watch.after(SCAN);
    assert_eq!(watch.numbers(), [1, 5], "with another number and address");
    let back = &watch.monitor.devices()[1];
    assert_eq!((input(back, Quantity::Temperature), back.clock(Clock::Ai)), (&Ok(38_500), &Ok(500)));
    assert_eq!(back.identity.pci.as_ref().unwrap().to_string(), "0000:03:00.0");
}

#[test]
fn a_handle_that_failed_for_good_is_opened_again() {
    let machine = Machine::new(Kmd::V2_9, &[Board::N150]);
    let mut watch = Watch::new(&machine);
    watch.files.fail(machine.attribute(0, "temp1_input"), Errno::NODEV);
    assert_eq!(*input(&watch.after(POLL)[0], Quantity::Temperature), Err(Absence::Gone));
    watch.files.heal();
    assert_eq!(*input(&watch.after(POLL)[0], Quantity::Temperature), Ok(38_500));
}

#[test]
fn sensors_are_found_under_another_number() {
    let mut machine = Machine::new(Kmd::V2_9, &[Board::N150, Board::P150a]);
    let mut watch = Watch::new(&machine);
    machine.renumber_sensors(0);
    machine.set(0, "temp1_input", "41000");
    assert_eq!(*input(&watch.after(SCAN)[0], Quantity::Temperature), Ok(41_000));
}

#[test]
fn the_same_number_may_be_another_device() {
    let mut machine = Machine::new(Kmd::V2_9, &[Board::N150]);
    let mut watch = Watch::new(&machine);
    machine.detach(0);
    machine.attach(Board::P150a);
    let device = &watch.after(SCAN)[0];
    assert_eq!((device.number, device.identity.card.as_deref()), (0, Ok("p150a")));
    assert_eq!(*input(device, Quantity::Temperature), Ok(38_036));
    assert_eq!(device.health.heartbeat_moves, None, "another device's heartbeat");
}

#[test]
fn attributes_may_appear_late() {
    let machine = Machine::new(Kmd::V2_9, &[Board::P150a]);
    machine.remove_sensors(0);
    for name in ["tt_heartbeat", "tt_serial", "tt_fw_bundle_ver"] {
        machine.remove(0, name);
    }
    let mut watch = Watch::new(&machine);
    let device = watch.first();
    assert!(device.sensors.iter().all(|sensor| sensor.input == Err(Absence::Missing)));
    assert_eq!(device.identity.serial, Err(Absence::Missing));
    assert_eq!(device.nominal().unwrap().tensix_cores, None, "depends on the firmware");
    for (name, text) in
        [("tt_heartbeat", "1"), ("tt_serial", "00000000000000FF"), ("tt_fw_bundle_ver", "19.4.0.0")]
    {
        machine.set(0, name, text);
    }
    let hwmon = machine.attribute(0, "temp1_input");
    std::fs::create_dir_all(hwmon.parent().unwrap()).unwrap();
    machine.set(0, "temp1_input", "40000");
    watch.files.take_counts();
    let device = &watch.after(POLL)[0];
    assert_eq!(device.health.heartbeat, Err(Absence::Missing));
    assert_eq!(watch.files.take_counts().0, 0, "what is missing is not looked for at each poll");
    let device = &watch.after(SCAN)[0];
    assert_eq!((&device.health.heartbeat, &device.identity.serial), (&Ok(1), &Ok(255)));
    assert_eq!(*input(device, Quantity::Temperature), Ok(40_000));
    assert_eq!(device.nominal().unwrap().tensix_cores, Some(140));
}

#[test]
fn nonsense_is_named_and_harms_nothing_else() {
    let machine = Machine::new(Kmd::V2_9, &[Board::P150a]);
    let long = "9".repeat(5000);
    for (name, text) in [
        ("temp1_input", "hot"),
        ("power1_input", long.as_str()),
        ("tt_aiclk", ""),
        ("tt_axiclk", "4294967296"),
        ("tt_card_type", "p150a\x1b[2J"),
        ("tt_serial", "0x12"),
        ("tt_fw_bundle_ver", "latest"),
        ("device", "b140"),
        ("numa_node", "-1"),
        ("current_link_speed", "Unknown"),
        ("current_link_width", "0"),
    ] {
        machine.set(0, name, text);
    }
    std::fs::write(machine.attribute(0, "in0_input"), b"\xff\xfe\0\n").unwrap();
    let watch = Watch::new(&machine);
    let device = watch.first();
    let Err(Absence::Malformed(found)) = input(device, Quantity::Temperature) else { panic!("{device:?}") };
    assert_eq!((found.path.clone(), found.text.as_str()), (machine.attribute(0, "temp1_input"), "hot"));
    let is_malformed = |absence: Option<&Absence>| matches!(absence, Some(Absence::Malformed(_)));
    assert!(is_malformed(input(device, Quantity::Power).as_ref().err()));
    assert!(is_malformed(input(device, Quantity::Voltage).as_ref().err()));
    assert!(device.clocks[..2].iter().all(|clock| is_malformed(clock.as_ref().err())));
    assert!(is_malformed(device.identity.card.as_ref().err()));
    assert!(is_malformed(device.identity.serial.as_ref().err()));
    assert!(is_malformed(device.firmware(Component::Bundle).as_ref().err()));
    assert_eq!((device.architecture(), device.nominal()), (None, None));
    assert_eq!(device.identity.numa_node, Err(Absence::Unknown));
    assert_eq!(device.link.current.speed, Err(Absence::Unknown));
    assert_eq!(device.link.current.width, Err(Absence::Unknown));
    assert_eq!(*input(device, Quantity::Current), Ok(23_000));
}

#[test]
fn only_regular_files_are_read() {
    let machine = Machine::new(Kmd::V2_9, &[Board::N150]);
    let place = |name: &str| {
        machine.remove(0, name);
        machine.attribute(0, name)
    };
    std::fs::create_dir(place("temp1_input")).unwrap();
    std::os::unix::fs::symlink("/proc/self/mem", place("in0_input")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, place("curr1_input"), 0o644.into()).unwrap();
    let watch = Watch::new(&machine);
    for quantity in [Quantity::Temperature, Quantity::Voltage, Quantity::Current] {
        assert!(matches!(input(watch.first(), quantity), Err(Absence::Failed { .. })), "{quantity:?}");
    }
    assert_eq!(*input(watch.first(), Quantity::Power), Ok(15_000_000));
}

#[test]
fn other_entries_of_the_class_are_no_devices() {
    let machine = Machine::new(Kmd::V2_9, &[Board::N150]);
    machine.write("sys/class/tenstorrent/tenstorrent!7", "a file");
    machine.write("sys/class/tenstorrent/version/x", "");
    std::os::unix::fs::symlink("nowhere", machine.path().join("sys/class/tenstorrent/tenstorrent!8"))
        .unwrap();
    assert_eq!(Watch::new(&machine).numbers(), [0]);
}

#[test]
fn any_content_is_survived() {
    let machine = Machine::new(Kmd::V2_9, &[Board::P150a, Board::N150]);
    let mut files = Vec::new();
    collect_files(&machine.path().join("sys"), &mut files);
    collect_files(&machine.path().join("proc"), &mut files);
    assert!(files.len() > 80, "{files:?}");
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..50 {
        for file in &files {
            // Mostly text, so that some of it is close to right.
            let alphabet: &[u8] = if random.bool() { b"0123456789-+.x: \n" } else { b"\0\xff\n\x1b\xc3a9" };
            let most = if random.u8(..) == 0 { 9000 } else { 24 };
            let length = random.usize(..most);
            let text: Vec<u8> = (0..length).map(|_| alphabet[random.usize(..alphabet.len())]).collect();
            std::fs::write(file, text).unwrap();
        }
        let watch = Watch::new(&machine);
        assert_eq!(watch.numbers(), [0, 1]);
        let version = watch.monitor.version().as_ref().ok();
        assert_eq!(Holders::read(&machine.roots(), version, &watch.numbers()).devices.len(), 2);
    }
}

fn collect_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        match kind.is_dir() {
            true => collect_files(&entry.path(), files),
            false if kind.is_file() => files.push(entry.path()),
            false => {}
        }
    }
}

/// Prints what a poll costs: `cargo test ... time_of_a_poll -- --ignored --nocapture`.
#[test]
#[ignore = "prints how long a poll takes: a time is no reason to fail, so nobody waits for it"]
fn time_of_a_poll_of_32_devices() {
    let machine = Machine::new(Kmd::V2_9, &[Board::GalaxyBlackhole]);
    let pace = Pace { poll: Duration::ZERO, scan: Duration::from_secs(3600) };
    let new = || Monitor::with(machine.roots(), pace, KernelFiles);
    let timed = |monitor: &mut Monitor| {
        let start = Instant::now();
        assert!(monitor.poll(start));
        start.elapsed()
    };
    let scan = (0..20).map(|_| timed(&mut new())).min();
    let mut monitor = new();
    timed(&mut monitor);
    let poll = (0..1000).map(|_| timed(&mut monitor)).min();
    println!("32 devices: {poll:?} a poll (best of 1000), {scan:?} with a scan (best of 20)");
}
