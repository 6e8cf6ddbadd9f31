//! The programs of this process: what each consists of, and where it was launched.
//!
//! A program is reported with its first launch: its circular buffers take room in L1 from then on, and only then it is
//! known on which chips.

use tt_shm_os::{ForkGuard, ForkMutex};
use tt_shm_writer::{
    CircularBuffer, Class, CoreType, Dispatch, FailedAlloc, Kernel, KernelType, Launch, Mesh, NameId,
    ProgramBinaryStatus, Record,
};

use crate::accounts::Accounts;
use crate::addresses::Addresses;
use crate::doing;
use crate::metal::Device;
use crate::metal::programs::{self as metal, Part, Queue, Workload};
use crate::rectangles::{self, Rectangle};
use crate::shield::PerProcess;
use crate::{books, ring, segment};

/// A region of L1 that a program has on a number of cores.
#[derive(Clone)]
pub(crate) struct Region {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) cores: u32,
    /// It lies in a buffer, which is reported by itself.
    pub(crate) in_a_buffer: bool,
    /// tt-metal names the same region for every chip; `None` if it names it once for each rectangle of its cores.
    pub(crate) device: Option<Device>,
    /// Its cores; none if not known.
    pub(crate) rectangles: Vec<Rectangle>,
}

/// The kinds of regions, in the order in which they are numbered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Regions {
    CircularBuffers,
    DataflowBuffers,
    Scratchpads,
}

impl Regions {
    const ALL: [Regions; 3] = [Regions::CircularBuffers, Regions::DataflowBuffers, Regions::Scratchpads];

    /// What such a region is called; circular buffers are what the class is named after.
    fn name(self) -> Option<&'static str> {
        match self {
            Regions::CircularBuffers => None,
            Regions::DataflowBuffers => Some("dataflow buffer"),
            Regions::Scratchpads => Some("scratchpad"),
        }
    }
}

/// A kernel of a program, as it was compiled.
struct Compiled {
    full_name: String,
    core_type: CoreType,
    bytes: u64,
    cores: u32,
}

#[derive(Default)]
struct Program {
    id: u64,
    regions: [Vec<Region>; 3],
    kernels: Vec<Compiled>,
    /// The sub-device that runs it, for each division into sub-devices.
    lanes: Vec<(u64, u8)>,
    /// Where it was launched, with the regions that were reported there.
    launched: Vec<Launched>,
    /// Changes with the regions.
    version: u32,
}

/// A program on the chips of an allocator.
struct Launched {
    accounts: &'static Accounts,
    chips: Mesh,
    version: u32,
    regions: u64,
}

/// A program of a workload, and the chips that run it, once that is known.
struct Member {
    program: metal::Program,
    part: Part,
    chips: Option<(Device, &'static Accounts, Mesh)>,
}

#[derive(Default)]
struct Registry {
    programs: Addresses<metal::Program, Program>,
    workloads: Addresses<Workload, Vec<Member>>,
    queues: Vec<(Device, Queue, u8)>,
}

static REGISTRY: PerProcess<ForkMutex<Registry>> = PerProcess::new();

/// The registry of this process; `None` if the kernel has no lock for it.
fn registry() -> Option<ForkGuard<'static, Registry>> {
    REGISTRY.lock()
}

/// A program was made.
pub(crate) fn created(program: metal::Program) {
    let (Some(id), Some(mut registry)) = (program.id(), registry()) else { return };
    registry.programs.insert(program, Program { id, ..Program::default() });
}

/// A program is about to be destroyed.
pub(crate) fn destroyed(program: metal::Program) {
    let Some(gone) = registry().and_then(|mut registry| registry.programs.remove(&program)) else { return };
    for launched in gone.launched {
        let _ = launched.accounts.tracker().program_end(&launched.chips, gone.id);
    }
}

