//! Programs: kernels, circular buffers, dispatches, and which one is resident.

use crate::error::RecordError;
use crate::index::Index;
use crate::live::{Key, Said, hash};
use crate::request::{CircularBuffer, Kernel, Loaded, ProgramBinaryStatus};
use crate::rows::Rows;
use crate::segment::Segment;
use crate::state::State;
use shm_layout::control::Anomaly;
use shm_layout::{Class, CoreType, Event, EventKind, KernelType, NO_ROW, Row, RowKind, flags};

type Recorded<T = ()> = Result<T, RecordError>;

/// What is known of a program on one device. It lives as long as something of it does. What a dispatch needs is
/// in its first cache line.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct Program {
    id: u64,
    /// Bytes that a dispatch makes resident.
    kernel_bytes: u64,
    kernel_eth_bytes: u64,
    cb_bytes: u64,
    dispatches: u64,
    cached_dispatches: u64,
    /// The pair of rows that count the dispatches, once there was one; that to be written next is first.
    rows: [u32; 2],
    /// Circular buffers and application kernels: what a dispatch makes resident.
    applications: u32,
    name: u16,
    device: u8,
    kernels: Vec<Member>,
    circular_buffers: Vec<Member>,
}

/// A kernel or circular buffer of a program.
struct Member {
    id: u64,
    /// Dispatches of the program when it was added. While there was no other it is not resident, even if the
    /// program is.
    since: u64,
}

/// The programs of all devices, by number.
pub(crate) struct Programs {
    list: Vec<Program>,
    free: Vec<u32>,
    index: Index,
}

impl Programs {
    pub(crate) fn new() -> Programs {
        Programs { list: Vec::new(), free: Vec::new(), index: Index::new(0) }
    }

    #[inline(always)]
    fn is(&self, number: u32, device: u8, id: u64) -> Option<u32> {
        let program = self.list.get(number as usize)?;
        (program.id == id && program.device == device).then_some(number)
    }

    /// The number of a program, if it is where it is looked for first.
    #[inline(always)]
    fn number_at_home(&self, device: u8, id: u64) -> Option<u32> {
        self.index.find_at_home(hash(device.into(), id), |number| self.is(number, device, id))
    }

    fn number(&self, device: u8, id: u64) -> Option<u32> {
        self.index.find(hash(device.into(), id), |number| self.is(number, device, id))
    }

    fn get_or_new(&mut self, device: u8, id: u64) -> &mut Program {
        let number = self.number(device, id).unwrap_or_else(|| self.add(device, id));
        &mut self.list[number as usize]
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
        // It was looked for just now.
        let _ = self.index.insert(hash_of(number), number, |_| None::<()>, hash_of);
        number
    }

    /// Takes a program out.
    fn remove(&mut self, number: u32) -> Program {
        let Program { device, id, .. } = self.list[number as usize];
        self.index.take(hash(device.into(), id), |other| (other == number).then_some(()));
        self.free.push(number);
        std::mem::take(&mut self.list[number as usize])
    }
}

impl State {
    pub(crate) fn cb_alloc(&mut self, device: u8, cb: &CircularBuffer) -> Recorded {
        let bytes = match cb.globally_allocated {
            true => 0,
            false => cb.bytes_per_core.saturating_mul(u64::from(cb.cores)),
        };
        let event = self.event(EventKind::CbAlloc, device);
        let event = Event {
            class: Class::Cb as u8,
            flags: if cb.globally_allocated { flags::GLOBAL } else { 0 },
            id: cb.id,
            size: bytes,
            ..event
        };
        self.begin(Key::cb(device, cb.program, cb.id), event, "circular buffer", |event| Event {
            name: cb.name.0,
            address: cb.address,
            aux: cb.program,
            cores: cb.cores,
            ..event
        })?;
        let program = self.programs.get_or_new(device, cb.program);
        program.cb_bytes += bytes;
        program.applications += 1;
        program.circular_buffers.push(Member { id: cb.id, since: program.dispatches });
        Ok(())
    }

