//! What a writing helper does, step by step.

use anyhow::{Context, Result};
use shm_layout::{Class, MarkerPhase};
use tt_shm_writer::{
    Alloc, Allocation, BufferType, CircularBuffer, CoreMemory, CoreType, Device, DeviceInfo, FailedAlloc,
    Kernel, KernelType, Launch, Mesh, NameId, ProgramBinaryStatus, Record, RecordError, Tracker,
};

/// Bytes of a kernel on each of its two cores, and of a circular buffer on each of four.
pub const KERNEL_BYTES: u64 = 3000;
/// See [`KERNEL_BYTES`].
pub const CB_BYTES: u64 = 512;

/// The chip that is registered first; the next ones follow.
pub const FIRST_CHIP: u64 = 11;
/// DRAM of each.
pub const DRAM_BYTES: u64 = 12 << 30;

/// One call of the writer's interface.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// Opens the tracker.
    Open,
    /// Registers a chip.
    Register(u64),
    /// Interns a name.
    Name(&'static str),
    /// Allocates a buffer of that many bytes on a device.
    Alloc(usize, BufferType, u64, u64),
    /// Allocates a buffer of that many bytes on every device, in one call.
    AllocOnAll(u64, u64),
    /// Allocates a buffer of that many bytes on a device; the live list has no room for it.
    Unlisted(usize, u64, u64),
    /// Allocates what is live.
    AllocTwice(usize, u64),
    /// Frees a buffer.
    Free(usize, u64),
    /// Frees it with a size that is wrong.
    FreeMisjudged(usize, u64),
    /// Frees what is not live.
    FreeNothing(usize, u64),
    /// Loads a kernel.
    Load(usize, KernelType, CoreType, u64),
    /// Unloads it.
    Unload(usize, u64),
    /// Allocates a circular buffer of a program.
    Cb(usize, u64, u64),
    /// Frees it.
    CbFree(usize, u64, u64),
    /// Loads an application kernel and dispatches its program.
    Launch(usize, u64),
    /// Dispatches a program again.
    Dispatch(usize, u64),
    /// Counts peaks anew.
    ResetPeaks(usize),
    /// Says something that changes no figure.
    Tell(usize),
    /// Gives a buffer the name that was interned last.
    Rename(usize, u64),
    /// Counts a comparison with the allocator that found a difference.
    SelfCheck,
    /// Waits to be told to go on.
    Pause,
    /// Allocates that many buffers of a byte; in flight, it has too many states to be known.
    Bulk(u64),
    /// Closes the tracker.
    Close,
    /// Exits without closing it.
    Exit,
}

/// The process that takes steps.
#[derive(Default)]
pub struct Stepper {
    tracker: Option<Tracker>,
    devices: Vec<Device>,
    name: NameId,
    live_capacity: Option<u64>,
}

impl Stepper {
    /// One whose segment has room for that many rows.
    pub fn new(live_capacity: Option<u64>) -> Stepper {
        Stepper { live_capacity, ..Stepper::default() }
    }