/// All regions of a kind were given to a program, anew.
pub(crate) fn placed(program: metal::Program, kind: Regions, mut regions: Vec<Region>) {
    if regions.is_empty() {
        return;
    }
    // Named once for each chip, of which the first is enough.
    let first = regions[0].device;
    regions.retain(|region| region.device == first);
    let regions = joined(regions);
    let Some(mut registry) = registry() else { return };
    if let Some(program) = registry.programs.get_mut(&program) {
        program.regions[kind as usize] = regions;
        program.version += 1;
    }
}

/// Regions that are named rectangle by rectangle become one for each address, with all its cores.
fn joined(regions: Vec<Region>) -> Vec<Region> {
    let mut joined: Vec<Region> = Vec::new();
    for region in regions {
        let same = |other: &&mut Region| {
            (region.device, other.device) == (None, None)
                && (other.address, other.bytes) == (region.address, region.bytes)
                && !region.rectangles.iter().any(|rectangle| other.rectangles.contains(rectangle))
        };
        match joined.iter_mut().find(same) {
            Some(other) => other.rectangles.extend(region.rectangles),
            None => joined.push(region),
        }
    }
    let count = |region: Region| match region.device {
        Some(_) => region,
        None => Region { cores: rectangles::cores_in(&region.rectangles), ..region },
    };
    joined.into_iter().map(count).collect()
}

/// A kernel of a program is complete.
pub(crate) fn compiled(program: metal::Program, device: Device, kernel: metal::Kernel, binaries: u32) {
    let (Some(full_name), Some(cores), Some(bytes)) =
        (kernel.full_name(), kernel.cores(), kernel.bytes(device, binaries))
    else {
        return segment::partial();
    };
    let compiled = Compiled { full_name, core_type: kernel.core_type(), bytes, cores };
    let Some(mut registry) = registry() else { return };
    if let Some(program) = registry.programs.get_mut(&program) {
        program.kernels.push(compiled);
    }
}

/// A program was added to a workload.
pub(crate) fn added(workload: Workload, part: Option<Part>, program: metal::Program) {
    let Some(mut registry) = registry() else { return segment::partial() };
    // A program that was not seen before is not one: then the handle is made otherwise than is thought here.
    match part.filter(|_| registry.programs.contains_key(&program)) {
        Some(part) => {
            registry.workloads.entry(workload).or_default().push(Member { program, part, chips: None });
        }
        None => segment::partial(),
    }
}

/// A workload is about to be destroyed.
pub(crate) fn workload_gone(workload: Workload) {
    if let Some(mut registry) = registry() {
        registry.workloads.remove(&workload);
    }
}

/// Sub-devices that were determined for a program, on a division of a device: that of the first candidate that is known to
/// be a program.
pub(crate) struct RunsOn {
    candidates: [(metal::Program, Device); 2],
    sub_device: u8,
}

/// The sub-devices that run a program were determined: the first of them, and whether it is the only one.
pub(crate) fn runs_on(candidates: [(metal::Program, Device); 2], sub_devices: Option<(u8, bool)>) {
    let Some((sub_device, true)) = sub_devices else { return };
    // In a launch the programs are looked at once, at its end.
    if let Some(found) = doing::runs_on(RunsOn { candidates, sub_device })
        && let Some(mut registry) = registry()
    {
        registry.runs_on(&found);
    }
}

/// A workload was launched on a mesh, by a command queue.
pub(crate) fn launched(queue: Queue, launched: doing::Launched) {
    let doing::Launched { launch, operation, freed, news, runs_on } = launched;
    if let Some((ring, count)) = freed {
        ring::free_now(ring, count);
    }
    match launch {
        Some(launch) if count_launch(launch, queue, operation, &runs_on).is_some() => (),
        // Launched in a way that is not known, or from before reports began: what it takes of L1 is not known.
        _ => segment::partial(),
    }
    doing::runs_on_done(runs_on);
    if let Some((mesh, news)) = news
        && let Some(accounts) = books::accounts_of(mesh)
    {
        news.report(accounts);
    }
}

