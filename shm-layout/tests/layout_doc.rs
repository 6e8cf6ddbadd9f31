//! `docs/layout.md` matches the code: every offset, size, code and constant in its tables is compared with
//! the real one, and no field may be left out.

use shm_layout::control::{self as segment_control, Anomaly};
use shm_layout::table::{self, control};
use shm_layout::{Class, EventKind, RowKind, flags, known};

const DOCUMENT: &str = include_str!("../../docs/layout.md");

/// The cells of every table row after a line that starts with `start`, up to the table's end.
fn rows_of(start: &str) -> Vec<Vec<String>> {
    let lines = DOCUMENT.lines().skip_while(|line| !line.starts_with(start));
    let rows = lines.skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    // The first two are the head and the rule below it.
    let cells = |row: &str| {
        let row = row.replace("\\|", "/");
        row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    rows.skip(2).map(cells).collect()
}

fn number(cell: &str) -> u64 {
    let parsed = cell.strip_prefix("0x").map_or(cell.parse(), |hex| u64::from_str_radix(hex, 16));
    parsed.unwrap_or_else(|_| panic!("{cell:?} is not a number"))
}

/// Compares a table of (number, name) with the truth.
fn assert_codes<'a>(start: &str, truth: impl IntoIterator<Item = (u64, &'a str)>) {
    let documented = rows_of(start);
    let documented: Vec<_> = documented.iter().map(|row| (number(&row[0]), row[1].as_str())).collect();
    assert_eq!(documented, Vec::from_iter(truth), "table {start:?}");
}

/// Checks the tables of structs: all fields in order, with offset and size, and the size of the whole.
macro_rules! check_structs {
    ($($name:ident in $module:path { $($field:ident),* $(,)? })*) => {$({
        use $module as module;
        type Struct = module::$name;
        let zero: Struct = bytemuck::Zeroable::zeroed();
        // Without `..`: a field that is not listed here does not compile.
        let module::$name { $($field),* } = &zero;
        let mut truth = [$((
            std::mem::offset_of!(Struct, $field) as u64,
            size_of_val($field) as u64,
            stringify!($field).to_owned(),
        )),*];
        truth.sort();
        let heading = concat!("### ", stringify!($name), " (");
        let documented: Vec<_> = rows_of(heading)
            .into_iter()
            .map(|row| (number(&row[0]), number(&row[1]), row[2].clone()))
            .collect();
        assert_eq!(documented, truth, "{}", stringify!($name));
        let whole = format!("{heading}{} bytes)", size_of::<Struct>());
        assert!(DOCUMENT.lines().any(|line| line == whole), "no heading {whole:?}");
    })*};
}

#[test]
fn structs_of_a_segment() {
    check_structs! {
        SegmentHeader in shm_layout { magic, major, minor, header_len, total_len, incompatible, compatible, boot_id, identity, pid, pid_namespace, start_time, clock_kind, anchor_ticks, anchor_monotonic_ns, anchor_realtime_ns, process_name, control, devices, counters, name_index, name_bytes, ring, rows, run, source, on_behalf_of, time_namespace, reserved }
        Block in shm_layout { offset, capacity }
        DeviceEntry in shm_layout { chip_id, logical_id, arch, known, dram_bytes, dram_channels, tensix_cores, l1_per_core, eth_cores, eth_l1_per_core, pci, board, allocator, sub_device, mode, pools, reserved }
        Pool in shm_layout { banks, bank_bytes, alignment }
        Counters in shm_layout { position, time, dispatches, cached_dispatches, cb_resident_bytes, kernel_resident_bytes, kernel_resident_eth_bytes, last_dispatch_time, dram_peak_bytes, dram_peak_time, dram_peak_count, resident_lanes, l1_peak_bytes, l1_peak_time, l1_peak_count, peak_reset_time, system_kernel_bytes, system_kernel_eth_bytes, eth_peak_bytes, eth_peak_time, failed_allocs, last_failed_time, open, kernel_ring_total_bytes, kernel_ring_used_bytes, kernel_ring_programs, reserved1, lanes, classes, requested_basis_bytes, reserved2 }
        Lane in shm_layout { program, cb_bytes, kernel_bytes, kernel_eth_bytes }
        ClassCounters in shm_layout { live_bytes, live_count, alloc_bytes, alloc_count, peak_bytes, peak_time, peak_count, requested_bytes }
        Event in shm_layout { stamp, time, kind, class, flags, device, name, site, id, size, address, aux, row, cores, place }
        Row in shm_layout { stamp, time, kind, class, flags, device, name, site, id, size, address, aux, row, cores, place }
    }
}

