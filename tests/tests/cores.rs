//! `tt-smi cores`: the L1 of each core.

use crate::common::{json, smi, tracker};
use crate::schema::check;
use serde_json::{Value, json};
use tt_shm_tests::Space;
use tt_shm_writer::{
    Alloc, BufferType, CircularBuffer, CoreGrid, CoreMemory, CoreType, Device, DeviceInfo, Dispatch, Kernel,
    KernelType, Launch, NameId, Pool, Pools, ProgramBinaryStatus, Record, Tracker,
};

const KIB: u64 = 1024;
/// Where the L1 pool begins.
const BASE: u64 = 100 * KIB;
/// Its bytes on each core.
const CORE: u64 = 1000 * KIB;

/// A chip of 4 x 2 cores.
fn chip(chip_id: u64) -> DeviceInfo {
    let pool = |bank_bytes| Some(Pool { banks: 8, bank_bytes, alignment: 32 });
    DeviceInfo {
        chip_id,
        pools: Pools { l1: pool(CORE), l1_small: pool(32 * KIB), ..Pools::default() },
        l1: Some(CoreMemory { cores: 8, bytes_per_core: 1464 * KIB }),
        l1_base: Some(BASE),
        grid: Some(CoreGrid { columns: 4, rows: 2 }),
        ..DeviceInfo::default()
    }
}

fn buffer(id: u64, address: u64, per_core: u64) -> Alloc {
    Alloc::new(BufferType::L1, id, per_core).bytes_per_bank(per_core).address(BASE + address)
}

/// A piece of program memory on cores that are named, or not.
fn piece(
    tracker: &Tracker,
    (program, id): (u64, u64),
    at: u64,
    bytes: u64,
    cores: (u32, &str),
) -> CircularBuffer {
    let ranges = if cores.1.is_empty() { NameId::NONE } else { tracker.intern(cores.1).unwrap() };
    CircularBuffer::new(program, id, bytes, cores.0).address(BASE + at).core_ranges(ranges)
}

fn launch(tracker: &Tracker, device: Device, program: u64) {
    let kernel = Kernel::new(program, KernelType::Application, CoreType::Tensix, 512, 8).program(program);
    tracker.launch(device, Launch::new(program, &[kernel], ProgramBinaryStatus::NotSent)).unwrap();
}

fn cores(space: &Space) -> Value {
    let cores = json(space, &["cores"]);
    check("cores", &cores);
    cores["devices"][0].clone()
}

/// Of a core: bytes of programs, free bytes, largest gap.
fn figures(core: &Value) -> [u64; 3] {
    ["program_bytes", "free_bytes", "largest_gap_bytes"].map(|key| core[key].as_u64().unwrap())
}

#[test]
fn the_core_that_runs_out_first_is_that_with_most_program_memory() {
    let space = Space::new();
    let tracker = tracker(&space);
    let device = tracker.register_device(&chip(5)).unwrap();
    let name = tracker.intern("weights").unwrap();
    tracker.alloc(device, buffer(1, 900 * KIB, 100 * KIB).name(name)).unwrap();
    tracker.alloc(device, buffer(2, 500 * KIB, 50 * KIB)).unwrap();
    let small = Alloc::new(BufferType::L1Small, 3, 2 * KIB).bytes_per_bank(2 * KIB).address(BASE + CORE);
    tracker.alloc(device, small).unwrap();
    tracker.cb_alloc(device, piece(&tracker, (7, 0), 0, 64 * KIB, (8, "0,0-3,1"))).unwrap();
    tracker.cb_alloc(device, piece(&tracker, (7, 1), 64 * KIB, 300 * KIB, (3, "1,0-2,0 3,1"))).unwrap();
    tracker.kernel_ring(device, 69 * KIB, 5 * KIB, 2).unwrap();
    // Nothing of a program is there before it was dispatched.
    assert_eq!(figures(&cores(&space)["cores"][0]), [0, 850 * KIB, 500 * KIB]);
    launch(&tracker, device, 7);
    let softmax = tracker.intern("softmax").unwrap();
    tracker.dispatch(device, Dispatch::new(7).name(softmax)).unwrap();
    let shown = cores(&space);
    let expected = json!({
        "exact": true, "grid_columns": 4, "grid_rows": 2, "core_count": 8, "l1_core_bytes": CORE,
        "l1_address": BASE, "l1_small_core_bytes": 32 * KIB, "largest_free_block_bytes": 500 * KIB,
        "free_at_least_bytes": 486 * KIB, "unplaced": [],
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&shown[key], value, "{key}");
    }
    let all = shown["cores"].as_array().unwrap();
    let places: Vec<_> =
        all.iter().map(|core| (core["x"].as_u64().unwrap(), core["y"].as_u64().unwrap())).collect();
    assert_eq!(places, [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1), (2, 1), (3, 1)]);
    let fullest = [1, 2, 7];
    for (number, core) in all.iter().enumerate() {
        let expected = match fullest.contains(&number) {
            true => [364 * KIB, 486 * KIB, 350 * KIB],
            false => [64 * KIB, 786 * KIB, 436 * KIB],
        };
        assert_eq!(figures(core), expected, "{core}");
        assert_eq!((&core["l1_bytes"], &core["l1_small_bytes"]), (&(150 * KIB).into(), &(2 * KIB).into()));
    }
    let first = &shown["runs_out_first"];
    assert_eq!((&first["x"], &first["y"], &first["count"]), (&1.into(), &0.into(), &3.into()));
    let occupants: Vec<_> = first["occupants"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["class"], &one["bytes"], &one["name"]))
        .collect();
    let named = [("cb", 364, Value::Null), ("l1", 100, "weights".into()), ("l1", 50, Value::Null)];
    let named = named.map(|(class, kib, name)| (Value::from(class), Value::from(kib * KIB), name));
    assert_eq!(occupants, named.iter().map(|(class, bytes, name)| (class, bytes, name)).collect::<Vec<_>>());
    assert_eq!(shown["kernel_rings"][0]["used_bytes"], 5 * KIB);

    let text = smi(&space, &["cores"]);
    let lines: Vec<&str> = text.lines().collect();
    let first =
        "Device 0: core 1,0 and 2 more run out first: 486.0 KiB of 1000.0 KiB free, largest gap 350.0 KiB";
    assert_eq!(lines[0], first, "{text}");
    assert!(lines[1].starts_with("  held there: 364.0 KiB cb of program 0x7 softmax (pid"), "{text}");
    assert!(text.contains("kernel-config ring: 5.0 KiB of 69.0 KiB used by 2 programs"), "{text}");
    let grid = ["  % used   0   1   2   3", "       0  22  52  52  22", "       1  22  22  22  52"];
    assert!(text.contains(&grid.join("\n")), "{text}");
    assert!(text.contains("\n  1,0-2,0 3,1 "), "{text}");
}