    pub(crate) fn cb_free(&mut self, device: u8, program: u64, id: u64, given: Option<u64>) -> Recorded {
        let said = self.take(device, Key::cb(device, program, id), id, "circular buffer")?;
        let resident = self.leave_program(&said, RowKind::Cb);
        let event = self.event(EventKind::CbFree, device);
        let result = self.release(event, &said, resident, given, "circular buffer");
        self.end_if_empty(device, program);
        result
    }

    pub(crate) fn kernel_load(&mut self, device: u8, kernel: &Kernel, late: bool) -> Recorded<Loaded> {
        self.counters(device)?;
        let key = Key::kernel(device, kernel.id);
        if let Some(loaded) = self.find(&key) {
            self.dispatch_elsewhere(
                device,
                self.cached_program(device, kernel.program, loaded.program),
                true,
            )?;
            return Ok(Loaded::Cached);
        }
        let class = kernel.kernel_type.class();
        let bytes = kernel.binary_bytes.saturating_mul(u64::from(kernel.cores));
        let ethernet = kernel.core_type == CoreType::Ethernet;
        let event = self.event(EventKind::KernelLoad, device);
        let event = Event {
            class: class as u8,
            flags: if ethernet { flags::ETHERNET } else { 0 } | if late { flags::LATE } else { 0 },
            id: kernel.id,
            size: bytes,
            ..event
        };
        self.begin(key, event, "kernel", |event| Event {
            name: kernel.name.0,
            address: kernel.hash,
            aux: kernel.program,
            cores: kernel.cores,
            ..event
        })?;
        let program = self.programs.get_or_new(device, kernel.program);
        program.kernels.push(Member { id: kernel.id, since: program.dispatches });
        program.name = kernel.name.0;
        if kernel.kernel_type == KernelType::Application {
            *program.bytes_on(ethernet) += bytes;
            program.applications += 1;
        }
        Ok(Loaded::New)
    }

    /// Which program runs a kernel that was loaded by `owner`: the one that the caller names, if anything
    /// of it is here. It is the one whose circular buffers occupy L1 now.
    fn cached_program(&self, device: u8, named: u64, owner: u64) -> u64 {
        let other = named != owner && self.programs.number(device, named).is_some();
        if other { named } else { owner }
    }

    pub(crate) fn kernel_unload(&mut self, device: u8, id: u64, given: Option<u64>) -> Recorded {
        let said = self.take(device, Key::kernel(device, id), id, "kernel")?;
        let resident = self.leave_program(&said, RowKind::Kernel);
        let event = self.event(EventKind::KernelUnload, device);
        let result = self.release(event, &said, resident, given, "kernel");
        self.end_if_empty(device, said.program);
        result
    }

    /// Takes a kernel or circular buffer out of its program; the flag says whether it was resident.
    fn leave_program(&mut self, said: &Said, kind: RowKind) -> u8 {
        let Some(number) = self.programs.number(said.device, said.program) else { return 0 };
        let program = &mut self.programs.list[number as usize];
        let members = match kind {
            RowKind::Cb => &mut program.circular_buffers,
            _ => &mut program.kernels,
        };
        let Some(place) = members.iter().position(|member| member.id == said.id) else { return 0 };
        let member = members.swap_remove(place);
        if kind == RowKind::Cb {
            // Saturating: the size was read back from shared memory.
            program.cb_bytes = program.cb_bytes.saturating_sub(said.size);
        } else if said.class == Class::KernelApplication as u8 {
            let bytes = program.bytes_on(said.flags & flags::ETHERNET != 0);
            *bytes = bytes.saturating_sub(said.size);
        } else {
            return 0;
        }
        program.applications = program.applications.saturating_sub(1);
        let was_dispatched = member.since < program.dispatches;
        let counters = self.accounts.counters(said.device);
        let was_last = counters.is_some_and(|counters| counters.resident_program == said.program);
        if was_dispatched && was_last { flags::RESIDENT } else { 0 }
    }

