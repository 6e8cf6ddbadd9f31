//! Fixed lists: processes, allocations, events, programs.

use std::sync::Arc;

use tt_shm_reader::{
    Class, CoreType, Event, EventKind, Kernel, KernelType, MarkerPhase, Program, ProgramDevice, flags,
};
use tt_smi::escape::Foreign;
use tt_smi::lists::allocations::{self, Item};
use tt_smi::lists::events::Seen;
use tt_smi::lists::programs::{self, Entry, Sharing};
use tt_smi::model::{Health, Model, Moment, Process};
use tt_smi::procinfo::{Container, Groups, ProcInfo, RunState};
use tt_smi::screen::{More, NewEvents};

use super::{GIB, HOSTILE, KIB, MIB, SECOND, model, snapshot};

/// In Japanese: each sign takes two columns.
const WIDE: &str = "重み行列";

fn info(command: &str, parent: u32, state: RunState) -> ProcInfo {
    let command = Some(Foreign::from(command));
    ProcInfo {
        command,
        groups: Groups::default(),
        state,
        parent: Some(parent),
        start_ticks: 7,
        owners: Some([54_321; 2]),
    }
}

/// Processes of all kinds: with children, in a container, stopped, hostile, ended.
pub(crate) fn processes() -> Model {
    let mut model = model(snapshot(4));
    let place = |model: &Model, pid| model.processes.iter().position(|process| process.pid == Some(pid));
    let llama = place(&model, 4242).unwrap();
    let command = "python3 serve.py --model llama-3.1-8b --mesh 2x2 --port 8000";
    model.processes[llama].start_ticks = 7;
    model.processes[llama].confirm(&info(command, 900, RunState::Running));
    let hostile = place(&model, 5000).unwrap();
    let command = "sh -c \u{1b}]0;owned\u{7} 重み行列";
    model.processes[hostile].confirm(&info(command, 4242, RunState::Running));
    let mut worker = Process {
        identity: 6100,
        pid: Some(6100),
        namespace_pid: 17,
        name: "worker".into(),
        usages: model.processes[llama].usages[..1].to_vec(),
        health: Health::default(),
        events_per_second: Some(0.0),
        ..model.processes[llama].clone()
    };
    let unseen = Process {
        identity: 1,
        pid: None,
        namespace_pid: 1,
        name: "server".into(),
        claimed: None,
        parent_pid: None,
        command: None,
        events_per_second: None,
        usages: Vec::new(),
        ..worker.clone()
    };
    worker.confirm(&ProcInfo {
        groups: Groups {
            container: Some(Container { runtime: Some("docker"), id: "c0ffee00".repeat(8) }),
            pod_uid: Some("1f2e3d4c-0001-4a2b-8c3d-0123456789ab".to_owned()),
            slurm_job: Some(77),
        },
        ..info("python3 worker.py --rank 1", 4242, RunState::Stopped)
    });
    model.processes.splice(2..2, [worker, unseen]);
    model
}

fn item(number: u64, name: Option<&str>, class: Class, size: u64) -> Item {
    let is_dram = matches!(class, Class::Dram | Class::Trace);
    let is_kernel = class.kernel_type().is_some();
    Item {
        device: (number % 4) as usize,
        entry: 0,
        identity: if number % 7 == 3 { 6100 } else { 4242 },
        pid: if number % 7 == 3 { 6100 } else { 4242 },
        claimed: false,
        class,
        id: 0x1000 + number,
        program: (!is_dram && number.is_multiple_of(2)).then_some(0x20 + number),
        size,
        address: (!is_kernel).then_some(0x4000_0000 + number * 0x10_0000),
        bank_bytes: None,
        cores: (!is_dram).then_some(64),
        core_type: (!is_dram).then_some(CoreType::Tensix),
        globally_allocated: class == Class::Cb && size == 0,
        name: name.map(Foreign::from),
        site: number.is_multiple_of(5).then(|| Foreign::from("ttnn/operations/matmul.cpp:211")),
        age_ns: 1_500_000 * (number + 1) * (number + 1) * (number + 3),
    }
}

/// Weights of 24 layers, what attention keeps, and what is odd.
pub(crate) fn items() -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let mut add = |name: Option<&str>, class, size| items.push(item(items.len() as u64, name, class, size));
    for layer in 0..24 {
        add(Some(&format!("layers.{layer}.attention.wqkv")), Class::Dram, 48 * MIB);
        add(Some("kv_cache"), Class::Dram, 8 * MIB);
        add(Some("activation"), Class::L1, 24 * KIB + layer * KIB);
        add(None, Class::Cb, 12 * KIB);
    }
    add(Some(WIDE), Class::Dram, GIB);
    add(Some(HOSTILE), Class::L1Small, 512);
    add(Some("cb_in0"), Class::Cb, 0);
    add(Some("trace"), Class::Trace, 32 * MIB);
    add(Some("reader"), Class::KernelApplication, 24 * KIB);
    add(Some("fabric_erisc_router"), Class::KernelFabric, 896 * KIB);
    items
}

