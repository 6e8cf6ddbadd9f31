//! The calls of one thread of a writer. They follow from the seed alone, so that they can be repeated elsewhere.

use crate::model::{Name, Thing};
use fastrand::Rng;
use shm_layout::{Class, CoreType, KernelType};
use tt_shm_writer::{
    Alloc, BufferType, CircularBuffer, Device, Dispatch, Kernel, Launch, Mesh, ProgramBinaryStatus, Record,
    RecordError,
};

/// Live buffers per device around which a thread settles.
const LIVE: usize = 60;
/// Programs of a thread.
const PROGRAMS: u64 = 5;
/// Circular buffers of a program.
const CBS: u64 = 2;
/// Fabric and dispatch kernels of a thread, at most.
const SYSTEM_KERNELS: usize = 8;
/// Lanes that programs are dispatched in: fewer than programs, so that they take each other's place.
const LANES: u64 = 3;

const BUFFER_TYPES: [BufferType; 5] =
    [BufferType::Dram, BufferType::L1, BufferType::L1Small, BufferType::Trace, BufferType::SystemMemory];

/// Which of a thread's two devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// All threads of the process use it, for buffers only: its peaks depend on their order, which nobody knows.
    Shared,
    /// No other thread uses it, so that even its peaks are known exactly.
    Own,
}

impl Place {
    /// Both, in the order in which a call on both is recorded.
    pub const BOTH: [Place; 2] = [Place::Shared, Place::Own];

    /// The number of the device in the process.
    pub fn device(self, thread: usize) -> usize {
        match self {
            Place::Shared => 0,
            Place::Own => thread + 1,
        }
    }
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    /// A buffer on one device.
    Alloc(Place, BufferSpec),
    /// Its end.
    Free(Place, u64),
    /// A buffer on both devices at once.
    MeshAlloc(BufferSpec),
    /// A circular buffer: program, id, bytes per core, cores.
    Cb(u64, u64, u64, u32),
    /// The first launch of a program, in a lane.
    Launch(KernelSpec, u8),
    /// A dispatch of what is loaded, in a lane.
    Dispatch(u64, u8),
    /// A kernel that is loaded already: a cached dispatch.
    LoadAgain(KernelSpec),
    /// The end of a program.
    End(u64),
    /// A fabric or dispatch kernel.
    Load(KernelSpec),
    /// Its end.
    Unload(u64),
    /// Peaks are counted anew.
    ResetPeaks,
}

/// A buffer.
#[derive(Clone, Copy, Debug)]
pub struct BufferSpec {
    kind: BufferType,
    id: u64,
    requested: u64,
    /// `None`: the host does not tell.
    occupied: Option<u64>,
}

impl BufferSpec {
    fn alloc(self) -> Alloc {
        let alloc = Alloc::new(self.kind, self.id, self.requested);
        self.occupied.map_or(alloc, |bytes| alloc.occupied(bytes))
    }

    fn thing(self) -> Thing {
        Thing::new(self.kind.class(), self.occupied.unwrap_or(self.requested)).asked_for(self.requested)
    }
}

/// A kernel; its program has the same id.
#[derive(Clone, Copy, Debug)]
pub struct KernelSpec {
    id: u64,
    kernel_type: KernelType,
    core_type: CoreType,
    binary: u64,
    cores: u32,
}

impl KernelSpec {
    fn kernel(self) -> Kernel {
        Kernel::new(self.id, self.kernel_type, self.core_type, self.binary, self.cores)
    }

    fn thing(self) -> Thing {
        let ethernet = self.core_type == CoreType::Ethernet;
        Thing::new(self.kernel_type.class(), self.binary * u64::from(self.cores)).on_ethernet(ethernet)
    }
}

/// What one event does: a call may be several, and a kill may come between them.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// Something begins to live.
    Add(Name, Thing),
    /// Something ends.
    Remove(Name),
    /// A program is dispatched; whether it was cached, and the lane.
    Dispatch(u64, bool, u8),
    /// A program is forgotten, with the count of its dispatches.
    Forget(u64),
    /// Peaks are counted anew.
    ResetPeaks,
}