#[test]
fn only_what_was_dispatched_last_is_there() {
    let space = Space::new();
    let tracker = tracker(&space);
    let device = tracker.register_device(&chip(5)).unwrap();
    for program in [7, 8] {
        let bytes = program * KIB;
        tracker.cb_alloc(device, piece(&tracker, (program, 0), 0, bytes, (1, "0,0"))).unwrap();
        launch(&tracker, device, program);
    }
    let first = || figures(&cores(&space)["cores"][0])[0];
    assert_eq!(first(), 8 * KIB);
    tracker.dispatch(device, Dispatch::new(7)).unwrap();
    assert_eq!(first(), 7 * KIB);
    // It comes with the next dispatch.
    tracker.cb_alloc(device, piece(&tracker, (7, 1), 10 * KIB, KIB, (1, "0,0"))).unwrap();
    assert_eq!((first(), &cores(&space)["exact"]), (7 * KIB, &true.into()));
    tracker.dispatch(device, Dispatch::new(7)).unwrap();
    assert_eq!(first(), 8 * KIB);
    tracker.program_end(device, 7).unwrap();
    assert_eq!((first(), &cores(&space)["exact"]), (0, &true.into()));
    assert!(
        smi(&space, &["cores"]).starts_with("Device 0: all 8 cores alike: 1000.0 KiB of 1000.0 KiB free")
    );
}

/// Neither a missing nor a wrong name of core ranges puts anything on a core.
#[test]
fn what_lies_on_unknown_cores_is_counted_on_none() {
    for ranges in ["", "all of them", "0,0-9,9", "0,0", "0,0 0,0", "\u{1b}[2J"] {
        let space = Space::new();
        let tracker = tracker(&space);
        let device = tracker.register_device(&chip(5)).unwrap();
        tracker.cb_alloc(device, piece(&tracker, (7, 0), 0, 10 * KIB, (2, ranges))).unwrap();
        launch(&tracker, device, 7);
        let shown = cores(&space);
        assert_eq!(
            (&shown["exact"], &shown["free_at_least_bytes"]),
            (&false.into(), &(990 * KIB).into()),
            "{ranges:?}"
        );
        assert_eq!(figures(&shown["cores"][0]), [0, CORE, CORE]);
        let unplaced = &shown["unplaced"][0];
        let keys = ["core_count", "live_count", "core_bytes"].map(|key| unplaced[key].as_u64().unwrap());
        assert_eq!(keys, [2, 1, 10 * KIB]);
        let text = smi(&space, &["cores"]);
        assert!(text.contains("at most 1000.0 KiB of 1000.0 KiB free"), "{text}");
        assert!(text.contains("at least 990.0 KiB free on every core") && !text.contains('\u{1b}'), "{text}");
    }
}

