//! What views of one device are shown with.

use std::sync::Arc;

use tt_shm_reader::{
    Bucket, Class, Composition, HISTORY_RESOLUTIONS, Holder, TELEMETRY_RESOLUTIONS, TRENDS, TableSnapshot,
    TelemetryBucket, Trend,
};
use tt_smi::lists::allocations::{Item, Listing};
use tt_smi::lists::cores::{Core, DeviceCores, Fullest, Held, Occupant, Ring};
use tt_smi::screen::{Cores, History};

use super::{GIB, KIB, MIB};

/// The fixed rows, with what the peaks were made of.
pub(crate) fn snapshot(devices: u64) -> TableSnapshot {
    let mut snapshot = super::snapshot(devices);
    for (_, device) in snapshot.devices.iter_mut().take(devices as usize) {
        device.dram_composition = composition(&[(Class::Dram, 4 * GIB - 64 * MIB), (Class::Trace, 64 * MIB)]);
        device.l1_composition =
            composition(&[(Class::L1, 48 * MIB), (Class::Cb, 12 * MIB), (Class::KernelApplication, MIB)]);
    }
    snapshot
}

fn composition(parts: &[(Class, u64)]) -> Composition {
    let mut composition: Composition = bytemuck::Zeroable::zeroed();
    let total: u64 = parts.iter().map(|(_, bytes)| bytes).sum();
    for (class, bytes) in parts {
        composition.classes[*class as usize] = *bytes;
    }
    composition.holders[0] = holder(4242, total / 2);
    composition.holders[1] = holder(5000, total / 4);
    composition.holders[2] = holder(4100, total / 8);
    composition.others = total / 8;
    composition
}

fn holder(pid: u64, bytes: u64) -> Holder {
    Holder { identity: pid, pid, bytes }
}

/// A minute of all devices: steps of L1, a cache in DRAM that grows, a spike of one bucket, a stretch that no
/// aggregator saw, and one that is unknown otherwise.
pub(crate) fn history(devices: usize) -> History {
    let length = HISTORY_RESOLUTIONS[0];
    let newest = super::NOW / length;
    let (unseen, unknown) = (newest - 150..newest - 130, newest - 215..newest - 205);
    let numbers =
        (newest - 239..=newest).filter(|number| !unseen.contains(number) && !unknown.contains(number));
    let bucket = |number: u64| {
        let step = number % 48;
        let dram = 3 * GIB + step * 40 * MIB;
        let l1 = if step < 24 { 20 * MIB } else { 61 * MIB };
        let spike = if newest - number == 50 { 11 * GIB } else { dram };
        Bucket {
            start: number * length,
            dram_min: dram,
            dram_max: spike,
            dram_last: dram,
            l1_min: l1 / 2,
            l1_max: l1,
            l1_last: l1,
            flags: 0,
            trace_last: 600 * MIB,
            l1_small_last: MIB,
            cb_last: if step < 24 { 2 * MIB } else { 24 * MIB },
            steps: u64::from(step == 0),
        }
    };
    let buckets: Vec<Bucket> = numbers.map(bucket).collect();
    let gap = Some((unseen.start * length, unseen.end * length));
    History { resolution: 0, devices: vec![buckets; devices], telemetry: vec![telemetry(); devices], gap }
}

/// Temperature that rises and falls, and power of which nothing was read for ten seconds.
fn telemetry() -> Vec<TelemetryBucket> {
    let length = TELEMETRY_RESOLUTIONS[0];
    let newest = super::NOW / length;
    let bucket = |number: u64| {
        let step = (number % 20) as i64;
        let temperature = Trend::of(40_000 + 1_000 * (step - 10).abs());
        let mut trends = [temperature; TRENDS];
        trends[1] = Trend::of(20_000_000 + 1_000_000 * step);
        let known = if (10..15).contains(&(newest - number)) { 1 } else { 3 };
        TelemetryBucket { start: number * length, known, trends }
    };
    (newest - 39..=newest).map(bucket).collect()
}

fn item(pid: u32, class: Class, name: &str, address: u64, bank_bytes: u64) -> Item {
    Item {
        device: 0,
        entry: 0,
        identity: u64::from(pid),
        pid,
        claimed: false,
        class,
        id: address,
        program: None,
        size: 12 * bank_bytes,
        address: Some(address),
        bank_bytes: Some(bank_bytes),
        cores: None,
        core_type: None,
        globally_allocated: false,
        name: Some(name.to_owned().into()),
        site: None,
        age_ns: 312_000_000_000,
    }
}