    /// Takes a step.
    pub fn take(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Open => self.open(),
            Step::Close => {
                self.tracker = None;
                Ok(())
            }
            Step::Exit => std::process::exit(0),
            Step::Pause => Ok(()),
            step => self.report(step),
        }
    }

    fn open(&mut self) -> Result<()> {
        // The smallest ring: it goes round, and checkpoints are due after 16 events.
        let builder = Tracker::builder().ring_slots(64);
        let builder = match self.live_capacity {
            Some(rows) => builder.live_capacity(rows),
            None => builder,
        };
        self.tracker = Some(builder.open()?);
        Ok(())
    }

    fn report(&mut self, step: Step) -> Result<()> {
        let tracker = self.tracker.as_ref().context("the tracker is not open")?;
        let on = |device: usize| self.devices[device];
        match step {
            Step::Register(chip_id) => {
                let info = DeviceInfo {
                    chip_id,
                    logical_id: Some(self.devices.len() as u32),
                    dram_bytes: Some(DRAM_BYTES),
                    l1: Some(CoreMemory { cores: 64, bytes_per_core: 1464 << 10 }),
                    ..Default::default()
                };
                self.devices.push(tracker.register_device(&info)?);
            }
            Step::Name(name) => self.name = tracker.intern(name)?,
            Step::Alloc(device, buffer_type, id, size) => {
                tracker.alloc(on(device), Alloc::new(buffer_type, id, size).name(self.name))?;
            }
            Step::AllocOnAll(id, size) => {
                let mesh = Mesh::new(self.devices.clone());
                tracker.alloc(&mesh, Alloc::new(BufferType::L1, id, size))?;
            }
            Step::Unlisted(device, id, size) => {
                tracker.alloc(on(device), Alloc::new(BufferType::Dram, id, size))?;
            }
            Step::AllocTwice(device, id) => {
                refused(tracker.alloc(on(device), Alloc::new(BufferType::Dram, id, 1)))?;
            }
            Step::Free(device, id) => tracker.free(on(device), id)?,
            Step::FreeMisjudged(device, id) => refused(tracker.free_sized(on(device), id, u64::MAX))?,
            Step::FreeNothing(device, id) => refused(tracker.free(on(device), id))?,
            Step::Load(device, kernel_type, core_type, id) => {
                tracker.kernel_load(on(device), Kernel::new(id, kernel_type, core_type, KERNEL_BYTES, 2))?;
            }
            Step::Unload(device, id) => tracker.kernel_unload(on(device), id, None)?,
            Step::Cb(device, program, id) => {
                tracker.cb_alloc(on(device), CircularBuffer::new(program, id, CB_BYTES, 4))?;
            }
            Step::CbFree(device, program, id) => tracker.cb_free(on(device), program, id, None)?,
            Step::Launch(device, id) => {
                let kernel = Kernel::new(id, KernelType::Application, CoreType::Tensix, KERNEL_BYTES, 2);
                tracker.launch(on(device), Launch::new(id, &[kernel], ProgramBinaryStatus::NotSent))?;
            }
            Step::Dispatch(device, program) => tracker.dispatch(on(device), program)?,
            Step::ResetPeaks(device) => tracker.reset_peaks(on(device))?,
            Step::Tell(device) => {
                tracker.device_open(on(device))?;
                tracker.alloc_failed(on(device), FailedAlloc::new(Class::Dram, 9).free(8, 7))?;
                tracker.kernel_ring(on(device), 3, 2, 1)?;
                tracker.marker(MarkerPhase::Begin, 1, self.name)?;
            }
            Step::Rename(device, id) => {
                tracker.name(on(device), Allocation::Buffer(id), self.name, NameId::NONE)?;
            }
            Step::SelfCheck => tracker.self_checks(1, 1)?,
            Step::Bulk(count) => {
                for id in 0..count {
                    tracker.alloc(on(0), Alloc::new(BufferType::Dram, BULK | id, 1))?;
                }
            }
            Step::Open | Step::Close | Step::Exit | Step::Pause => {}
        }
        Ok(())
    }
}

/// Ids of what is allocated in bulk.
pub const BULK: u64 = 1 << 32;

/// A misuse is noticed, and is an error.
fn refused(result: Result<(), RecordError>) -> Result<()> {
    anyhow::ensure!(result.is_err(), "a misuse was not noticed");
    Ok(())
}

/// A life of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// Every kind of event, until the ring has gone round; closed at the end.
    Life,
    /// The live list grows.
    Growth,
    /// The live list cannot grow.
    Cramped,
    /// Ends by `exit`.
    Exit,
    /// Something that an aggregator can follow, in two parts.
    Followed,
}

impl Scenario {
    /// All of them.
    pub const ALL: [Scenario; 5] =
        [Scenario::Life, Scenario::Growth, Scenario::Cramped, Scenario::Exit, Scenario::Followed];

    /// Its name on a command line.
    pub fn name(self) -> String {
        format!("{self:?}")
    }