#[test]
fn what_no_process_tells_is_unknown() {
    let space = Space::new();
    let tracker = tracker(&space);
    // Without coordinates and addresses: the sums of one allocator are certain, gaps are not.
    let device = tracker.register_device(&DeviceInfo { l1_base: None, grid: None, ..chip(5) }).unwrap();
    tracker.alloc(device, buffer(1, 0, 100 * KIB)).unwrap();
    let shown = cores(&space);
    let core = &shown["cores"][0];
    assert_eq!((&shown["exact"], &core["count"], &core["x"]), (&true.into(), &8.into(), &Value::Null));
    assert_eq!((&core["free_bytes"], &core["largest_gap_bytes"]), (&(900 * KIB).into(), &Value::Null));
    assert_eq!(shown["largest_free_block_bytes"], Value::Null);
    let text = smi(&space, &["cores"]);
    assert!(
        text.starts_with("Device 0: all 8 cores alike: 900.0 KiB of 1000.0 KiB free, largest gap -"),
        "{text}"
    );
    // A program on as many cores as there are is on each of them.
    tracker.cb_alloc(device, piece(&tracker, (7, 0), 200 * KIB, 10 * KIB, (8, ""))).unwrap();
    launch(&tracker, device, 7);
    let shown = cores(&space);
    assert_eq!(
        (&shown["exact"], &shown["unplaced"]),
        (&false.into(), &json!([])),
        "it may lie over the buffer"
    );
    assert_eq!(shown["cores"][0]["program_bytes"], 10 * KIB);
    // Without pools, nothing says how much of a buffer is on a core.
    let space = Space::new();
    let tracker = crate::common::tracker(&space);
    let device = tracker.register_device(&DeviceInfo { chip_id: 5, ..DeviceInfo::default() }).unwrap();
    tracker.alloc(device, Alloc::new(BufferType::L1, 1, 4096)).unwrap();
    let shown = cores(&space);
    assert_eq!((&shown["exact"], &shown["runs_out_first"]), (&false.into(), &Value::Null));
    assert!(smi(&space, &["cores"]).starts_with("Device 0: free L1 of its cores unknown"));
}

/// Buffers of two allocators may overlap; what both take is taken once.
#[test]
fn processes_are_added_up() {
    let space = Space::new();
    let (one, two) = (tracker(&space), tracker(&space));
    let devices = [&one, &two].map(|tracker| tracker.register_device(&chip(5)).unwrap());
    one.alloc(devices[0], buffer(1, 0, 100 * KIB)).unwrap();
    two.alloc(devices[1], buffer(1, 50 * KIB, 100 * KIB)).unwrap();
    let shown = cores(&space);
    let core = &shown["cores"][5];
    assert_eq!((&core["l1_bytes"], &core["overlap_bytes"]), (&(200 * KIB).into(), &(50 * KIB).into()));
    assert_eq!((figures(core), &shown["exact"]), ([0, 850 * KIB, 850 * KIB], &true.into()));
    // A third has another pool: what is free depends on who asks.
    let three = tracker(&space);
    let other = Pool { banks: 8, bank_bytes: CORE / 2, alignment: 32 };
    let pools = Pools { l1: Some(other), ..Pools::default() };
    three.register_device(&DeviceInfo { pools, ..chip(5) }).unwrap();
    let shown = cores(&space);
    assert_eq!((&shown["exact"], &shown["runs_out_first"]), (&false.into(), &Value::Null));
}

#[test]
fn a_buffer_on_some_cores_only_is_on_none_for_certain() {
    let space = Space::new();
    let tracker = tracker(&space);
    let device = tracker.register_device(&chip(5)).unwrap();
    let partial = Alloc::new(BufferType::L1, 1, 3 * KIB).cores(3).occupied(30 * KIB).address(BASE);
    tracker.alloc(device, partial).unwrap();
    let shown = cores(&space);
    assert_eq!((&shown["exact"], &shown["largest_free_block_bytes"]), (&false.into(), &Value::Null));
    assert_eq!(shown["free_at_least_bytes"], CORE - 10 * KIB);
    assert_eq!((&shown["unplaced"][0]["class"], &shown["cores"][0]["l1_bytes"]), (&"l1".into(), &0.into()));
}

#[test]
fn devices_are_selected_and_nothing_is_said_so() {
    let space = Space::new();
    assert!(smi(&space, &["cores"]).starts_with("No cores known: no process reports"));
    let tracker = tracker(&space);
    for chip_id in [5, 6] {
        tracker.register_device(&chip(chip_id)).unwrap();
    }
    assert_eq!(json(&space, &["cores"])["devices"].as_array().unwrap().len(), 2);
    assert_eq!(json(&space, &["cores", "--device", "1"])["devices"][0]["device"], 1);
}