/// Weights, a cache with holes, a trace; L1 buffers from the top, circular buffers from below.
pub(crate) fn listing() -> Listing {
    let weights = (0..40).map(|n| item(4242, Class::Dram, "weights", (1 + n * 6) * MIB, 6 * MIB));
    let cache = (0..20).map(|n| item(4242, Class::Dram, "kv_cache", (300 + n * 10) * MIB, (2 + n % 7) * MIB));
    let trace = item(4242, Class::Trace, "decode_trace", 600 * MIB, 32 * MIB);
    let small = item(4242, Class::L1Small, "halo", 1432 * KIB, 32 * KIB);
    let buffers = (0..4).map(|n| item(4242, Class::L1, "activation", (1000 + n * 100) * KIB, 60 * KIB));
    let cbs = (0..6).map(|n| item(4242, Class::Cb, super::HOSTILE, (100 + n * 48) * KIB, 48 * KIB));
    let items = weights.chain(cache).chain([trace, small]).chain(buffers).chain(cbs).collect();
    Listing { items, ..Listing::default() }
}

/// The same with another process in the same place, and some that do not say where they are.
pub(crate) fn disputed_listing() -> Listing {
    let mut listing = listing();
    listing.items.push(item(5000, Class::Dram, "intruder", 400 * MIB, 30 * MIB));
    listing.items.push(Item { address: None, ..item(5000, Class::Dram, "somewhere", 0, MIB) });
    listing.items.push(Item { bank_bytes: None, ..item(5000, Class::Dram, "how much", 700 * MIB, MIB) });
    listing
}

/// Grids of 8 x 8 cores: buffers on all of them, programs on some, one core that is nearly full.
pub(crate) fn cores(devices: usize) -> Cores {
    Cores { devices: (0..devices).map(device_cores).collect(), doubts: Vec::new() }
}

fn device_cores(device: usize) -> DeviceCores {
    const TOTAL: u64 = 1300 * KIB;
    let occupant = |class, bytes, name: &str, program: Option<u64>| Occupant {
        pid: 4242,
        claimed: false,
        class,
        program,
        program_name: program.map(|_| "ttnn::matmul".into()),
        name: Some(name.into()),
        bytes,
    };
    let core = |x: u32, y: u32| {
        let program_bytes = match (x, y) {
            (5, 3) => 800 * KIB,
            (0..=3, 0..=1) => 620 * KIB,
            (_, 0..=3) => 200 * KIB,
            _ => 0,
        };
        let l1_bytes = 400 * KIB;
        let free = TOTAL - l1_bytes - program_bytes;
        let held = Held {
            l1_bytes,
            l1_small_bytes: 8 * KIB,
            program_bytes,
            free_bytes: Some(free),
            largest_gap_bytes: Some(free / 2),
            largest_gap_address: Some(0x19000),
            overlap_bytes: Some(0),
        };
        let buffers = occupant(Class::L1, l1_bytes, "activation", None);
        let program = occupant(Class::Cb, program_bytes, "in0", Some(0x1002));
        let occupants: Arc<[Occupant]> =
            if program_bytes > 0 { [program, buffers].into() } else { [buffers].into() };
        Core { x: Some(x), y: Some(y), count: Some(1), held, occupants }
    };
    let cores: Vec<Core> = (0..8).flat_map(|y| (0..8).map(move |x| core(x, y))).collect();
    let first = cores.iter().find(|core| core.x.zip(core.y) == Some((5, 3))).unwrap();
    let runs_out_first = Fullest {
        x: first.x,
        y: first.y,
        count: Some(1),
        free_bytes: first.held.free_bytes.unwrap(),
        largest_gap_bytes: first.held.largest_gap_bytes,
        occupants: first.occupants.to_vec(),
    };
    DeviceCores {
        device,
        exact: true,
        grid_columns: Some(8),
        grid_rows: Some(8),
        core_count: Some(64),
        l1_core_bytes: Some(TOTAL),
        l1_address: Some(100 * KIB),
        l1_small_core_bytes: Some(64 * KIB),
        largest_free_block_bytes: Some(450 * KIB),
        free_at_least_bytes: Some(100 * KIB),
        runs_out_first: Some(runs_out_first),
        cores,
        unplaced: Vec::new(),
        kernel_rings: vec![Ring { pid: 4242, total_bytes: 70 * KIB, used_bytes: 54 * KIB, programs: 4 }],
        resident: vec![(4242, 0, None)],
    }
}
