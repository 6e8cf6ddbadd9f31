//! A fixed table, and pictures of what is made of it.

#![allow(dead_code, reason = "each test binary uses a part")]

pub(crate) mod lists;
pub(crate) mod session;
pub(crate) mod strict;
pub(crate) mod views;

use bytemuck::Zeroable;
use tt_shm_reader::{
    Absent, Arch, Class, ClassStats, Counters, DeviceEntry, DeviceStats, DriverStats, Failure, FailureRecord,
    Freshness, Notice, Peak, ProcessStats, TableSnapshot, Told, UsageStats, device_flags, driver_flags,
    known, notice_kind, process_flags, process_state, text,
};
use tt_smi::model::{Clock, Model};
use tt_smi::model::{Origin, Reading};
use tt_smi::segments::Hidden;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const SECOND: u64 = 1_000_000_000;

/// CLOCK_MONOTONIC of the fixture.
pub(crate) const NOW: u64 = 1000 * SECOND;

/// A name that tries to clear the screen.
pub(crate) const HOSTILE: &str = "evil\u{1b}[2J\u{202e}name";

fn exact(bytes: u64, count: u64) -> Peak {
    Peak { low: bytes, high: bytes, time: NOW - 10 * SECOND, count }
}

fn entry(number: u64) -> DeviceEntry {
    DeviceEntry {
        chip_id: 0x1279_2014_37fe_0afe + number,
        arch: Arch::Wormhole as u64,
        known: known::DRAM
            | known::DRAM_CHANNELS
            | known::L1
            | known::ETH
            | known::PCI
            | known::ARCH
            | known::BOARD,
        dram_bytes: 12 * GIB,
        dram_channels: 12,
        tensix_cores: 64,
        l1_per_core: 1464 * KIB,
        eth_cores: 16,
        eth_l1_per_core: 256 * KIB,
        pci: (0x81 + number) << 8,
        board: text::encode("n300"),
        ..DeviceEntry::zeroed()
    }
}

/// Live bytes and count of a class; kernels: 2 fabric, 2 dispatch and 5 application, 112 + 92 + 120 KiB.
fn live(class: Class) -> (u64, u64) {
    match class {
        Class::Dram => (3 * GIB, 96),
        Class::Trace => (64 * MIB, 2),
        Class::L1 => (20 * MIB, 7),
        Class::L1Small => (512 * KIB, 1),
        Class::Cb => (48 * MIB, 150),
        Class::KernelFabric => (112 * KIB, 2),
        Class::KernelDispatch => (92 * KIB, 2),
        Class::KernelApplication => (120 * KIB, 5),
        Class::SystemMemory => (0, 0),
    }
}

/// Buffers are padded, where somebody told what they occupy.
fn asked_for(class: Class) -> u64 {
    let (bytes, _) = live(class);
    let padded = class.pool().is_some() && class != Class::Trace;
    if padded { bytes - bytes / 8 } else { bytes }
}

fn device(number: u64) -> DeviceStats {
    let classes = Class::ALL.map(|class| {
        let (live_bytes, live_count) = live(class);
        let (alloc_bytes, alloc_count) = (2 * live_bytes, 2 * live_count);
        ClassStats {
            live_bytes,
            live_count,
            alloc_bytes,
            alloc_count,
            peak: exact(live_bytes, live_count),
            requested_bytes: asked_for(class),
            requested_basis_bytes: if class == Class::Trace { live_bytes } else { 0 },
        }
    });
    let l1 = 20 * MIB + 512 * KIB + 6 * MIB;
    DeviceStats {
        generation: 7,
        flags: device_flags::DRAM_COMPOSITION_EXACT | device_flags::L1_COMPOSITION_EXACT,
        entry: entry(number),
        processes: 1,
        dram_used_bytes: 3 * GIB + 64 * MIB,
        l1_used_bytes: l1,
        eth_used_bytes: 112 * KIB,
        cb_resident_bytes: 6 * MIB,
        kernel_resident_bytes: 24 * KIB,
        system_kernel_bytes: 92 * KIB,
        system_kernel_eth_bytes: 112 * KIB,
        dispatches: 1000,
        cached_dispatches: 995,
        failed_allocs: 1,
        events: 12_345,
        events_per_1000s: 1_234_000,
        dispatches_per_1000s: 200_000,
        kernel_ring_total_bytes: 70 * KIB,
        kernel_ring_used_bytes: 35 * KIB,
        kernel_ring_programs: 5,
        dram_peak: exact(4 * GIB, 99),
        l1_peak: exact(61 * MIB, 12),
        eth_peak: exact(112 * KIB, 0),
        cb_resident_peak: exact(12 * MIB, 0),
        kernel_resident_peak: exact(140 * KIB, 0),
        failure: Failure {
            time: NOW - 5 * SECOND,
            pid: 4242,
            class: Class::L1 as u64,
            request_bytes: 30 * MIB,
            free_bytes: 60 * MIB,
            largest_free_bytes: 12 * MIB,
            needed_per_bank_bytes: 480 * KIB,
            banks: 64,
            per_bank: 0,
        },
        classes,
        ..DeviceStats::zeroed()
    }
}

