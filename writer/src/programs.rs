//! Programs: kernels, circular buffers, dispatches, and which one is resident.

use crate::emitter::{Emitter, short};
use crate::error::RecordError;
use crate::index::{Home, Index};
use crate::live::{Key, LiveRecord, hash};
use crate::request::{CircularBuffer, Dispatch, Kernel, Launch, Loaded, NameId, ProgramBinaryStatus};
use crate::rows::Rows;
use crate::segment::Segment;
use shm_layout::control::Anomaly;
use shm_layout::{Class, Event, EventKind, LANES, MAX_KERNEL_BYTES, NO_ROW, Row, flags};
use std::collections::HashMap;

type Recorded<T = ()> = Result<T, RecordError>;

/// What is known about a program on one device. It lives as long as anything of it does. What a dispatch
/// needs is in its first cache line.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct Program {
    id: u64,
    /// The bytes that a dispatch makes resident: kernels on Tensix and on ethernet cores, and circular
    /// buffers.
    kernel_bytes: [u32; 2],
    cb_bytes: u64,
    dispatches: u64,
    cached_dispatches: u64,
    /// The pair of rows that count the dispatches, once there was one; the one to be written next is first.
    rows: [u32; 2],
    /// The number of circular buffers and application kernels, which a dispatch makes resident.
    applications: u32,
    name: u16,
    device: u8,
    /// The class of the last kernel, if all are fabric or dispatch kernels.
    system_class: u8,
    /// The kernels that it runs, whichever program loaded them.
    kernels: Vec<Member>,
    circular_buffers: Vec<Member>,
}

/// A kernel or circular buffer of a program.
struct Member {
    id: u64,
    /// The number of dispatches of the program when this was added. Until there is another one it is not
    /// resident, even if the program is.
    since: u64,
}

/// The programs of all devices, by number.
pub(crate) struct Programs {
    list: Vec<Program>,
    free: Vec<u32>,
    index: Index,
    /// By device and kernel, the programs that run it besides the one that loaded it. Few kernels have any.
    sharers: HashMap<(u8, u64), Vec<u32>>,
    /// Programs that were dispatched and have no rows.
    without_rows: usize,
}

impl Programs {
    pub(crate) fn new() -> Programs {
        Programs {
            list: Vec::new(),
            free: Vec::new(),
            index: Index::new(0),
            sharers: HashMap::new(),
            without_rows: 0,
        }
    }

    /// The number of programs that have no rows because there was no room for them.
    pub(crate) fn without_rows(&self) -> usize {
        self.without_rows
    }

    #[inline(always)]
    fn is(&self, number: u32, device: u8, id: u64) -> Option<u32> {
        let program = self.list.get(number as usize)?;
        (program.id == id && program.device == device).then_some(number)
    }

    /// Begins the search for a program.
    #[inline(always)]
    fn seek(&self, device: u8, id: u64) -> Home {
        self.index.home_of(hash(device.into(), id))
    }

    /// The number of a program, if it is in its home line of the index.
    #[inline(always)]
    fn number_at_home(&self, home: Home, device: u8, id: u64) -> Option<u32> {
        self.index.find_at_home(home, |number| self.is(number, device, id))
    }

    fn number(&self, device: u8, id: u64) -> Option<u32> {
        self.index.find(hash(device.into(), id), |number| self.is(number, device, id))
    }

    fn number_or_new(&mut self, device: u8, id: u64) -> u32 {
        self.number(device, id).unwrap_or_else(|| self.add(device, id))
    }

    fn get_or_new(&mut self, device: u8, id: u64) -> &mut Program {
        let number = self.number_or_new(device, id);
        &mut self.list[number as usize]
    }

    fn runs(&self, device: u8, id: u64, kernel: u64) -> bool {
        self.number(device, id).is_some_and(|number| self.list[number as usize].runs(kernel))
    }

