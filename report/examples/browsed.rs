//! A workload of three processes and the truth of its record, for `.ci/report`, which compares what a browser shows with it:
//! `browsed run` works, `browsed truth FILE` folds a record without the code of the report and writes JSON.

use std::collections::BTreeMap;
use std::error::Error;
use std::process::{Child, Command};
use std::time::Duration;

use serde_json::json;
use shm_layout::{Class, Counters, EventKind};
use tt_shm_writer::{
    Alloc, BufferType, CircularBuffer, CoreMemory, CoreType, Device, DeviceInfo, FailedAlloc, Kernel,
    KernelType, MarkerPhase, Pool, Pools, Record as _, Tracker,
};

type Done<T = ()> = Result<T, Box<dyn Error>>;

const HOSTILE: &str = "</script><img src=x onerror=hacked=1>";
const STEPS: u64 = 240;
/// The step at which most is held, before any process ends.
const LARGEST: u64 = 90;
const PAUSE: Duration = Duration::from_millis(8);

fn main() -> Done {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["run"] => run(),
        ["work", number] => work(number.parse()?),
        ["truth", file] => truth(file),
        _ => Err("expected run, or truth FILE".into()),
    }
}

/// Starts the workers, and kills the last one when the others have closed their segments.
fn run() -> Done {
    let this = std::env::current_exe()?;
    let start = |number: u32| Command::new(&this).args(["work", &number.to_string()]).spawn();
    let mut workers = (0..3).map(start).collect::<Result<Vec<Child>, _>>()?;
    let mut killed = workers.pop().ok_or("three were started")?;
    let ends = workers.iter_mut().map(Child::wait).collect::<Result<Vec<_>, _>>();
    std::thread::sleep(Duration::from_millis(200));
    killed.kill()?;
    killed.wait()?;
    if ends?.iter().all(|status| status.success()) { Ok(()) } else { Err("a worker failed".into()) }
}

fn device(number: u32) -> DeviceInfo {
    let pool = |banks, bank_bytes| Some(Pool { banks, bank_bytes, alignment: 0 });
    DeviceInfo {
        chip_id: 0x50 + u64::from(number),
        logical_id: Some(number),
        board: Some("n300".to_owned()),
        dram_bytes: Some(12 << 30),
        dram_channels: Some(12),
        l1: Some(CoreMemory { cores: 64, bytes_per_core: 1464 << 10 }),
        pools: Pools { dram: pool(12, 1 << 30), l1: pool(64, 1300 << 10), ..Pools::default() },
        ..DeviceInfo::default()
    }
}

/// One worker: weights, steps with activations and a program, some of which are forgotten.
fn work(number: u32) -> Done {
    let name = ["trainer", "<b>server</b>", "victim"][number as usize];
    let tracker = Tracker::builder().enabled(true).process_name(name).open()?;
    let devices: Vec<Device> =
        (0..=number % 2).map(|id| tracker.register_device(&device(id))).collect::<Result<_, _>>()?;
    let first = devices[0];
    for layer in 0..24 {
        let weights = tracker.intern(format!("layers.{layer}.weight"))?;
        let alloc = Alloc::new(BufferType::Dram, 1000 + layer, (layer + 1) << 18).name(weights);
        tracker.alloc(devices[layer as usize % devices.len()], alloc.address(layer << 20))?;
        std::thread::sleep(PAUSE / 4);
    }
    let matmul = tracker.intern("matmul")?;
    tracker.cb_alloc(first, CircularBuffer::new(7, 0, 64 << 10, 64).address(100 << 10).name(matmul))?;
    let kernel = Kernel::new(9, KernelType::Application, CoreType::Tensix, 4096, 64).program(7).name(matmul);
    tracker.kernel_load(first, kernel)?;
    (0..STEPS).try_for_each(|step| work_step(&tracker, first, number, step))?;
    if number == 2 {
        std::thread::sleep(Duration::from_secs(60));
    }
    tracker.close();
    Ok(())
}

fn work_step(tracker: &Tracker, device: Device, number: u32, step: u64) -> Done {
    let (marker, activation) = (tracker.intern("step")?, tracker.intern("activation")?);
    tracker.marker(MarkerPhase::Begin, step, marker)?;
    let (large, small) =
        if step == LARGEST { (1 << 30, 8 << 20) } else { ((step % 32 + 1) << 20, (step % 16 + 1) << 16) };
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, large).name(activation).address(64 << 20))?;
    let l1 = Alloc::new(BufferType::L1, 2, small).name(activation);
    tracker.alloc(device, l1.address(400 << 10))?;
    std::thread::sleep(PAUSE / 2);
    tracker.dispatch(device, 7)?;
    if step.is_multiple_of(12) {
        let forgotten = tracker.intern(if number == 0 { HOSTILE } else { "forgotten" })?;
        let alloc = Alloc::new(BufferType::L1, 5000 + step, 2048).name(forgotten);
        tracker.alloc(device, alloc.address((600 << 10) + 4096 * step))?;
    }
    if number == 1 && step == STEPS / 2 {
        let failed = FailedAlloc::new(Class::L1, 900 << 20).free_per_bank(500 << 10, 300 << 10);
        tracker.alloc_failed(device, failed.needed_per_bank(400 << 10, 64))?;
    }
    tracker.free(device, 2)?;
    tracker.free(device, 1)?;
    tracker.marker(MarkerPhase::End, step, marker)?;
    std::thread::sleep(PAUSE / 2);
    Ok(())
}