/// A device of which little is known, with something wrong.
fn strange_device() -> DeviceStats {
    DeviceStats {
        generation: 7,
        flags: device_flags::CONFLICT | device_flags::OVER_CAPACITY,
        entry: DeviceEntry { chip_id: 42, ..DeviceEntry::zeroed() },
        processes: 1,
        dram_used_bytes: 5 * MIB,
        dram_peak: Peak { low: 5 * MIB, high: 9 * MIB, time: NOW - SECOND, count: 1 },
        ..DeviceStats::zeroed()
    }
}

fn process(pid: u64, name: &str, state: u64) -> ProcessStats {
    ProcessStats {
        generation: 7,
        state,
        identity: pid,
        pid,
        pid_namespace: tt_shm_os::pid_namespace().unwrap(),
        uid: 54_321,
        started: NOW - 312 * SECOND,
        events_per_1000s: 1_234_000,
        name: text::encode(name),
        ..ProcessStats::zeroed()
    }
}

fn usage(process: u64, device: u64) -> UsageStats {
    let mut counters = Counters::ZERO;
    for class in Class::ALL {
        let (bytes, count) = live(class);
        let figures = &mut counters.classes[class as usize];
        (figures.live_bytes, figures.live_count) = (bytes, count);
        (figures.alloc_bytes, figures.alloc_count) = (2 * bytes, 2 * count);
        (figures.peak_bytes, figures.peak_time, figures.peak_count) = (bytes, NOW - SECOND, count);
        figures.requested_bytes = asked_for(class);
    }
    counters.requested_basis_bytes[Class::Trace as usize] = live(Class::Trace).0;
    counters.cb_resident_bytes = 6 * MIB;
    counters.kernel_resident_bytes = 24 * KIB;
    counters.lanes[0].cb_bytes = 6 * MIB;
    counters.lanes[0].kernel_bytes = 24 * KIB;
    counters.resident_lanes = 1;
    counters.system_kernel_bytes = 92 * KIB;
    counters.system_kernel_eth_bytes = 112 * KIB;
    (counters.dram_peak_bytes, counters.dram_peak_time) = (4 * GIB, NOW - SECOND);
    (counters.l1_peak_bytes, counters.l1_peak_time) = (61 * MIB, NOW - SECOND);
    (counters.eth_peak_bytes, counters.eth_peak_time) = (112 * KIB, NOW - SECOND);
    (counters.dispatches, counters.cached_dispatches) = (1000, 995);
    counters.open = 1;
    UsageStats {
        generation: 7,
        process,
        device,
        logical_id: device,
        entry: DeviceEntry { logical_id: device, known: known::LOGICAL, ..DeviceEntry::zeroed() },
        counters,
        ..bytemuck::Zeroable::zeroed()
    }
}

/// Enough was free, but fragmented.
fn failure(device: u64) -> FailureRecord {
    FailureRecord {
        generation: 7,
        time: NOW - 5 * SECOND,
        chip_id: entry(device).chip_id,
        identity: 4242,
        position: 1,
        pid: 4242,
        pid_namespace: tt_shm_os::pid_namespace().unwrap(),
        uid: 54_321,
        class: Class::L1 as u64,
        request_bytes: 30 * MIB,
        free_bytes: 60 * MIB,
        largest_free_bytes: 12 * MIB,
        name: text::encode("llama-3.1-8b"),
        ..FailureRecord::zeroed()
    }
}

fn notices() -> Vec<Notice> {
    let mut reclaimed = Notice {
        generation: 7,
        kind: notice_kind::RECLAIMED,
        time: NOW - 3 * SECOND,
        pid: 4000,
        uid: 54_321,
        ..Notice::zeroed()
    };
    reclaimed.bytes[Class::Dram as usize] = 2 * GIB;
    reclaimed.counts[Class::Dram as usize] = 40;
    let refused = Notice {
        generation: 7,
        kind: notice_kind::REFUSED,
        time: NOW - 2 * SECOND,
        file: text::encode("tt-shm.v2.default.99-0123456789abcdef"),
        text: text::encode("can be written by others than its owner (mode 666)"),
        ..Notice::zeroed()
    };
    vec![refused, reclaimed]
}

