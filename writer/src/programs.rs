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

/// What is known of a program on one device. It lives as long as something of it does.
#[derive(Default)]
pub(crate) struct Program {
    device: u8,
    id: u64,
    kernels: Vec<u64>,
    circular_buffers: Vec<u64>,
    /// Bytes that a dispatch makes resident.
    kernel_bytes: u64,
    kernel_eth_bytes: u64,
    cb_bytes: u64,
    /// Circular buffers and application kernels: what a dispatch makes resident.
    applications: usize,
    /// What was added since the last dispatch, and so is not resident even if the program is.
    pending: Vec<(RowKind, u64)>,
    /// The pair of rows that count the dispatches, once there was one.
    rows: Option<[u32; 2]>,
    dispatches: u64,
    cached_dispatches: u64,
    name: u16,
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

    #[inline]
    fn is(&self, number: u32, device: u8, id: u64) -> Option<u32> {
        let program = self.list.get(number as usize)?;
        (program.id == id && program.device == device).then_some(number)
    }

    #[inline]
    fn number(&self, device: u8, id: u64) -> Option<u32> {
        let (hash, is) = (hash(device.into(), id), |number| self.is(number, device, id));
        self.index.find_at_home(hash, is).or_else(|| self.index.find(hash, is))
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
        let event = Event {
            class: Class::Cb as u8,
            flags: if cb.globally_allocated { flags::GLOBAL } else { 0 },
            name: cb.name.0,
            id: cb.id,
            size: bytes,
            address: cb.address,
            aux: cb.program,
            cores: cb.cores,
            ..self.event(EventKind::CbAlloc, device)
        };
        self.begin(Key::cb(device, cb.program, cb.id), event, "circular buffer")?;
        let program = self.programs.get_or_new(device, cb.program);
        program.cb_bytes += bytes;
        program.applications += 1;
        program.circular_buffers.push(cb.id);
        program.pending.push((RowKind::Cb, cb.id));
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
            self.dispatch(device, self.cached_program(device, kernel.program, loaded.program), true)?;
            return Ok(Loaded::Cached);
        }
        let class = kernel.kernel_type.class();
        let bytes = kernel.binary_bytes.saturating_mul(u64::from(kernel.cores));
        let ethernet = kernel.core_type == CoreType::Ethernet;
        let event = Event {
            class: class as u8,
            flags: if ethernet { flags::ETHERNET } else { 0 } | if late { flags::LATE } else { 0 },
            name: kernel.name.0,
            id: kernel.id,
            size: bytes,
            address: kernel.hash,
            aux: kernel.program,
            cores: kernel.cores,
            ..self.event(EventKind::KernelLoad, device)
        };
        self.begin(key, event, "kernel")?;
        let program = self.programs.get_or_new(device, kernel.program);
        program.kernels.push(kernel.id);
        program.name = kernel.name.0;
        if kernel.kernel_type == KernelType::Application {
            *program.bytes_on(ethernet) += bytes;
            program.applications += 1;
            program.pending.push((RowKind::Kernel, kernel.id));
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
        let ids = match kind {
            RowKind::Cb => &mut program.circular_buffers,
            _ => &mut program.kernels,
        };
        if let Some(place) = ids.iter().position(|id| *id == said.id) {
            ids.swap_remove(place);
        }
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
        if let Some(place) = program.pending.iter().position(|added| *added == (kind, said.id)) {
            program.pending.swap_remove(place);
            return 0;
        }
        let resident = self.devices[usize::from(said.device)].resident == Some(number);
        if resident { flags::RESIDENT } else { 0 }
    }

    /// Forgets a program of which nothing is left.
    fn end_if_empty(&mut self, device: u8, id: u64) {
        let Some(number) = self.programs.number(device, id) else { return };
        let program = &self.programs.list[number as usize];
        if !program.kernels.is_empty() || !program.circular_buffers.is_empty() {
            return;
        }
        let program = self.programs.remove(number);
        let resident = &mut self.devices[usize::from(device)].resident;
        *resident = resident.filter(|resident| *resident != number);
        if let Some([row, partner]) = program.rows {
            let end = self.event(EventKind::ProgramEnd, device);
            let mut end = Event { id, row, cores: partner, ..end };
            // Known device, no bytes: nothing to refuse.
            let _ = self.emit(&mut end);
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
        let (cbs, kernels) = (program.circular_buffers.clone(), program.kernels.clone());
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
            Loaded::New => self.dispatch(device, kernel.program, sent),
        }
    }

    #[cold]
    fn unknown_program<T>(&self, device: u8, program: u64) -> Recorded<T> {
        self.misuse(Anomaly::UnknownProgram, RecordError::UnknownProgram { device, program })
    }

    pub(crate) fn dispatch(&mut self, device: u8, id: u64, cached: bool) -> Recorded {
        let mut event = self.event(EventKind::KernelDispatch, device);
        self.counters(device)?;
        let Some(number) = self.programs.number(device, id) else {
            return self.unknown_program(device, id);
        };
        self.stamp(&mut event);
        let program = &mut self.programs.list[number as usize];
        let [row, partner] = program.rows.unwrap_or_else(|| take_pair(&mut self.rows, &self.segment));
        event.id = id;
        event.class = Class::KernelApplication as u8;
        event.flags = if cached { flags::CACHED } else { 0 };
        event.name = program.name;
        (event.row, event.cores) = (row, partner);
        (event.size, event.address, event.aux) = (0, 0, 0);
        let application = program.applications > 0;
        if application {
            event.flags |= flags::RESIDENT;
            event.size = program.kernel_bytes;
            event.address = program.cb_bytes;
            event.aux = program.kernel_eth_bytes;
            program.pending.clear();
        }
        program.dispatches += 1;
        program.cached_dispatches += u64::from(cached);
        let program_row = Row::of_program(&event, program.dispatches, program.cached_dispatches);
        // The next dispatch writes the other row of the pair.
        program.rows = Some([partner, row]);
        let device = &mut self.devices[usize::from(device)];
        if application {
            device.resident = Some(number);
        }
        self.segment.words().commit(&event, Some(&program_row), &mut self.accounts);
        Ok(())
    }
}

/// Two rows or none: one alone could not survive a kill.
#[cold]
fn take_pair(rows: &mut Rows, segment: &Segment) -> [u32; 2] {
    match [rows.take(segment), rows.take(segment)] {
        [row, NO_ROW] | [NO_ROW, row] => {
            rows.put(row);
            [NO_ROW; 2]
        }
        pair => pair,
    }
}

impl Program {
    fn bytes_on(&mut self, ethernet: bool) -> &mut u64 {
        if ethernet { &mut self.kernel_eth_bytes } else { &mut self.kernel_bytes }
    }
}