/// What holds memory: chip, pid, class, name.
type Holder = (u64, u64, u8, String);

/// What is live, in the plainest way.
#[derive(Default)]
struct Fold {
    /// By process, device, class and id.
    live: BTreeMap<(u32, u8, u8, u64), (Holder, u64)>,
    /// Circular buffers count while a program is resident, which only counters know.
    counters: BTreeMap<(u32, u8), (u64, Counters)>,
}

impl Fold {
    fn used(&self, chip: u64) -> [u64; 2] {
        let held = self.live.values().filter(|((of, _, class, _), _)| *of == chip && is_dram(*class));
        let l1 = self.counters.values().filter(|(of, _)| *of == chip).map(|(_, counters)| counters.l1_used());
        [held.map(|(_, bytes)| bytes).sum(), l1.sum()]
    }

    fn by_name(&self) -> BTreeMap<Holder, (u64, u64)> {
        let mut groups: BTreeMap<Holder, (u64, u64)> = BTreeMap::new();
        for (holder, bytes) in self.live.values() {
            let group = groups.entry(holder.clone()).or_default();
            *group = (group.0 + bytes, group.1 + 1);
        }
        groups
    }
}

fn is_dram(class: u8) -> bool {
    class == Class::Dram as u8 || class == Class::Trace as u8
}

/// The most that a chip held of DRAM or L1, and of what it was made.
#[derive(Default)]
struct Peak {
    bytes: u64,
    ns: u64,
    groups: BTreeMap<Holder, (u64, u64)>,
}

fn truth(file: &str) -> Done {
    let record = tt_shm_record::Record::open(file)?;
    let (mut fold, mut peaks) = (Fold::default(), BTreeMap::<(u64, usize), Peak>::new());
    let (mut failures, mut all) = (Vec::new(), 0_u64);
    for event in record.events() {
        let event = event?;
        let (process, event, ns) = (event.process, event.event, event.ns);
        let known = record.process(process).ok_or("an event of nobody")?;
        all += 1;
        let Some(Some(entry)) = known.devices.get(usize::from(event.device)) else { continue };
        let chip = entry.chip_id;
        let name = known.name(event.name).map(ToString::to_string).unwrap_or_default();
        let id = (process, event.device, event.class, event.id);
        match event.kind() {
            Some(EventKind::Alloc) => {
                let holder = (chip, known.entry.header.pid, event.class, name);
                fold.live.insert(id, (holder, event.size));
            }
            Some(EventKind::Free) => drop(fold.live.remove(&id)),
            Some(EventKind::AllocFailed) => failures.push(ns - record.span_ns().0),
            _ => {}
        }
        let counters = fold.counters.entry((process, event.device)).or_insert((chip, Counters::ZERO));
        counters.1.apply(&event).map_err(|_| "an event that cannot have happened")?;
        for (memory, bytes) in fold.used(chip).into_iter().enumerate() {
            let peak = peaks.entry((chip, memory)).or_default();
            if bytes > peak.bytes {
                *peak = Peak { bytes, ns: ns - record.span_ns().0, groups: fold.by_name() };
            }
        }
    }
    let rows = |groups: &BTreeMap<Holder, (u64, u64)>| -> Vec<_> {
        let row = |((chip, pid, class, name), (bytes, count)): (&Holder, &(u64, u64))| {
            let class = Class::from_code(*class).map_or("", Class::name);
            json!({"device": chip - 0x50, "pid": pid, "class": class, "name": name, "bytes": bytes, "count": count})
        };
        groups.iter().map(row).collect()
    };
    let peaks = peaks.iter().map(|((chip, memory), peak)| {
        json!({"device": chip - 0x50, "memory": memory, "bytes": peak.bytes, "ns": peak.ns, "groups": rows(&peak.groups)})
    });
    let truth = json!({"hostile": HOSTILE, "events": all, "lost": record.totals().lost, "failures": failures,
        "markers": record.markers().len(), "peaks": peaks.collect::<Vec<_>>(), "left": rows(&fold.by_name())});
    println!("{truth}");
    Ok(())
}