/// What the driver tells of a device. The first has a fan; of the others its speed is not known.
fn driver(number: u64) -> (usize, DriverStats) {
    let mut stats = DriverStats {
        generation: 7,
        number,
        device: number,
        time: NOW - SECOND / 2,
        flags: driver_flags::HEARTBEAT_MOVES | driver_flags::HOLDERS,
        asic_id: entry(number).chip_id,
        serial: 0x0100_0185_1172_b05c,
        holders: 1,
        entry: DeviceEntry { known: known::ARCH | known::BOARD | known::PCI, ..entry(number) },
        driver_version: text::encode("2.9.0"),
        firmware: [text::encode("80.10.0.0"); 6],
        ..DriverStats::zeroed()
    };
    let told = [
        (Told::Temperature, 38_500 + 1000 * number),
        (Told::TemperatureLimit, 75_000),
        (Told::Power, 15_000_000),
        (Told::PowerLimit, 75_000_000),
        (Told::Current, 20_000),
        (Told::CurrentLimit, 160_000),
        (Told::Voltage, 720),
        (Told::VoltageLimit, 950),
        (Told::Fan, 1200),
        (Told::Aiclk, 1000),
        (Told::Axiclk, 900),
        (Told::Arcclk, 540),
        (Told::Heartbeat, 43_874),
        (Told::LinkSpeed, 16_000),
        (Told::LinkWidth, 16),
        (Told::LinkSpeedMax, 16_000),
        (Told::LinkWidthMax, 16),
    ];
    told.into_iter().for_each(|(told, value)| stats.numbers[told as usize] = value);
    for told in [Told::FanLimit, Told::ThermalTrips] {
        stats.absences[told as usize] = Absent::Missing as u8;
    }
    if number > 0 {
        stats.absences[Told::Fan as usize] = Absent::NotFitted as u8;
    }
    (number as usize, stats)
}

/// Rows of `devices` known devices and one strange one.
pub(crate) fn snapshot(devices: u64) -> TableSnapshot {
    let mut rows: Vec<(usize, DeviceStats)> = (0..devices).map(|n| (n as usize, device(n))).collect();
    rows.push((devices as usize, strange_device()));
    let mut misuser = process(4242, "llama-3.1-8b", process_state::ALIVE);
    misuser.anomalies[0] = 2;
    misuser.flags = process_flags::DEGRADED;
    misuser.unlisted = 3;
    TableSnapshot {
        generation: 7,
        consistent: true,
        devices: rows,
        processes: vec![
            (0, process(4000, "gone", process_state::ENDED)),
            (1, misuser),
            (2, process(5000, HOSTILE, process_state::ALIVE)),
        ],
        usages: (0..devices).map(|n| (n as usize, usage(1, n))).collect(),
        notices: notices(),
        failures: (0..devices).map(failure).collect(),
        driver: (0..devices).map(driver).collect(),
        driver_left_out: 0,
        regions: Vec::new(),
        regions_left_out: 0,
        events: 12_345,
        missed: 0,
        late: 0,
        lost: 0,
        as_of: NOW - 2_000_000,
        refused: 1,
        window_since: NOW - 100 * SECOND,
        windows: 0,
        overflow: 0,
        unseen: 0,
        publish_errors: 0,
        incomplete_since: None,
        clock_steps: 0,
        awake_since: 0,
        gap: None,
        freshness: Freshness { heartbeat_ns: NOW, age_ns: 2_000_000, closed: false, interval_ns: 20_000_000 },
    }
}

/// The same, of a moment at which somebody could not be read, processes disagree, and much else is wrong.
pub(crate) fn doubtful_snapshot() -> TableSnapshot {
    let mut snapshot = snapshot(1);
    let device = &mut snapshot.devices[0].1;
    device.flags = device_flags::INCOMPLETE;
    device.dram_peak = Peak { low: 5 * GIB, high: tt_shm_reader::UNKNOWN, time: 0, count: 0 };
    // One more than there are rows for.
    snapshot.processes[1].1.devices = 2;
    let usage = &mut snapshot.usages[0].1;
    usage.flags = tt_shm_reader::usage_flags::CONFLICT;
    usage.entry =
        DeviceEntry { pci: 0x12 << 8, dram_bytes: 4 * GIB, board: text::encode("fake"), ..entry(0) };
    TableSnapshot {
        lost: 3,
        unseen: 2,
        overflow: 4,
        clock_steps: 1,
        publish_errors: 5,
        incomplete_since: Some(NOW),
        ..snapshot
    }
}

/// The same as a model, seen at a fixed moment on a fixed machine.
pub(crate) fn model(snapshot: TableSnapshot) -> Model {
    model_beside(snapshot, Vec::new())
}

/// The same for a user who may not read everything.
pub(crate) fn model_beside(snapshot: TableSnapshot, hidden: Vec<Hidden>) -> Model {
    let reading = Reading {
        snapshot,
        origin: Origin::Table { pid: 77, age_ns: 2_000_000 },
        clock: Clock { monotonic_ns: NOW, realtime_ns: 1_790_000_000 * SECOND, awake_since: 0 },
        rates_known: true,
        hidden,
        refused_table: None,
    };
    Model { host: "ttbox".to_owned(), ..Model::new(&reading) }
}

/// Compares with `tests/expected/<name>.snap`; with `INSTA_UPDATE=always` it is rewritten.
#[track_caller]
pub(crate) fn assert_expected(name: &str, found: &str) {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path("../expected");
    settings.set_prepend_module_to_snapshot(false);
    // A picture is what it shows, not how a test computed it.
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, found));
}