    /// Whether a program itself loaded a kernel that it runs.
    fn is_own(&self, number: u32, device: u8, kernel: u64) -> bool {
        self.sharers.get(&(device, kernel)).is_none_or(|sharers| !sharers.contains(&number))
    }

    fn forget_sharer(&mut self, device: u8, kernel: u64, number: u32) {
        if let Some(sharers) = self.sharers.get_mut(&(device, kernel)) {
            sharers.retain(|sharer| *sharer != number);
            if sharers.is_empty() {
                self.sharers.remove(&(device, kernel));
            }
        }
    }

    fn add(&mut self, device: u8, id: u64) -> u32 {
        let number = self.free.pop().unwrap_or(self.list.len() as u32);
        if number as usize == self.list.len() {
            self.list.push(Program::default());
        }
        let program = &mut self.list[number as usize];
        (program.device, program.id) = (device, id);
        let list = &self.list;
        let hash_of = |number: u32| hash(list[number as usize].device.into(), list[number as usize].id);
        // It was just looked up.
        let _ = self.index.insert(hash_of(number), number, |_| None::<()>, hash_of);
        number
    }

    /// Removes a program.
    fn remove(&mut self, number: u32) -> Program {
        let Program { device, id, .. } = self.list[number as usize];
        self.index.take(hash(device.into(), id), |other| (other == number).then_some(()));
        self.free.push(number);
        std::mem::take(&mut self.list[number as usize])
    }
}

impl Emitter {
    pub(crate) fn check_cb_alloc(&self, device: u8, cb: &CircularBuffer) -> Recorded {
        let key = Key::cb(device, cb.program, cb.id);
        self.check_new(key, Class::Cb, cb.bytes(), cb.bytes(), "circular buffer")
    }

    pub(crate) fn cb_alloc(&mut self, device: u8, cb: &CircularBuffer) -> Recorded {
        let bytes = cb.bytes();
        let event = self.event(EventKind::CbAlloc, device);
        let event = Event {
            class: Class::Cb as u8,
            flags: if cb.globally_allocated { flags::GLOBAL } else { 0 },
            id: cb.id,
            size: bytes,
            ..event
        };
        let sought = self.seek(Key::cb(device, cb.program, cb.id));
        self.begin(sought, event, "circular buffer", |event| Event {
            name: cb.name.0,
            address: cb.address,
            aux: cb.program,
            cores: short(cb.cores),
            place: cb.core_ranges.0,
            ..event
        })?;
        let program = self.programs.get_or_new(device, cb.program);
        program.cb_bytes += bytes;
        program.applications += 1;
        program.circular_buffers.push(Member { id: cb.id, since: program.dispatches });
        Ok(())
    }

    pub(crate) fn cb_free(&mut self, device: u8, program: u64, id: u64, given: Option<u64>) -> Recorded {
        let said = self.take(Key::cb(device, program, id), "circular buffer")?;
        let number = self.programs.number(device, program);
        let lanes = number.map_or(0, |number| self.leave_program(number, &said));
        let event = self.event(EventKind::CbFree, device);
        let result = self.release(event, &said, lanes, given, "circular buffer");
        self.end_if_empty(device, program);
        result
    }

    /// Returns the error that [`Emitter::kernel_load`] would return.
    pub(crate) fn check_kernel_load(&self, device: u8, kernel: &Kernel) -> Recorded {
        self.counters(device)?;
        let loaded = self.find(&Key::kernel(device, kernel.id));
        let owner = loaded.map_or(kernel.id, |loaded| loaded.program());
        self.check_kernels(device, kernel.program.unwrap_or(owner), std::slice::from_ref(kernel))
    }