impl Call {
    /// Reports it.
    pub fn report(self, tracker: &impl Record, shared: Device, own: Device) -> Result<(), RecordError> {
        let on = |place| if place == Place::Own { own } else { shared };
        match self {
            Call::Alloc(place, spec) => tracker.alloc(on(place), spec.alloc()),
            Call::Free(place, id) => tracker.free(on(place), id),
            Call::MeshAlloc(spec) => tracker.alloc(Mesh::new(Place::BOTH.map(on)), spec.alloc()),
            Call::Cb(program, id, size, cores) => {
                tracker.cb_alloc(own, CircularBuffer::new(program, id, size, cores))
            }
            Call::Launch(spec, lane) => {
                let kernels = [spec.kernel()];
                tracker.launch(own, Launch::new(spec.id, &kernels, ProgramBinaryStatus::NotSent).lane(lane))
            }
            Call::Dispatch(program, lane) => tracker.dispatch(own, Dispatch::new(program).lane(lane)),
            Call::LoadAgain(spec) | Call::Load(spec) => tracker.kernel_load(own, spec.kernel()).map(drop),
            Call::End(program) => tracker.program_end(own, program),
            Call::Unload(id) => tracker.kernel_unload(own, id, None),
            Call::ResetPeaks => tracker.reset_peaks(own),
        }
    }

    /// What it does, event by event, in the documented order.
    pub fn steps(self) -> Vec<(Place, Step)> {
        let buffer = |spec: BufferSpec| Step::Add(Name::Buffer(spec.id), spec.thing());
        let own = |step| vec![(Place::Own, step)];
        match self {
            Call::Alloc(place, spec) => vec![(place, buffer(spec))],
            Call::Free(place, id) => vec![(place, Step::Remove(Name::Buffer(id)))],
            Call::MeshAlloc(spec) => Place::BOTH.map(|place| (place, buffer(spec))).to_vec(),
            Call::Cb(program, id, size, cores) => {
                let thing = Thing::new(Class::Cb, size * u64::from(cores));
                own(Step::Add(Name::Cb(program, id), thing))
            }
            Call::Launch(spec, lane) => {
                let steps =
                    [Step::Add(Name::Kernel(spec.id), spec.thing()), Step::Dispatch(spec.id, false, lane)];
                steps.map(|step| (Place::Own, step)).to_vec()
            }
            Call::Dispatch(program, lane) => own(Step::Dispatch(program, true, lane)),
            Call::LoadAgain(spec) => own(Step::Dispatch(spec.id, true, 0)),
            Call::Load(spec) => own(Step::Add(Name::Kernel(spec.id), spec.thing())),
            Call::End(program) => {
                let cbs = (0..CBS).map(|id| Step::Remove(Name::Cb(program, id)));
                let rest = [Step::Remove(Name::Kernel(program)), Step::Forget(program)];
                cbs.chain(rest).map(|step| (Place::Own, step)).collect()
            }
            Call::Unload(id) => own(Step::Remove(Name::Kernel(id))),
            Call::ResetPeaks => own(Step::ResetPeaks),
        }
    }
}

/// How far a program is.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// So many of its circular buffers are there.
    Buffers(u64),
    Launched(KernelSpec),
}

/// One thread's calls, one after the other.
#[derive(Clone, Debug)]
pub struct Mix {
    random: Rng,
    next_id: u64,
    first_program: u64,
    shared: Vec<u64>,
    own: Vec<u64>,
    programs: Vec<Stage>,
    system_kernels: Vec<u64>,
}

impl Mix {
    /// The calls of thread number `thread`.
    pub fn new(seed: u64, thread: usize) -> Mix {
        let thread = thread as u64;
        Mix {
            random: Rng::with_seed(seed ^ (thread + 1) << 56),
            // Ids and programs of threads do not meet.
            next_id: thread << 48 | 1,
            first_program: thread << 48 | 1 << 47,
            shared: Vec::new(),
            own: Vec::new(),
            programs: vec![Stage::Buffers(0); PROGRAMS as usize],
            system_kernels: Vec::new(),
        }
    }

