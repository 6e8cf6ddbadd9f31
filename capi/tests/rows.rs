//! A table with a number of its own in every field, read by a C program and by Rust: both see the same.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use bytemuck::Pod;
use shm_layout::protocol::latch::LatchWriter;
use shm_layout::protocol::stamped;
use shm_layout::table::{
    Bucket, DeviceStats, DriverStats, FailureRecord, Notice, ProcessStats, RegionStats, TableHeader,
    TableWords, TelemetryBucket, UsageStats, bucket, control, telemetry_bucket,
};
use shm_layout::{DeviceEntry, Word, store_pod};
use tt_shm_os::{Namespace, boot_id, monotonic_ns, path_of, table_file_name};
use tt_shm_reader::{
    Class, Composition, HISTORY_RESOLUTIONS, Peak, TELEMETRY_RESOLUTIONS, TRENDS, Table, TableSnapshot, Told,
    Trend, text,
};

use crate::compile::{Language, Link, Place, each_way, package, succeed};

/// A value with a number of its own in each word.
fn distinct<T: Pod>(first: u64) -> T {
    let words: Vec<u64> = (first..).take(size_of::<T>() / 8).collect();
    bytemuck::pod_read_unaligned(bytemuck::cast_slice(&words))
}

fn text_in<const N: usize>(what: &str) -> [u8; N] {
    let mut field = [0; N];
    field[..what.len()].copy_from_slice(what.as_bytes());
    field
}

fn entry(first: u64, board: &str) -> DeviceEntry {
    DeviceEntry { board: text_in(board), ..distinct(first) }
}

/// The generation of all rows.
const GENERATION: u64 = 5;

fn put<T: Pod>(latch: &[AtomicU64], row: &T) {
    LatchWriter::default().turn(latch, |words| store_pod(words, row));
}

/// The words of a table with one or two rows of each kind.
fn table() -> (TableHeader, Vec<AtomicU64>) {
    let mut header = TableHeader::plan();
    header.boot_id = boot_id().unwrap();
    (header.identity, header.pid, header.started, header.started_realtime_ns) = (71, 72, 73, 74);
    let file: Vec<AtomicU64> = (0..header.total_len / 8).map(|_| AtomicU64::new(0)).collect();
    store_pod(&file, &header);
    let words = TableWords::carve(&file, &header);
    for (number, word) in (100..).zip(&words.control[..=control::REGIONS_LEFT_OUT]) {
        Word::store(word, number);
    }
    for (word, value) in [
        (control::GENERATION, GENERATION),
        (control::DEVICES, 2),
        (control::PROCESSES, 1),
        (control::USAGES, 1),
        (control::NOTICES, 2),
        (control::FAILURES, 1),
        (control::DRIVER, 1),
        (control::REGIONS, 1),
    ] {
        Word::store(&words.control[word], value);
    }
    let generation = GENERATION;
    for (number, latch) in (0..).zip(&words.devices[..2]) {
        // Each has one of the two that says whether a composition is all of it.
        let (flags, entry) = (1 << (3 + number), entry(11_000 + 1000 * number, "n300"));
        put(latch, &DeviceStats { generation, flags, entry, ..distinct(10_000 + 5000 * number) });
    }
    put(&words.processes[0], &ProcessStats { generation, name: text_in("a process"), ..distinct(20_000) });
    let usage = UsageStats { generation, flags: 1, entry: entry(31_000, "p150"), ..distinct(30_000) };
    put(&words.usages[0], &usage);
    for (number, latch) in (0..).zip(&words.notices[..2]) {
        let (file, text) = (text_in("tt-shm.v2.x"), text_in("no reason"));
        put(latch, &Notice { generation, file, text, ..distinct(40_000 + 1000 * number) });
    }
    let mut failure =
        FailureRecord { generation, name: text_in("asked"), event_count: 16, ..distinct(50_000) };
    for holder in &mut failure.holders {
        holder.name = text_in("held");
    }
    put(&words.failures[0], &failure);
    let mut driver = DriverStats { generation, entry: entry(61_000, "n150"), ..distinct(60_000) };
    (driver.driver_version, driver.note) = (text_in("2.4.1"), text_in("what it said"));
    for (number, firmware) in driver.firmware.iter_mut().enumerate() {
        *firmware = text_in(&format!("19.{number}"));
    }
    driver.numbers[Told::Temperature as usize] = (-1500_i64).cast_unsigned();
    driver.absences = std::array::from_fn(|place| place as u8 % 9);
    put(&words.driver[0], &driver);
    let (name, note) = (text_in("in a region"), text_in("what is wrong"));
    put(&words.regions[0], &RegionStats { generation, name, note, ..distinct(70_000) });
    for (resolution, length) in HISTORY_RESOLUTIONS.into_iter().enumerate() {
        let start = monotonic_ns() / length * length - length;
        let cell = bucket(&words.history[0], resolution, start).unwrap();
        stamped::write(cell, &Bucket { start, ..distinct(80_000 + 100 * resolution as u64) });
    }
    for (resolution, length) in TELEMETRY_RESOLUTIONS.into_iter().enumerate() {
        let start = monotonic_ns() / length * length - length;
        let cell = telemetry_bucket(&words.telemetry[0], resolution, start).unwrap();
        let mut trends = [Trend::of(-7); TRENDS];
        trends[1] = distinct(90_000 + 100 * resolution as u64);
        stamped::write(cell, &TelemetryBucket { start, known: 0b101, trends });
    }
    (header, file)
}