    /// Returns an error if the classes or the program have no room for these kernels. Those that are loaded
    /// are not counted again.
    fn check_kernels(&self, device: u8, program: u64, kernels: &[Kernel]) -> Recorded {
        let counters = self.counters(device)?;
        let number = self.programs.number(device, program);
        let runs = number.map(|number| &self.programs.list[number as usize]);
        let (mut classes, mut of_program) = ([0_u64; Class::COUNT], [0_u64; 2]);
        for kernel in kernels {
            let loaded = self.find(&Key::kernel(device, kernel.id));
            let class = kernel.kernel_type.class();
            let (class, bytes, ethernet) = match &loaded {
                Some(said) => (Class::from_code(said.class), said.size, said.flags & flags::ETHERNET != 0),
                None => (Some(class), kernel.bytes(), kernel.is_on_ethernet()),
            };
            let Some(class) = class else { continue };
            if loaded.is_none() {
                classes[class as usize] = classes[class as usize].saturating_add(bytes);
            }
            let is_member = runs.is_some_and(|program| program.runs(kernel.id));
            if class.needs_dispatch() && !is_member {
                let sum = &mut of_program[usize::from(ethernet)];
                *sum = sum.saturating_add(bytes);
            }
        }
        for class in Class::ALL {
            let bytes = classes[class as usize];
            if !counters.has_room(class, bytes, bytes) {
                return self.too_large(bytes);
            }
        }
        let held = runs.map_or([0; 2], |program| program.kernel_bytes.map(u64::from));
        for (bytes, held) in of_program.into_iter().zip(held) {
            if bytes.saturating_add(held) > MAX_KERNEL_BYTES {
                return self.too_large(bytes);
            }
        }
        Ok(())
    }

    /// Loads a kernel, or, if it is loaded, dispatches the program that runs it.
    pub(crate) fn kernel_load(&mut self, device: u8, kernel: &Kernel) -> Recorded<Loaded> {
        self.check_kernel_load(device, kernel)?;
        match self.find(&Key::kernel(device, kernel.id)) {
            Some(loaded) => {
                let program = kernel.program.unwrap_or(loaded.program());
                self.share(device, program, &loaded, kernel.name.0);
                self.dispatch_elsewhere(device, &Dispatch::new(program), true)?;
                Ok(Loaded::Cached)
            }
            None => {
                self.load(device, kernel, kernel.program.unwrap_or(kernel.id), false)?;
                Ok(Loaded::New)
            }
        }
    }

    /// Loads a kernel that is not loaded and was checked.
    fn load(&mut self, device: u8, kernel: &Kernel, program: u64, late: bool) -> Recorded {
        let (class, bytes) = (kernel.kernel_type.class(), kernel.bytes());
        let ethernet = kernel.is_on_ethernet();
        let event = self.event(EventKind::KernelLoad, device);
        let event = Event {
            class: class as u8,
            flags: if ethernet { flags::ETHERNET } else { 0 } | if late { flags::LATE } else { 0 },
            id: kernel.id,
            size: bytes,
            ..event
        };
        let sought = self.seek(Key::kernel(device, kernel.id));
        self.begin(sought, event, "kernel", |event| Event {
            name: kernel.name.0,
            address: kernel.hash,
            aux: program,
            cores: short(kernel.cores),
            place: kernel.core_ranges.0,
            ..event
        })?;
        self.programs.get_or_new(device, program).add_kernel(
            kernel.id,
            class,
            ethernet,
            bytes,
            kernel.name.0,
        );
        Ok(())
    }

    /// Lets a program run a kernel that another one loaded.
    fn share(&mut self, device: u8, program: u64, loaded: &LiveRecord, name: u16) {
        if loaded.program() == program {
            return;
        }
        let number = self.programs.number_or_new(device, program);
        let runner = &mut self.programs.list[number as usize];
        let Some(class) = Class::from_code(loaded.class).filter(|_| !runner.runs(loaded.id)) else { return };
        runner.add_kernel(loaded.id, class, loaded.flags & flags::ETHERNET != 0, loaded.size, name);
        self.programs.sharers.entry((device, loaded.id)).or_default().push(number);
    }