/// Reports a launch; `None` if not all of it is known.
fn count_launch(launch: doing::Launch, queue: Queue, name: NameId, runs_on: &[RunsOn]) -> Option<()> {
    let doing::Launch { workload, mesh } = launch;
    let accounts = books::accounts_of(mesh)?;
    let division = mesh.sub_devices();
    let mut registry = registry()?;
    runs_on.iter().for_each(|found| registry.runs_on(found));
    let queue = registry.queue_number(mesh, queue);
    let Registry { programs, workloads, .. } = &mut *registry;
    let mut is_known = Some(());
    for member in workloads.get_mut(&workload)? {
        let known = programs.get_mut(&member.program).zip(member.chips_on(mesh, accounts));
        let Some((program, chips)) = known else {
            is_known = None;
            continue;
        };
        let lane = program.lanes.iter().find(|(known, _)| *known == division).map_or(0, |(_, lane)| *lane);
        program.launch(accounts, chips, Dispatch::new(program.id).lane(lane).queue(queue).name(name));
    }
    is_known
}

impl Registry {
    fn runs_on(&mut self, found: &RunsOn) {
        for (program, device) in &found.candidates {
            let Some(program) = self.programs.get_mut(program) else { continue };
            let division = device.sub_devices();
            match program.lanes.iter_mut().find(|(known, _)| *known == division) {
                Some((_, known)) => *known = found.sub_device,
                None => program.lanes.push((division, found.sub_device)),
            }
            return;
        }
    }

    fn queue_number(&mut self, mesh: Device, queue: Queue) -> u8 {
        let known = self.queues.iter().find(|(of, known, _)| (*of, *known) == (mesh, queue));
        if let Some((_, _, number)) = known {
            return *number;
        }
        let number = mesh.queue_number(queue).unwrap_or(0);
        self.queues.push((mesh, queue, number));
        number
    }
}

impl Member {
    /// The chips of a mesh that run it.
    fn chips_on(&mut self, mesh: Device, accounts: &'static Accounts) -> Option<&Mesh> {
        let is_known = |(known, of, _): &(Device, &'static Accounts, Mesh)| {
            *known == mesh && std::ptr::eq(*of, accounts)
        };
        if !self.chips.as_ref().is_some_and(is_known) {
            let chips = accounts.devices(&mesh.chips_in(&self.part)?)?;
            self.chips = Some((mesh, accounts, chips));
        }
        self.chips.as_ref().map(|(_, _, chips)| chips)
    }
}

impl Program {
    fn launch(&mut self, accounts: &'static Accounts, chips: &Mesh, dispatch: Dispatch) {
        if self.kernels.is_empty() && self.regions.iter().all(Vec::is_empty) {
            return;
        }
        let tracker = accounts.tracker();
        let is_it =
            |launched: &Launched| std::ptr::eq(launched.accounts, accounts) && launched.chips == *chips;
        let before = self.launched.iter().position(is_it);
        if before.is_some_and(|place| self.launched[place].version == self.version) {
            let _ = tracker.dispatch(chips, dispatch);
            return;
        }
        let place = before.unwrap_or_else(|| {
            self.launched.push(Launched { accounts, chips: chips.clone(), version: 0, regions: 0 });
            self.launched.len() - 1
        });
        for id in 0..self.launched[place].regions {
            let _ = tracker.cb_free(chips, self.id, id, None);
        }
        self.launched[place].regions = self.report_regions(accounts, chips);
        self.launched[place].version = self.version;
        if before.is_some() {
            let _ = tracker.dispatch(chips, dispatch);
            return;
        }
        let kernels = self.kernels(accounts);
        let _ = tracker.launch(chips, Launch::of(dispatch, &kernels, ProgramBinaryStatus::NotSent));
    }