/// Puts the table where readers look for it.
fn publish(namespace: &Namespace) -> PathBuf {
    let path = path_of(&table_file_name(namespace, rustix::process::geteuid().as_raw()));
    let (_, words) = table();
    let bytes: Vec<u8> = words.into_iter().flat_map(|word| word.into_inner().to_le_bytes()).collect();
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Lines of figures, as the C program prints them: of the fields of a row, where they have the same names in both.
macro_rules! lines {
    ($out:ident, $prefix:expr, $row:expr, $($field:ident $(= $rust:ident)?),* $(,)?) => {$(
        lines!(@one $out, $prefix, $row, $field $(, $rust)?);
    )*};
    (@one $out:ident, $prefix:expr, $row:expr, $field:ident) => {
        line(&mut $out, &format!("{}.{}", $prefix, stringify!($field)), $row.$field)
    };
    (@one $out:ident, $prefix:expr, $row:expr, $field:ident, $rust:ident) => {
        line(&mut $out, &format!("{}.{}", $prefix, stringify!($field)), $row.$rust)
    };
}

fn line(out: &mut String, name: &str, value: impl Into<u64>) {
    writeln!(out, "{name} {}", value.into().cast_signed()).unwrap();
}

fn words(out: &mut String, name: &str, value: &[u8]) {
    writeln!(out, "{name} {}", text::decode(value)).unwrap();
}

fn peak(out: &mut String, name: &str, peak: Peak) {
    let Peak { low, high, time, count } = peak;
    writeln!(out, "{name} {low} {high} {time} {count}").unwrap();
}

/// Figures by class, which have room for 16 in C.
fn classes(out: &mut String, name: &str, figures: &[u64; Class::COUNT]) {
    for (place, figure) in figures.iter().chain([0; 16 - Class::COUNT].iter()).enumerate() {
        line(out, &format!("{name}[{place}]"), *figure);
    }
}

fn info(out: &mut String, prefix: &str, entry: &DeviceEntry) {
    let mut text = String::new();
    lines!(text, prefix, entry, chip_id, allocator, pci, l1_base);
    out.push_str(&text);
    words(out, &format!("{prefix}.board"), &entry.board);
}

fn snapshot_lines(snapshot: &TableSnapshot) -> String {
    let mut out = String::new();
    let prefix = "snapshot";
    lines!(out, prefix, snapshot, consistent, generation, as_of_ns = as_of);
    line(&mut out, "snapshot.devices", snapshot.devices.len() as u64);
    line(&mut out, "snapshot.processes", snapshot.processes.len() as u64);
    line(&mut out, "snapshot.usages", snapshot.usages.len() as u64);
    lines!(out, prefix, snapshot, events, missed, refused, unseen, window_since_ns = window_since);
    lines!(out, prefix, snapshot, windows, late, lost);
    line(&mut out, "snapshot.notices", snapshot.notices.len() as u64);
    line(&mut out, "snapshot.failures", snapshot.failures.len() as u64);
    line(&mut out, "snapshot.driver", snapshot.driver.len() as u64);
    lines!(out, prefix, snapshot, driver_left_out);
    line(&mut out, "snapshot.regions", snapshot.regions.len() as u64);
    lines!(out, prefix, snapshot, regions_left_out, overflow, publish_errors);
    line(&mut out, "snapshot.incomplete_since_ns", snapshot.incomplete_since.unwrap());
    lines!(out, prefix, snapshot, clock_steps, awake_since_ns = awake_since);
    line(&mut out, "snapshot.gap_start_ns", snapshot.gap.unwrap().0);
    line(&mut out, "snapshot.gap_end_ns", snapshot.gap.unwrap().1);
    out
}

fn device_lines(row: usize, device: &DeviceStats) -> String {
    let mut out = String::new();
    let prefix = format!("device {row}");
    let unknown = |bytes: Option<u64>| bytes.unwrap_or(u64::MAX);
    lines!(out, prefix, device, flags);
    lines!(out, prefix, device.entry, chip_id);
    lines!(out, prefix, device, processes);
    line(&mut out, &format!("{prefix}.dram_total_bytes"), unknown(device.entry.dram_total()));
    lines!(out, prefix, device, dram_used_bytes);
    line(&mut out, &format!("{prefix}.l1_total_bytes"), unknown(device.entry.l1_total()));
    lines!(out, prefix, device, l1_used_bytes, eth_used_bytes, cb_resident_bytes, kernel_resident_bytes);
    lines!(out, prefix, device, kernel_resident_eth_bytes, system_kernel_bytes, system_kernel_eth_bytes);
    lines!(out, prefix, device, dispatches, cached_dispatches, failed_allocs);
    lines!(out, prefix, device, kernel_ring_total_bytes, kernel_ring_used_bytes, kernel_ring_programs);
    lines!(out, prefix, device, events, events_per_1000s, dispatches_per_1000s);
    for (name, of) in [
        ("dram_peak", device.dram_peak),
        ("l1_peak", device.l1_peak),
        ("eth_peak", device.eth_peak),
        ("cb_resident_peak", device.cb_resident_peak),
        ("kernel_resident_peak", device.kernel_resident_peak),
    ] {
        peak(&mut out, &format!("{prefix}.{name}"), of);
    }
    let failure = &device.failure;
    lines!(out, prefix, failure, time_ns = time, pid, class_ = class, request_bytes, free_bytes);
    lines!(out, prefix, failure, largest_free_bytes, needed_per_bank_bytes, banks, per_bank);
    for (class, figures) in device.classes.iter().enumerate() {
        let prefix = format!("device {row} class {class}");
        lines!(out, prefix, figures, live_bytes, live_count, alloc_bytes, alloc_count);
        lines!(out, prefix, figures, requested_bytes, requested_basis_bytes);
        peak(&mut out, &format!("{prefix}.peak"), figures.peak);
    }
    info(&mut out, &format!("device info {row}"), &device.entry);
    composition(&mut out, (row, 0), device.dram_peak, &device.dram_composition, device.flags >> 3 & 1);
    composition(&mut out, (row, 1), device.l1_peak, &device.l1_composition, device.flags >> 4 & 1);
    out
}

fn composition(out: &mut String, of: (usize, u32), reached: Peak, made_of: &Composition, exact: u64) {
    let prefix = format!("composition {} {}", of.0, of.1);
    line(out, &format!("{prefix}.exact"), exact);
    peak(out, &format!("{prefix}.peak"), reached);
    classes(out, &format!("{prefix}.classes"), &made_of.classes);
    let mut text = String::new();
    for (number, holder) in made_of.holders.iter().enumerate() {
        lines!(text, format!("{prefix} holder {number}"), holder, identity, pid, bytes);
    }
    lines!(text, format!("{prefix} holder 7"), made_of, others);
    out.push_str(&text);
}

fn process_lines(row: usize, process: &ProcessStats) -> String {
    let mut out = String::new();
    let prefix = format!("process {row}");
    lines!(out, prefix, process, state, source, flags, identity, pid, uid, on_behalf_of);
    lines!(out, prefix, process, started_ns = started, ended_ns = ended, last_event_ns = last_event);
    lines!(out, prefix, process, position, missed, unlisted, devices, pid_namespace, start_time, late);
    lines!(out, prefix, process, events_per_1000s, self_checks, self_checks_different);
    for (place, count) in process.anomalies.iter().enumerate() {
        line(&mut out, &format!("{prefix}.anomalies[{place}]"), *count);
    }
    words(&mut out, &format!("{prefix}.name"), &process.name);
    out
}

fn usage_lines(row: usize, usage: &UsageStats) -> String {
    let mut out = String::new();
    let prefix = format!("usage {row}");
    line(&mut out, &format!("{prefix}.conflict"), usage.flags);
    lines!(out, prefix, usage, process, device, logical_id, allocator);
    lines!(out, prefix, usage.counters, position);
    line(&mut out, &format!("{prefix}.dram_used_bytes"), usage.counters.dram_used());
    lines!(out, prefix, usage.counters, l1_peak_time, kernel_ring_programs);
    info(&mut out, &format!("usage info {row}"), &usage.entry);
    out
}

fn notice_lines(number: usize, notice: &Notice) -> String {
    let mut out = String::new();
    let prefix = format!("notice {number}");
    lines!(out, prefix, notice, kind, time_ns = time, pid, uid);
    classes(&mut out, &format!("{prefix}.bytes"), &notice.bytes);
    classes(&mut out, &format!("{prefix}.counts"), &notice.counts);
    words(&mut out, &format!("{prefix}.file"), &notice.file);
    words(&mut out, &format!("{prefix}.text"), &notice.text);
    out
}

fn failure_lines(number: usize, failure: &FailureRecord) -> String {
    let mut out = String::new();
    let prefix = format!("failure {number}");
    lines!(out, prefix, failure, class_ = class, flags, time_ns = time, chip_id, identity, position, pid);
    lines!(out, prefix, failure, pid_namespace, uid, request_bytes, free_bytes, largest_free_bytes);
    lines!(out, prefix, failure, needed_per_bank_bytes, banks, holder_count, event_count);
    classes(&mut out, &format!("{prefix}.classes"), &failure.classes);
    classes(&mut out, &format!("{prefix}.others"), &failure.others);
    words(&mut out, &format!("{prefix}.name"), &failure.name);
    for (place, holder) in failure.holders.iter().enumerate() {
        let prefix = format!("{prefix} holder {place}");
        lines!(out, prefix, holder, identity, pid, pid_namespace);
        classes(&mut out, &format!("{prefix}.classes"), &holder.classes);
        words(&mut out, &format!("{prefix}.name"), &holder.name);
    }
    for (place, event) in failure.past().unwrap().iter().enumerate() {
        let prefix = format!("{prefix} event {place}");
        lines!(out, prefix, event, time_ns = time, identity, pid, kind, class_ = class, id, bytes = size);
    }
    out
}

fn driver_lines(table: &Table, row: usize, driver: &DriverStats) -> String {
    let mut out = String::new();
    let prefix = format!("driver {row}");
    lines!(out, prefix, driver, flags, number, device, time_ns = time);
    line(&mut out, &format!("{prefix}.chip_id"), driver.chip_id().unwrap());
    lines!(out, prefix, driver, asic_id, serial, serial_chip_id, holders, unreported_holders);
    lines!(out, prefix, driver, invisible_holders, nominal_dram_bytes, nominal_tensix_cores);
    lines!(
        out,
        prefix,
        driver,
        nominal_l1_per_core,
        nominal_eth_cores,
        nominal_eth_l1_per_core,
        nominal_chips
    );
    for (place, number) in driver.numbers.iter().enumerate() {
        line(&mut out, &format!("{prefix}.numbers[{place}]"), *number);
    }
    for (place, absence) in driver.absences.iter().enumerate() {
        line(&mut out, &format!("{prefix}.absences[{place}]"), *absence);
    }
    words(&mut out, &format!("{prefix}.driver_version"), &driver.driver_version);
    for (place, version) in driver.firmware.iter().enumerate() {
        words(&mut out, &format!("{prefix}.firmware[{place}]"), version);
    }
    words(&mut out, &format!("{prefix}.note"), &driver.note);
    info(&mut out, &format!("driver info {row}"), &driver.entry);
    for (resolution, length) in TELEMETRY_RESOLUTIONS.into_iter().enumerate() {
        let found = table.telemetry(row, resolution);
        assert_eq!(found.len(), 1, "one bucket was written");
        for bucket in found {
            let prefix = format!("telemetry {row} {resolution}");
            lines!(out, prefix, bucket, known, start_ns = start);
            line(&mut out, &format!("{prefix}.length_ns"), length);
            for (min, max, last) in bucket.trends.map(|trend| trend.range()) {
                writeln!(out, "trend {min} {max} {last}").unwrap();
            }
        }
    }
    out
}

fn region_lines(row: usize, region: &RegionStats) -> String {
    let mut out = String::new();
    let prefix = format!("region {row}");
    lines!(out, prefix, region, kind, state, flags, device, chip_id, version, slot, pid, pid_here, uid);
    lines!(out, prefix, region, updated_realtime_ns, dram_bytes, l1_bytes, l1_small_bytes, trace_bytes);
    lines!(out, prefix, region, cb_bytes);
    words(&mut out, &format!("{prefix}.name"), &region.name);
    words(&mut out, &format!("{prefix}.note"), &region.note);
    out
}

/// What Rust sees, in the order in which the C program prints.
fn expected(table: &Table) -> String {
    let snapshot = table.snapshot();
    let mut out = String::new();
    let header = table.header();
    let prefix = "table";
    lines!(out, prefix, header, identity, pid, started_ns = started, started_realtime_ns);
    writeln!(out, "table.path {}", table.path().display()).unwrap();
    out.push_str(&snapshot_lines(&snapshot));
    out.extend(snapshot.devices.iter().map(|(row, device)| device_lines(*row, device)));
    out.extend(snapshot.processes.iter().map(|(row, process)| process_lines(*row, process)));
    out.extend(snapshot.usages.iter().map(|(row, usage)| usage_lines(*row, usage)));
    out.extend(snapshot.notices.iter().enumerate().map(|(row, notice)| notice_lines(row, notice)));
    out.extend(snapshot.failures.iter().enumerate().map(|(row, failure)| failure_lines(row, failure)));
    out.extend(snapshot.driver.iter().map(|(row, driver)| driver_lines(table, *row, driver)));
    out.extend(snapshot.regions.iter().map(|(row, region)| region_lines(*row, region)));
    for (resolution, length) in HISTORY_RESOLUTIONS.into_iter().enumerate() {
        let found = table.history(0, resolution);
        assert_eq!(found.len(), 1, "one bucket was written");
        for bucket in found {
            let prefix = format!("bucket 0 {resolution}");
            lines!(out, prefix, bucket, flags, start_ns = start);
            line(&mut out, &format!("{prefix}.length_ns"), length);
            lines!(out, prefix, bucket, dram_min_bytes = dram_min, dram_max_bytes = dram_max);
            lines!(out, prefix, bucket, dram_last_bytes = dram_last, l1_min_bytes = l1_min);
            lines!(out, prefix, bucket, l1_max_bytes = l1_max, l1_last_bytes = l1_last);
            lines!(out, prefix, bucket, trace_last_bytes = trace_last, l1_small_last_bytes = l1_small_last);
            lines!(out, prefix, bucket, cb_last_bytes = cb_last, steps);
        }
    }
    out
}

#[test]
fn every_figure_of_a_table_is_the_same_in_c_and_in_rust() {
    let source = package().join("tests/programs/rows.c");
    each_way(Language::C, "rows.c", |compiler, link: Link, options| {
        let place = Place::new();
        let namespace = Namespace::new(&place.namespace).unwrap();
        let path = publish(&namespace);
        let program = place.compile(compiler, Language::C, &source, link, options);
        let output = succeed(&mut place.command(program));
        let expected = expected(&Table::open(&namespace).unwrap());
        let found = String::from_utf8(output.stdout).unwrap();
        for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
            assert_eq!(found, expected, "line {number}, {compiler} {options:?}");
        }
        assert_eq!(found.lines().count(), expected.lines().count());
        assert!(expected.lines().count() > 900, "only {} figures", expected.lines().count());
        std::fs::remove_file(path).unwrap();
    });
}