    /// Unloads a kernel, which no program runs any more.
    pub(crate) fn kernel_unload(&mut self, device: u8, id: u64, given: Option<u64>) -> Recorded {
        let said = self.take(Key::kernel(device, id), "kernel")?;
        let mut runners = self.programs.sharers.remove(&(device, id)).unwrap_or_default();
        runners.extend(self.programs.number(device, said.program()));
        let mut lanes = 0;
        for number in &runners {
            lanes |= self.leave_program(*number, &said);
        }
        let event = self.event(EventKind::KernelUnload, device);
        let result = self.release(event, &said, lanes, given, "kernel");
        for number in runners {
            let program = self.programs.list[number as usize].id;
            self.end_if_empty(device, program);
        }
        result
    }

    /// Removes a kernel or circular buffer from a program. Returns the bit of the lane in which it was
    /// resident as part of it; 0 if in none.
    fn leave_program(&mut self, number: u32, said: &LiveRecord) -> u16 {
        let program = &mut self.programs.list[number as usize];
        let is_cb = said.class == Class::Cb as u8;
        let members = if is_cb { &mut program.circular_buffers } else { &mut program.kernels };
        let Some(place) = members.iter().position(|member| member.id == said.id) else { return 0 };
        let member = members.swap_remove(place);
        // Saturating: the size was read back from shared memory.
        if is_cb {
            program.cb_bytes = program.cb_bytes.saturating_sub(said.size);
        } else if said.class == Class::KernelApplication as u8 {
            let bytes = &mut program.kernel_bytes[usize::from(said.flags & flags::ETHERNET != 0)];
            *bytes = bytes.saturating_sub(said.size as u32);
        } else {
            return 0;
        }
        program.applications = program.applications.saturating_sub(1);
        let was_dispatched = member.since < program.dispatches;
        let counters = self.accounts.counters(said.device).filter(|_| was_dispatched);
        let lane = counters.and_then(|counters| counters.lane_of(program.id));
        lane.map_or(0, |lane| 1 << lane)
    }

    /// Removes a program of which nothing is left.
    fn end_if_empty(&mut self, device: u8, id: u64) {
        let Some(number) = self.programs.number(device, id) else { return };
        let program = &self.programs.list[number as usize];
        if !program.kernels.is_empty() || !program.circular_buffers.is_empty() {
            return;
        }
        let program = self.programs.remove(number);
        if program.dispatches > 0 {
            let [row, partner] = program.rows;
            let lane = self.accounts.counters(device).and_then(|counters| counters.lane_of(id));
            let end = self.event(EventKind::ProgramEnd, device);
            // The device is known and there are no bytes, so nothing can be refused.
            let _ = self.emit(Event {
                class: program.class(),
                flags: if lane.is_some() { flags::RESIDENT } else { 0 },
                id,
                row,
                address: u64::from(partner) << 32,
                aux: 0,
                place: lane.map_or(0, |lane| 1 << lane),
                ..end
            });
            self.rows.put(row);
            self.rows.put(partner);
            if row == NO_ROW {
                self.programs.without_rows -= 1;
                self.publish_degraded();
            }
        }
    }

    pub(crate) fn check_program(&self, device: u8, id: u64) -> Recorded<u32> {
        self.counters(device)?;
        match self.programs.number(device, id) {
            Some(number) => Ok(number),
            None => self.unknown_program(device, id),
        }
    }

    /// Ends a program: frees its circular buffers and unloads the kernels that it loaded. It stops running
    /// the kernels that others loaded.
    pub(crate) fn program_end(&mut self, device: u8, id: u64) -> Recorded {
        let number = self.check_program(device, id)?;
        let program = &self.programs.list[number as usize];
        let ids = |members: &[Member]| members.iter().map(|member| member.id).collect::<Vec<_>>();
        let (cbs, kernels) = (ids(&program.circular_buffers), ids(&program.kernels));
        let (own, shared): (Vec<u64>, Vec<u64>) =
            kernels.into_iter().partition(|kernel| self.programs.is_own(number, device, *kernel));
        for kernel in shared {
            self.programs.list[number as usize].kernels.retain(|member| member.id != kernel);
            self.programs.forget_sharer(device, kernel, number);
        }
        for cb in cbs {
            self.cb_free(device, id, cb, None)?;
        }
        for kernel in own {
            self.kernel_unload(device, kernel, None)?;
        }
        // If it only ran kernels that others loaded.
        self.end_if_empty(device, id);
        Ok(())
    }