    /// Reports its regions, and returns how many there are.
    fn report_regions(&self, accounts: &Accounts, chips: &Mesh) -> u64 {
        let tracker = accounts.tracker();
        let of_kind = |kind: Regions| self.regions[kind as usize].iter().map(move |region| (kind, region));
        let mut ids = 0..;
        for ((kind, region), id) in Regions::ALL.into_iter().flat_map(of_kind).zip(&mut ids) {
            let cb = CircularBuffer::new(self.id, id, region.bytes, region.cores).address(region.address);
            let cb = if region.in_a_buffer { cb.globally_allocated() } else { cb };
            let name = kind.name().and_then(|name| tracker.intern(name).ok()).unwrap_or(NameId::NONE);
            let ranges = Some(rectangles::text(&region.rectangles)).filter(|ranges| !ranges.is_empty());
            let ranges = ranges.and_then(|ranges| tracker.intern(&ranges).ok()).unwrap_or(NameId::NONE);
            let _ = tracker.cb_alloc(chips, cb.name(name).core_ranges(ranges));
        }
        self.regions.iter().map(|regions| regions.len() as u64).sum()
    }

    fn kernels(&self, accounts: &Accounts) -> Vec<Kernel> {
        let kernel = |(number, compiled): (u64, &Compiled)| {
            let Compiled { full_name, core_type, bytes, cores } = compiled;
            // The name of the source; what follows is the hash of what it was compiled with.
            let name = full_name.split('/').next().unwrap_or_default();
            let name = accounts.tracker().intern(name).unwrap_or(NameId::NONE);
            let kind = KernelType::Application;
            // Ids of kernels have to differ on a device; programs have far fewer of them.
            let id = self.id << 16 | number;
            Kernel::new(id, kind, *core_type, *bytes, *cores)
                .program(self.id)
                .hash(hash(full_name))
                .name(name)
        };
        (0..).zip(&self.kernels).map(kernel).collect()
    }

    /// How far its circular buffers reach: the bytes from the first to the end of the last, and all bytes on all cores.
    fn extent(&self) -> Option<(u64, u64, u64, u32)> {
        let own = || self.regions.iter().flatten().filter(|region| !region.in_a_buffer);
        let start = own().map(|region| region.address).min()?;
        let end = own().map(|region| region.address + region.bytes).max()?;
        let bytes = own().map(|region| region.bytes * u64::from(region.cores)).sum();
        let cores = own().map(|region| region.cores).max()?;
        Some((start, end, bytes, cores))
    }
}

/// FNV-1a: the same in all processes.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    text.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step).max(1)
}

/// The circular buffers of a program do not fit below the buffers in L1.
pub(crate) fn clashed(program: metal::Program, mesh: Device) {
    let Some(accounts) = books::accounts_of(mesh) else { return };
    let extent = registry().and_then(|registry| registry.programs.get(&program)?.extent());
    let Some((start, end, bytes, cores)) = extent else { return };
    let mut failed = FailedAlloc::new(Class::Cb, bytes).needed_per_bank(end - start, cores);
    if let Some(lowest) = mesh.allocator().and_then(|allocator| allocator.lowest_l1()) {
        let free = lowest.saturating_sub(start);
        failed = failed.free_per_bank(free, free);
    }
    accounts.failed_to(failed);
}

/// The chips of an allocator are closed: whatever ran on them does not any more.
pub(crate) fn closed(accounts: &'static Accounts) {
    let Some(mut registry) = registry() else { return };
    registry.queues.clear();
    for member in registry.workloads.values_mut().flatten() {
        member.chips = member.chips.take().filter(|(_, of, _)| !std::ptr::eq(*of, accounts));
    }
    for program in registry.programs.values_mut() {
        let id = program.id;
        program.launched.retain(|launched| {
            let stays = !std::ptr::eq(launched.accounts, accounts);
            if !stays {
                let _ = launched.accounts.tracker().program_end(&launched.chips, id);
            }
            stays
        });
    }
}

/// A region on a rectangle of cores was given to the program that this thread is busy with.
pub(crate) fn marked(address: u64, bytes: u64, rectangle: Rectangle) {
    // Circular buffers are told with their own core ranges.
    if doing::regions_kind().is_some_and(|kind| kind != Regions::CircularBuffers) {
        let (device, rectangles) = (None, vec![rectangle]);
        doing::region(Region { address, bytes, cores: 0, in_a_buffer: false, device, rectangles });
    }
}