    /// Forgets a program of which nothing is left.
    fn end_if_empty(&mut self, device: u8, id: u64) {
        let Some(number) = self.programs.number(device, id) else { return };
        let program = &self.programs.list[number as usize];
        if !program.kernels.is_empty() || !program.circular_buffers.is_empty() {
            return;
        }
        let program = self.programs.remove(number);
        if program.dispatches > 0 {
            let [row, partner] = program.rows;
            let end = self.event(EventKind::ProgramEnd, device);
            // Known device, no bytes: nothing to refuse.
            let _ = self.emit(Event { id, row, cores: partner, ..end });
            self.rows.put(row);
            self.rows.put(partner);
        }
    }

    /// Ends a program: frees its circular buffers and unloads its kernels.
    pub(crate) fn program_end(&mut self, device: u8, id: u64) -> Recorded {
        self.counters(device)?;
        let Some(number) = self.programs.number(device, id) else {
            return self.unknown_program(device, id);
        };
        let program = &self.programs.list[number as usize];
        let ids = |members: &[Member]| members.iter().map(|member| member.id).collect::<Vec<_>>();
        let (cbs, kernels) = (ids(&program.circular_buffers), ids(&program.kernels));
        for cb in cbs {
            self.cb_free(device, id, cb, None)?;
        }
        for kernel in kernels {
            self.kernel_unload(device, kernel, None)?;
        }
        Ok(())
    }

    pub(crate) fn launch(&mut self, device: u8, kernel: &Kernel, status: ProgramBinaryStatus) -> Recorded {
        let sent = status != ProgramBinaryStatus::NotSent;
        match self.kernel_load(device, kernel, sent)? {
            Loaded::Cached => Ok(()),
            Loaded::New => self.dispatch_elsewhere(device, kernel.program, sent),
        }
    }

    #[cold]
    fn unknown_program<T>(&self, device: u8, program: u64) -> Recorded<T> {
        self.misuse(Anomaly::UnknownProgram, RecordError::UnknownProgram { device, program })
    }

    #[inline(always)]
    pub(crate) fn dispatch(&mut self, device: u8, id: u64, cached: bool) -> Recorded {
        match self.programs.number_at_home(device, id) {
            Some(number) => self.dispatch_number(device, number, cached),
            None => self.dispatch_elsewhere(device, id, cached),
        }
    }

    /// The same wherever the program is, and not in line.
    #[inline(never)]
    fn dispatch_elsewhere(&mut self, device: u8, id: u64, cached: bool) -> Recorded {
        self.counters(device)?;
        match self.programs.number(device, id) {
            Some(number) => self.dispatch_number(device, number, cached),
            None => self.unknown_program(device, id),
        }
    }

    #[inline(always)]
    fn dispatch_number(&mut self, device: u8, number: u32, cached: bool) -> Recorded {
        let event = self.event(EventKind::KernelDispatch, device);
        let mut event = self.programs.list[number as usize].dispatched(event, cached);
        // Not refused: its bytes are part of those that are live.
        self.count(&mut event)?;
        let program = &mut self.programs.list[number as usize];
        if program.dispatches == 0 {
            program.rows = take_pair(&mut self.rows, &self.segment);
        }
        program.dispatches += 1;
        program.cached_dispatches += u64::from(cached);
        let [row, partner] = program.rows;
        // The next dispatch writes the other row of the pair.
        program.rows = [partner, row];
        let event = Event { name: program.name, row, cores: partner, ..event };
        let row = Row::of_program(&event, program.dispatches, program.cached_dispatches);
        self.segment.words().publish(&event, Some(&row), &mut self.accounts);
        Ok(())
    }
}

/// Two rows or none: one alone could not survive a kill.
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
    /// What of the event of its dispatch is counted.
    #[inline(always)]
    fn dispatched(&self, event: Event, cached: bool) -> Event {
        let resident = if self.applications > 0 { flags::RESIDENT } else { 0 };
        Event {
            class: Class::KernelApplication as u8,
            flags: resident | if cached { flags::CACHED } else { 0 },
            id: self.id,
            // All 0 if there is nothing to be resident.
            size: self.kernel_bytes,
            address: self.cb_bytes,
            aux: self.kernel_eth_bytes,
            ..event
        }
    }

    fn bytes_on(&mut self, ethernet: bool) -> &mut u64 {
        if ethernet { &mut self.kernel_eth_bytes } else { &mut self.kernel_bytes }
    }
}