    /// Rows of its live list, if that is not the default.
    pub fn live_capacity(self) -> Option<u64> {
        (self == Scenario::Cramped).then_some(3)
    }

    /// What it does.
    pub fn steps(self) -> Vec<Step> {
        let open = [Step::Open, Step::Register(FIRST_CHIP)];
        let steps = match self {
            Scenario::Life => life(),
            Scenario::Growth => vec![Step::Bulk(4095), alloc(1), alloc(2), alloc(3), Step::Free(0, 2)],
            Scenario::Cramped => cramped(),
            Scenario::Exit => vec![alloc(1)],
            Scenario::Followed => followed(),
        };
        let end = if self == Scenario::Exit { Step::Exit } else { Step::Close };
        open.into_iter().chain(steps).chain([end]).collect()
    }
}

fn alloc(id: u64) -> Step {
    Step::Alloc(0, BufferType::Dram, id, 1000 + id)
}

fn life() -> Vec<Step> {
    use BufferType::*;
    let mut steps = vec![
        Step::Name("weights of a layer"),
        Step::Alloc(0, Dram, 1, 4096),
        Step::Alloc(0, L1, 2, 2048),
        Step::Register(FIRST_CHIP + 1),
        Step::Alloc(1, L1Small, 1, 64),
        Step::Alloc(1, Trace, 2, 10_000),
        Step::Alloc(1, SystemMemory, 3, 77),
        Step::Load(0, KernelType::Fabric, CoreType::Ethernet, 21),
        Step::Load(0, KernelType::Dispatch, CoreType::Tensix, 22),
        Step::Name("op"),
        Step::Rename(0, 1),
        Step::SelfCheck,
        Step::Cb(0, 30, 1),
        Step::Cb(0, 30, 2),
        Step::Launch(0, 30),
        Step::Dispatch(0, 30),
        Step::Dispatch(0, 30),
        Step::Launch(0, 30),
        Step::Load(1, KernelType::Application, CoreType::Ethernet, 40),
        Step::Dispatch(1, 40),
        Step::AllocTwice(0, 1),
        Step::FreeNothing(0, 99),
        Step::FreeMisjudged(0, 2),
        Step::AllocOnAll(50, 5000),
        Step::Tell(1),
        Step::Free(0, 1),
        Step::ResetPeaks(0),
        Step::CbFree(0, 30, 1),
    ];
    // Beyond the 64 slots, so that cells with an older event are overwritten.
    for id in 100..120 {
        steps.extend([Step::Alloc(0, Dram, id, id), Step::Alloc(1, L1, id, 2 * id), Step::Free(0, id)]);
    }
    steps.extend([Step::Name("later"), Step::Rename(1, 119), Step::Rename(1, 118), Step::Rename(1, 119)]);
    steps.extend([
        Step::Dispatch(0, 30),
        Step::CbFree(0, 30, 2),
        Step::Unload(0, 30),
        Step::Unload(1, 40),
        Step::Unload(0, 21),
        Step::Alloc(0, Dram, 200, 123),
    ]);
    steps
}

fn cramped() -> Vec<Step> {
    vec![
        alloc(1),
        alloc(2),
        alloc(3),
        Step::Unlisted(0, 4, 400),
        Step::Unlisted(0, 5, 500),
        Step::Free(0, 4),
        Step::Free(0, 1),
        alloc(6),
    ]
}

fn followed() -> Vec<Step> {
    use BufferType::*;
    vec![
        Step::Register(FIRST_CHIP + 1),
        Step::Alloc(0, Dram, 1, 1_000_000),
        Step::Alloc(1, L1, 2, 2000),
        Step::Launch(0, 30),
        Step::Pause,
        Step::Alloc(0, Dram, 3, 777),
        Step::Alloc(1, Dram, 4, 888),
        Step::Alloc(1, L1, 5, 999),
        Step::Free(0, 1),
        // An allocation that fails, among others: the table gets a row for it.
        Step::Tell(1),
        Step::Dispatch(0, 30),
        Step::Launch(1, 31),
    ]
}