    /// The next call.
    pub fn next_call(&mut self) -> Call {
        match self.random.u64(..20) {
            0..6 => self.buffer(Place::Shared),
            6..12 => self.buffer(Place::Own),
            12..14 => self.mesh(),
            14..18 => self.program(),
            18 => self.system_kernel(),
            _ if self.random.u64(..50) == 0 => Call::ResetPeaks,
            _ => self.buffer(Place::Own),
        }
    }

    fn new_buffer(&mut self) -> BufferSpec {
        let kind = BUFFER_TYPES[self.random.usize(..5)];
        let id = self.next_id;
        self.next_id += 1;
        let requested = self.random.u64(..1 << 20);
        let told = self.random.u64(..3) > 0;
        let occupied = told.then(|| requested + self.random.u64(..1 << 14));
        BufferSpec { kind, id, requested, occupied }
    }

    fn live(&mut self, place: Place) -> &mut Vec<u64> {
        match place {
            Place::Shared => &mut self.shared,
            Place::Own => &mut self.own,
        }
    }

    fn buffer(&mut self, place: Place) -> Call {
        let live = self.live(place).len();
        // More often a new one than not, until there are enough.
        if live == 0 || (live < 2 * LIVE && self.random.u64(..2 * LIVE as u64) >= live as u64) {
            let spec = self.new_buffer();
            self.live(place).push(spec.id);
            return Call::Alloc(place, spec);
        }
        let victim = self.random.usize(..live);
        Call::Free(place, self.live(place).swap_remove(victim))
    }

    fn mesh(&mut self) -> Call {
        if self.own.len() >= 2 * LIVE || self.shared.len() >= 2 * LIVE {
            return self.buffer(Place::Own);
        }
        let spec = self.new_buffer();
        Place::BOTH.into_iter().for_each(|place| self.live(place).push(spec.id));
        Call::MeshAlloc(spec)
    }

    fn program(&mut self) -> Call {
        let number = self.random.u64(..PROGRAMS);
        let id = self.first_program + number;
        match self.programs[number as usize] {
            Stage::Buffers(there) if there < CBS => {
                self.programs[number as usize] = Stage::Buffers(there + 1);
                Call::Cb(id, there, self.random.u64(..4096), 1 + self.random.u32(..64))
            }
            Stage::Buffers(_) => {
                let spec = self.kernel(id, KernelType::Application);
                self.programs[number as usize] = Stage::Launched(spec);
                Call::Launch(spec, self.random.u64(..LANES) as u8)
            }
            Stage::Launched(spec) => match self.random.u64(..10) {
                0 => {
                    self.programs[number as usize] = Stage::Buffers(0);
                    Call::End(id)
                }
                1 | 2 => Call::LoadAgain(spec),
                _ => Call::Dispatch(id, self.random.u64(..LANES) as u8),
            },
        }
    }

    fn kernel(&mut self, id: u64, kernel_type: KernelType) -> KernelSpec {
        let core_type = if self.random.u64(..4) == 0 { CoreType::Ethernet } else { CoreType::Tensix };
        let (binary, cores) = (self.random.u64(..100_000), 1 + self.random.u32(..64));
        KernelSpec { id, kernel_type, core_type, binary, cores }
    }

    fn system_kernel(&mut self) -> Call {
        let live = self.system_kernels.len();
        if self.random.u64(..SYSTEM_KERNELS as u64) < live as u64 {
            let victim = self.random.usize(..live);
            return Call::Unload(self.system_kernels.swap_remove(victim));
        }
        let kinds = [KernelType::Fabric, KernelType::Dispatch];
        let kind = kinds[self.random.usize(..2)];
        let spec = self.kernel(self.next_id, kind);
        self.next_id += 1;
        self.system_kernels.push(spec.id);
        Call::Load(spec)
    }
}