/// The weights of ten layers on a mesh of four, and a cache that differs on one of them.
pub(crate) fn mesh_items() -> Vec<Item> {
    let on = |number: u64, name: &str, size: u64, device: usize| {
        let like = item(number, Some(name), Class::Dram, size);
        Item { device, identity: 4242, pid: 4242, age_ns: SECOND * (1 + number) - device as u64, ..like }
    };
    let mut items: Vec<Item> = Vec::new();
    for layer in 0..9 {
        let (name, size) = (format!("layers.{layer}.attention.wqkv"), 48 * MIB - layer * 6 * MIB);
        items.extend((0..4).map(|device| on(layer, &name, size, device)));
    }
    items.extend(
        (0..4).map(|device| on(20, "kv_cache", if device == 2 { 11 * MIB } else { 8 * MIB }, device)),
    );
    items.push(on(30, "sampler", MIB, 0));
    items
}

/// So many calls on a mesh of four, from this one on.
pub(crate) fn mesh_events(from: u64, calls: u64) -> Vec<Seen> {
    let on = |call: u64, device: u16| {
        let seen = event(call);
        let stamp = 1 + call * 4 + u64::from(device);
        Seen { event: Event { stamp, ..seen.event }, device: Some(device), ..seen }
    };
    (from..from + calls).flat_map(|call| (0..4).map(move |device| on(call, device))).collect()
}

/// A list that lacks nothing.
pub(crate) fn allocations(items: Vec<Item>) -> More {
    More::Allocations(Arc::new(allocations::Listing { items, ..Default::default() }))
}

/// A list that lacks something, and says so.
pub(crate) fn doubtful_allocations() -> More {
    let doubts = vec![
        "pid 4242: allocates faster than its list can be read; the list is not exact (12 events missed)"
            .into(),
        "pid 4242: 3 live allocations not listed: it had no room; totals are exact".into(),
    ];
    let listing = allocations::Listing {
        items: items(),
        doubts,
        inexact: 1,
        inexact_pids: vec![4242],
        unlisted: 3,
        ..Default::default()
    };
    More::Allocations(Arc::new(listing))
}

/// Events of all kinds, over and over.
pub(crate) fn events(number: u64) -> Vec<Seen> {
    (0..number).map(event).collect()
}

fn event(number: u64) -> Seen {
    let kernel = Class::KernelApplication as u8;
    let event = match number % 9 {
        0 => Event { size: 48 * MIB, address: 0x1000, ..Event::new(EventKind::Alloc, 0) },
        1 => Event { class: Class::Cb as u8, size: 12 * KIB, aux: 0x22, ..Event::new(EventKind::CbAlloc, 0) },
        2 => Event {
            class: kernel,
            size: 24 * KIB,
            cores: 8,
            aux: 0x22,
            ..Event::new(EventKind::KernelLoad, 0)
        },
        3 => Event {
            aux: 24 * KIB,
            address: 1,
            size: 6 * MIB,
            flags: flags::CACHED,
            ..Event::new(EventKind::KernelDispatch, 0)
        },
        4 => Event { size: 8 * MIB, ..Event::new(EventKind::Free, 0) },
        5 => Event { class: MarkerPhase::Begin as u8, ..Event::new(EventKind::Marker, 0) },
        6 => Event {
            class: Class::L1 as u8,
            size: 30 * MIB,
            address: 60 * MIB,
            aux: 12 * MIB,
            ..Event::new(EventKind::AllocFailed, 0)
        },
        7 => Event { class: Class::Cb as u8, size: 12 * KIB, aux: 0x22, ..Event::new(EventKind::CbFree, 0) },
        _ => Event { class: kernel, size: 24 * KIB, aux: 0x22, ..Event::new(EventKind::KernelUnload, 0) },
    };
    // What failed has no id; there stands what it needed in each bank.
    let failed = event.kind() == Some(EventKind::AllocFailed);
    let event = Event { id: if failed { tt_shm_reader::UNKNOWN } else { 0x100 + number }, ..event };
    let name = match number % 9 {
        0 => Some(WIDE.to_owned()),
        2 => Some("reader".to_owned()),
        4 => Some(HOSTILE.to_owned()),
        5 => Some("prefill".to_owned()),
        _ => None,
    };
    let monotonic_ns = number * 1_234_567;
    let time = Moment { monotonic_ns, realtime_ns: Some(1_790_000_000 * SECOND + monotonic_ns) };
    let event = Event { stamp: 1 + number, ..event };
    Seen {
        event,
        time,
        total: Some(3 * MIB),
        name: name.map(Into::into),
        process: "llama-3.1-8b".into(),
        pid: 4242,
        claimed: false,
        device: Some((number % 4) as u16),
    }
}