#[test]
fn structs_of_a_table() {
    check_structs! {
        TableHeader in shm_layout::table { magic, major, minor, header_len, total_len, incompatible, compatible, boot_id, identity, pid, started, started_realtime_ns, control, devices, processes, usages, notices, history, failures, reserved }
        DeviceStats in shm_layout::table { generation, flags, entry, processes, dram_used_bytes, l1_used_bytes, eth_used_bytes, cb_resident_bytes, kernel_resident_bytes, kernel_resident_eth_bytes, system_kernel_bytes, system_kernel_eth_bytes, dispatches, cached_dispatches, failed_allocs, events, events_per_1000s, dispatches_per_1000s, kernel_ring_total_bytes, kernel_ring_used_bytes, kernel_ring_programs, dram_peak, l1_peak, eth_peak, failure, classes, dram_composition, l1_composition, cb_resident_peak, kernel_resident_peak }
        Peak in shm_layout::table { low, high, time, count }
        Composition in shm_layout::table { classes, holders, others }
        Holder in shm_layout::table { identity, pid, bytes }
        ClassStats in shm_layout::table { live_bytes, live_count, alloc_bytes, alloc_count, peak, requested_bytes, requested_basis_bytes }
        Failure in shm_layout::table { time, pid, class, request_bytes, free_bytes, largest_free_bytes, needed_per_bank_bytes, banks, per_bank }
        ProcessStats in shm_layout::table { generation, state, flags, identity, pid, pid_namespace, uid, started, ended, position, last_event, missed, late, events_per_1000s, unlisted, anomalies, name, source, on_behalf_of, self_checks, self_checks_different, start_time, devices }
        UsageStats in shm_layout::table { generation, process, device, logical_id, allocator, counters, flags, entry }
        Bucket in shm_layout::table { start, dram_min, dram_max, dram_last, l1_min, l1_max, l1_last, flags }
        FailureRecord in shm_layout::table { generation, flags, time, chip_id, identity, position, pid, pid_namespace, uid, class, request_bytes, free_bytes, largest_free_bytes, needed_per_bank_bytes, banks, name, classes, holder_count, holders, others, event_count, events }
        FailureHolder in shm_layout::table { identity, pid, pid_namespace, classes, name }
        PastEvent in shm_layout::table { time, identity, pid, kind, class, id, size }
        Notice in shm_layout::table { generation, kind, time, pid, uid, bytes, counts, file, text }
    }
}

/// A struct that is documented but unknown above would go unchecked.
#[test]
fn every_documented_struct_is_checked() {
    let documented = DOCUMENT.lines().filter(|line| line.starts_with("### ") && line.ends_with(" bytes)"));
    assert_eq!(documented.count(), 23);
}

#[test]
fn codes() {
    assert_codes("| class |", Class::ALL.map(|class| (class as u64, class.name())));
    assert_codes("| kind |", EventKind::ALL.map(|kind| (kind as u64, kind.label())));
    assert_codes("| anomaly |", Anomaly::ALL.map(|anomaly| (anomaly as u64, anomaly.name())));
    let kinds = [RowKind::Buffer, RowKind::Cb, RowKind::Kernel, RowKind::Program];
    let names = kinds.map(|kind| format!("{kind:?}"));
    assert_codes(
        "| row kind |",
        kinds.map(|kind| kind as u64).into_iter().zip(names.iter().map(|n| n.as_str())),
    );
}

/// Pairs of value and name of constants in a module.
macro_rules! named {
    ($module:ident: $($name:ident),* $(,)?) => { [$(($module::$name as u64, stringify!($name))),*] };
}

#[test]
fn bits() {
    assert_codes("| flag |", named!(flags: ETHERNET, RESIDENT, CACHED, LATE, GLOBAL, PER_BANK, REQUESTED));
    assert_codes(
        "| known |",
        named!(
            known: DRAM, DRAM_CHANNELS, L1, ETH, PCI, LOGICAL, BOARD, ARCH, SUB_DEVICE, MODE, DRAM_POOLS_DIFFER,
            L1_POOLS_DIFFER, POOL,
        ),
    );
}

#[test]
fn bits_and_states_of_a_table() {
    use shm_layout::table::{
        bucket_flags, device_flags, failure_flags, notice_kind, process_flags, process_state, usage_flags,
    };
    assert_codes(
        "| device flag |",
        named!(device_flags: OVER_CAPACITY, CONFLICT, INCOMPLETE, DRAM_COMPOSITION_EXACT, L1_COMPOSITION_EXACT),
    );
    assert_codes("| process state |", named!(process_state: FREE, ALIVE, ENDED));
    assert_codes("| process flag |", named!(process_flags: DEGRADED, BROKEN, UNLINKED, CLOSED, UNSEEN));
    assert_codes("| usage flag |", named!(usage_flags: CONFLICT));
    assert_codes("| bucket flag |", named!(bucket_flags: INEXACT));
    assert_codes("| failure flag |", named!(failure_flags: HOLDERS_EXACT, EVENTS_COMPLETE, PER_BANK));
    assert_codes(
        "| notice kind |",
        named!(notice_kind: WITHDRAWN, REFUSED, RECLAIMED, BROKEN, UNSEEN, CLOCK, UNCOUNTED),
    );
}