    pub(crate) fn check_launch(&self, device: u8, launch: &Launch<'_>) -> Recorded {
        let Dispatch { program, lane, .. } = launch.dispatch;
        self.check_lane(device, lane)?;
        self.check_kernels(device, program, launch.kernels)?;
        if launch.kernels.is_empty() { self.check_program(device, program).map(drop) } else { Ok(()) }
    }

    pub(crate) fn launch(&mut self, device: u8, launch: &Launch<'_>) -> Recorded {
        let program = launch.dispatch.program;
        let sent = launch.status != ProgramBinaryStatus::NotSent;
        let runs = |kernel: &Kernel| {
            self.find(&Key::kernel(device, kernel.id)).is_some_and(|loaded| {
                loaded.program() == program || self.programs.runs(device, program, kernel.id)
            })
        };
        let is_new = !launch.kernels.iter().all(runs) && self.load_missing(device, launch, sent)?;
        self.dispatch_elsewhere(device, &launch.dispatch, sent || !is_new)
    }

    /// Loads the kernels of a launch that are not loaded; returns whether there were any.
    #[cold]
    fn load_missing(&mut self, device: u8, launch: &Launch<'_>, late: bool) -> Recorded<bool> {
        self.check_launch(device, launch)?;
        let program = launch.dispatch.program;
        let mut any = false;
        for kernel in launch.kernels {
            match self.find(&Key::kernel(device, kernel.id)) {
                Some(loaded) => self.share(device, program, &loaded, kernel.name.0),
                None => {
                    self.load(device, kernel, program, late)?;
                    any = true;
                }
            }
        }
        Ok(any)
    }

    #[cold]
    fn unknown_program<T>(&self, device: u8, program: u64) -> Recorded<T> {
        self.misuse(Anomaly::UnknownProgram, RecordError::UnknownProgram { device, program })
    }

    fn check_lane(&self, device: u8, lane: u8) -> Recorded {
        match usize::from(lane) {
            0..LANES => Ok(()),
            _ => self.misuse(Anomaly::LaneOutOfRange, RecordError::LaneOutOfRange { device, lane }),
        }
    }

    pub(crate) fn check_dispatch(&self, device: u8, dispatch: &Dispatch) -> Recorded {
        self.check_program(device, dispatch.program)?;
        self.check_lane(device, dispatch.lane)
    }

    /// Begins the search for a program, as [`Emitter::seek`] does for an allocation.
    #[inline(always)]
    pub(crate) fn seek_program(&self, device: u8, id: u64) -> Home {
        self.programs.seek(device, id)
    }

    #[inline(always)]
    pub(crate) fn dispatch(&mut self, device: u8, home: Home, dispatch: &Dispatch, cached: bool) -> Recorded {
        match self.programs.number_at_home(home, device, dispatch.program) {
            Some(number) if usize::from(dispatch.lane) < LANES && dispatch.times > 0 => {
                self.dispatch_number(device, number, dispatch, cached)
            }
            _ => self.dispatch_elsewhere(device, dispatch, cached),
        }
    }

    /// Dispatches a program that is not in its home line of the index. Kept out of line.
    #[inline(never)]
    fn dispatch_elsewhere(&mut self, device: u8, dispatch: &Dispatch, cached: bool) -> Recorded {
        let number = self.check_program(device, dispatch.program)?;
        self.check_lane(device, dispatch.lane)?;
        if dispatch.times == 0 {
            return Ok(());
        }
        self.dispatch_number(device, number, dispatch, cached)
    }