/// The events of one read.
pub(crate) fn news(read: u64, events: Vec<Seen>) -> More {
    More::Events(NewEvents { pass: 1, read, events, missed: 0, older: 0 })
}

fn kernel(id: u64, kernel_type: KernelType, binary: u64, cores: u32) -> Kernel {
    let core_type = if kernel_type == KernelType::Fabric { CoreType::Ethernet } else { CoreType::Tensix };
    let hash = (id != 3).then_some(0xfeed_0000 + binary);
    let bytes = binary * u64::from(cores);
    Kernel { id, kernel_type: Some(kernel_type), core_type, bytes, cores, hash, late: id == 1 }
}

fn program(id: u64, name: Option<&str>, kernels: Vec<Kernel>, dispatches: u64) -> Entry {
    let kernel_bytes = kernels.iter().map(|kernel| kernel.bytes).sum::<u64>();
    let mut kernel_types: Vec<KernelType> = kernels.iter().filter_map(|kernel| kernel.kernel_type).collect();
    kernel_types.dedup();
    let late = kernels.iter().any(|kernel| kernel.late);
    let device = |device| ProgramDevice {
        device,
        kernels: kernels.clone(),
        kernel_bytes,
        cb_bytes: 48 * KIB,
        cb_count: 4,
        dispatches: dispatches / 4,
        ..Default::default()
    };
    let program = Program {
        id,
        name: name.map(str::to_owned),
        devices: (0..4).map(device).collect(),
        kernel_bytes: 4 * kernel_bytes,
        cb_bytes: 4 * 48 * KIB,
        cb_count: 16,
        dispatches,
        cache_hits: dispatches - dispatches.min(4),
        cache_misses: dispatches.min(4),
        kernel_types,
        late,
        ..Default::default()
    };
    let last_dispatch_ns = (dispatches > 0).then_some(12_000_000 * id);
    let (identity, clock) = (1, tt_shm_reader::ClockKind::Monotonic);
    Entry {
        pid: 4242,
        claimed: false,
        identity,
        clock,
        program,
        devices: vec![0, 1, 2, 3],
        indices: (0..4).map(Some).collect(),
        last_dispatch_ns,
    }
}

/// Programs that dispatched `more` times more than at first.
pub(crate) fn programs(more: u64) -> programs::Listing {
    let mut listing = programs::Listing::default();
    listing.entries.extend([
        program(0x1, Some("fabric"), vec![kernel(1, KernelType::Fabric, 56 * KIB, 16)], 0),
        program(0x2, Some("dispatch"), vec![kernel(2, KernelType::Dispatch, 46 * KIB, 2)], 0),
        program(
            0x21,
            Some("matmul_multi_core_reuse_mcast"),
            vec![
                kernel(3, KernelType::Application, 3 * KIB, 64),
                kernel(4, KernelType::Application, 5 * KIB, 64),
                kernel(5, KernelType::Application, 2 * KIB, 64),
            ],
            1000 + more,
        ),
        program(0x22, Some(WIDE), vec![kernel(6, KernelType::Application, KIB, 8)], 400 + more / 100),
        program(0x23, Some(HOSTILE), vec![kernel(7, KernelType::Application, KIB, 8)], 12),
        program(0x24, None, Vec::new(), 1),
    ]);
    listing.sharing.extend((0..4).map(|device| Sharing {
        device,
        kernel_loaded_bytes: 1724 * KIB,
        kernel_unique_bytes: 1708 * KIB,
        kernel_shared_bytes: 8 * KIB,
        kernel_unhashed_bytes: 8 * KIB,
    }));
    listing
}

/// Programs, one of which needs more circular buffers on its last device.
pub(crate) fn uneven_programs() -> programs::Listing {
    let mut listing = programs(0);
    let mut uneven = program(0x30, Some("uneven"), vec![kernel(8, KernelType::Application, KIB, 8)], 400);
    uneven.program.devices[3].cb_bytes *= 2;
    uneven.program.devices[3].kernels[0].cores = 9;
    listing.entries.push(uneven);
    listing
}