/// The lists above are complete: as many constants as the source has.
#[test]
fn no_bit_or_state_is_left_out() {
    let sources = [
        include_str!("../src/table/device.rs"),
        include_str!("../src/table/failure.rs"),
        include_str!("../src/table/rows.rs"),
    ];
    for (module, table) in [
        ("device_flags", "| device flag |"),
        ("process_state", "| process state |"),
        ("process_flags", "| process flag |"),
        ("usage_flags", "| usage flag |"),
        ("bucket_flags", "| bucket flag |"),
        ("failure_flags", "| failure flag |"),
        ("notice_kind", "| notice kind |"),
    ] {
        let start = format!("pub mod {module} {{");
        let lines = sources.iter().flat_map(|source| source.lines()).skip_while(|line| **line != start);
        let constants = lines.take_while(|line| *line != "}").filter(|line| line.contains("pub const "));
        assert_eq!(constants.count(), rows_of(table).len(), "{module}");
    }
}

/// The document is for readers in any language: no path and no name of a source file or module.
#[test]
fn the_document_names_nothing_that_it_does_not_define() {
    for name in [".rs`", "::", "_flags`", "SEGMENT_MAGIC", "TABLE_MAGIC", "process_state", "notice_kind"] {
        assert!(!DOCUMENT.contains(name), "{name}");
    }
}

#[test]
fn control_words() {
    assert_codes(
        "## Segment control words",
        named!(segment_control: HEAD, STATE, DEVICE_COUNT, NAME_COUNT, ROWS_PUBLISHED, UNLISTED, CLOSED_AT, SELF_CHECKS, SELF_CHECKS_DIFFERENT, ANOMALIES),
    );
    assert_codes(
        "## Table control words",
        named!(
            control: GENERATION, HEARTBEAT, CLOSED, DEVICES, PROCESSES, USAGES, NOTICES, EVENTS, MISSED, LATE,
            REFUSED, WINDOW_SINCE, WINDOWS, INTERVAL, GAP_START, GAP_END, OVERFLOW, FAILURES, UNSEEN, PUBLISH_ERRORS,
            INCOMPLETE_SINCE, CLOCK_STEPS, LOST, AS_OF, AWAKE_SINCE,
        ),
    );
}

#[test]
fn constants() {
    let truth = [
        ("ALIGN", shm_layout::ALIGN),
        ("MAX_DEVICES", shm_layout::MAX_DEVICES as u64),
        ("MAX_NAMES", shm_layout::MAX_NAMES),
        ("MAX_NAME_LEN", shm_layout::MAX_NAME_LEN as u64),
        ("MAX_NAME_BYTES", shm_layout::MAX_NAME_BYTES),
        ("RUN_GRACE_NS", shm_layout::RUN_GRACE_NS),
        ("MIN_RING_SLOTS", *shm_layout::RING_SLOTS.start()),
        ("MAX_RING_SLOTS", *shm_layout::RING_SLOTS.end()),
        ("MAX_ROWS", shm_layout::MAX_ROWS),
        ("MAX_BYTES", shm_layout::MAX_BYTES),
        ("MAX_KERNEL_BYTES", shm_layout::MAX_KERNEL_BYTES),
        ("LANES", shm_layout::LANES as u64),
        ("CONTROL_WORDS", segment_control::CONTROL_WORDS as u64),
        ("DEVICE_COUNTER_WORDS", shm_layout::DEVICE_COUNTER_WORDS as u64),
        ("TABLE_CONTROL_WORDS", control::WORDS as u64),
        ("TABLE_DEVICES", table::TABLE_DEVICES as u64),
        ("MAX_PROCESSES", table::MAX_PROCESSES as u64),
        ("MAX_USAGES", table::MAX_USAGES as u64),
        ("MAX_NOTICES", table::MAX_NOTICES as u64),
        ("DEVICE_ROW_WORDS", table::DEVICE_ROW_WORDS as u64),
        ("PROCESS_ROW_WORDS", table::PROCESS_ROW_WORDS as u64),
        ("USAGE_ROW_WORDS", table::USAGE_ROW_WORDS as u64),
        ("NOTICE_ROW_WORDS", table::NOTICE_ROW_WORDS as u64),
        ("MAX_FAILURES", table::MAX_FAILURES as u64),
        ("FAILURE_ROW_WORDS", table::FAILURE_ROW_WORDS as u64),
        ("HISTORY_BUCKETS", table::HISTORY_BUCKETS as u64),
        ("HISTORY_WORDS", table::HISTORY_WORDS as u64),
        ("PEAK_HOLDERS", table::PEAK_HOLDERS as u64),
        ("FAILURE_HOLDERS", table::FAILURE_HOLDERS as u64),
        ("FAILURE_EVENTS", table::FAILURE_EVENTS as u64),
    ];
    let documented = rows_of("| constant |");
    let documented: Vec<_> = documented.iter().map(|row| (row[0].as_str(), number(&row[1]))).collect();
    assert_eq!(documented, truth);
    let version =
        format!("# Layout of the shared memory, version {}.{}", shm_layout::MAJOR, shm_layout::MINOR);
    assert_eq!(DOCUMENT.lines().next(), Some(version.as_str()));
}