    #[inline(always)]
    fn dispatch_number(&mut self, device: u8, number: u32, dispatch: &Dispatch, cached: bool) -> Recorded {
        let event = self.event(EventKind::KernelDispatch, device);
        let mut event = self.programs.list[number as usize].dispatched(event, dispatch, cached);
        // Cannot be refused: its bytes are part of those that are live.
        self.count(&mut event)?;
        let program = &mut self.programs.list[number as usize];
        if program.dispatches == 0 {
            program.rows = take_pair(&mut self.rows, &self.segment);
            if program.rows == [NO_ROW; 2] {
                self.programs.without_rows += 1;
                self.publish_degraded();
            }
        }
        let program = &mut self.programs.list[number as usize];
        if dispatch.name != NameId::NONE {
            program.name = dispatch.name.0;
        }
        program.dispatches += u64::from(dispatch.times);
        program.cached_dispatches += if cached { u64::from(dispatch.times) } else { 0 };
        let [row, partner] = program.rows;
        // The next dispatch writes the other row of the pair.
        program.rows = [partner, row];
        let address = event.address | u64::from(partner) << 32;
        let event = Event { name: program.name, row, address, ..event };
        let row = Row::of_program(&event, program.dispatches, program.cached_dispatches);
        self.segment.words().publish(&event, Some(&row), &mut self.accounts);
        Ok(())
    }
}

/// Takes two rows or none: a single row would not survive a kill.
#[cold]
fn take_pair(rows: &mut Rows, segment: &Segment) -> [u32; 2] {
    match [rows.take(segment), rows.take(segment)] {
        [Some(row), Some(partner)] => [row, partner],
        [one, other] => {
            one.or(other).inspect(|row| rows.put(*row));
            [NO_ROW; 2]
        }
    }
}

impl Program {
    /// The counted part of the event of its dispatch.
    #[inline(always)]
    fn dispatched(&self, event: Event, dispatch: &Dispatch, cached: bool) -> Event {
        let resident = if self.applications > 0 { flags::RESIDENT } else { 0 };
        let [tensix, ethernet] = self.kernel_bytes.map(u64::from);
        Event {
            class: self.class(),
            flags: resident | if cached { flags::CACHED } else { 0 },
            id: self.id,
            // All 0 if nothing can be resident.
            size: self.cb_bytes,
            aux: tensix | ethernet << 32,
            address: u64::from(dispatch.times),
            place: u16::from(dispatch.lane) | u16::from(dispatch.queue) << 8,
            ..event
        }
    }

    /// The class of its kernels: that of applications if a dispatch makes anything resident.
    #[inline(always)]
    fn class(&self) -> u8 {
        if self.applications > 0 || self.system_class == 0 {
            Class::KernelApplication as u8
        } else {
            self.system_class
        }
    }

    fn runs(&self, kernel: u64) -> bool {
        self.kernels.iter().any(|member| member.id == kernel)
    }

    /// Adds a kernel that was checked to fit.
    fn add_kernel(&mut self, id: u64, class: Class, ethernet: bool, bytes: u64, name: u16) {
        self.kernels.push(Member { id, since: self.dispatches });
        self.name = if name == 0 { self.name } else { name };
        if class.needs_dispatch() {
            let sum = &mut self.kernel_bytes[usize::from(ethernet)];
            *sum = sum.saturating_add(bytes as u32);
            self.applications += 1;
        } else {
            self.system_class = class as u8;
        }
    }
}

impl CircularBuffer {
    /// The bytes on all cores together; 0 if it lies inside a buffer.
    fn bytes(&self) -> u64 {
        match self.globally_allocated {
            true => 0,
            false => self.bytes_per_core.saturating_mul(u64::from(self.cores)),
        }
    }
}
