//! Programs: kernels, circular buffers, dispatches, and which one is resident.

use crate::error::RecordError;
use crate::index::{Entry, Key};
use crate::request::{CircularBuffer, Kernel, Loaded, ProgramBinaryStatus};
use crate::state::State;
use shm_layout::control::Anomaly;
use shm_layout::{Class, CoreType, Event, EventKind, KernelType, NO_ROW, Row, RowKind, flags};

type Recorded<T = ()> = Result<T, RecordError>;

/// What is known of a program on one device. It lives as long as something of it does.
#[derive(Default)]
pub(crate) struct Program {
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
    newest: Option<Row>,
    name: u16,
}

/// The programs of all devices, by number.
#[derive(Default)]
pub(crate) struct Programs {
    list: Vec<Program>,
    free: Vec<u32>,
}

impl Programs {
    fn add(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.list.push(Program::default());
            self.list.len() as u32 - 1
        })
    }
}

impl State {
    fn program_number(&self, device: u8, id: u64) -> Option<u32> {
        let key = Key { device, kind: RowKind::Program, id, program: 0 };
        self.index.find(&key).map(|entry| entry.size as u32)
    }

    fn program_or_new(&mut self, device: u8, id: u64) -> &mut Program {
        let number = self.program_number(device, id).unwrap_or_else(|| {
            let number = self.programs.add();
            let named = Event { id, size: u64::from(number), ..Event::new(EventKind::KernelLoad, device) };
            self.index.insert(Entry::new(RowKind::Program, 0, &named));
            number
        });
        &mut self.programs.list[number as usize]
    }

    pub(crate) fn cb_alloc(&mut self, device: u8, cb: &CircularBuffer) -> Recorded {
        self.check(device)?;
        let bytes = match cb.globally_allocated {
            true => 0,
            false => cb.bytes_per_core.saturating_mul(u64::from(cb.cores)),
        };
        self.check_size(device, Class::Cb, bytes)?;
        let key = Key { device, kind: RowKind::Cb, id: cb.id, program: cb.program };
        let vacancy = match self.index.search(&key) {
            Err(vacancy) => vacancy,
            Ok(live) => return self.double_alloc(live, "circular buffer"),
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
            ..Event::new(EventKind::CbAlloc, device)
        };
        self.insert(RowKind::Cb, cb.program, vacancy, event);
        let program = self.program_or_new(device, cb.program);
        program.cb_bytes += bytes;
        program.applications += 1;
        program.circular_buffers.push(cb.id);
        program.pending.push((RowKind::Cb, cb.id));
        Ok(())
    }

    pub(crate) fn cb_free(&mut self, device: u8, program: u64, id: u64, given: Option<u64>) -> Recorded {
        let key = Key { device, kind: RowKind::Cb, id, program };
        let entry = self.remove(&key, "circular buffer")?;
        let resident = self.leave_program(&entry, RowKind::Cb);
        let result = self.release(EventKind::CbFree, &entry, resident, given, "circular buffer");
        self.end_if_empty(device, program);
        result
    }

    pub(crate) fn kernel_load(&mut self, device: u8, kernel: &Kernel, late: bool) -> Recorded<Loaded> {
        self.check(device)?;
        let key = Key { device, kind: RowKind::Kernel, id: kernel.id, program: 0 };
        let vacancy = match self.index.search(&key) {
            Err(vacancy) => vacancy,
            Ok(loaded) => {
                let owner = loaded.program;
                self.dispatch(device, self.cached_program(device, kernel.program, owner), true)?;
                return Ok(Loaded::Cached);
            }
        };
        let class = kernel.kernel_type.class();
        let bytes = kernel.binary_bytes.saturating_mul(u64::from(kernel.cores));
        self.check_size(device, class, bytes)?;
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
            ..Event::new(EventKind::KernelLoad, device)
        };
        self.insert(RowKind::Kernel, kernel.program, vacancy, event);
        let program = self.program_or_new(device, kernel.program);
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
        let other = named != owner && self.program_number(device, named).is_some();
        if other { named } else { owner }
    }

    pub(crate) fn kernel_unload(&mut self, device: u8, id: u64, given: Option<u64>) -> Recorded {
        let key = Key { device, kind: RowKind::Kernel, id, program: 0 };
        let entry = self.remove(&key, "kernel")?;
        let resident = self.leave_program(&entry, RowKind::Kernel);
        let result = self.release(EventKind::KernelUnload, &entry, resident, given, "kernel");
        self.end_if_empty(device, entry.program);
        result
    }

    /// Takes a kernel or circular buffer out of its program; the flag says whether it was resident.
    fn leave_program(&mut self, entry: &Entry, kind: RowKind) -> u8 {
        let Some(number) = self.program_number(entry.device(), entry.program) else { return 0 };
        let program = &mut self.programs.list[number as usize];
        let ids = match kind {
            RowKind::Cb => &mut program.circular_buffers,
            _ => &mut program.kernels,
        };
        if let Some(place) = ids.iter().position(|id| *id == entry.id) {
            ids.swap_remove(place);
        }
        if kind == RowKind::Cb {
            program.cb_bytes -= entry.size;
        } else if entry.class == Class::KernelApplication as u8 {
            *program.bytes_on(entry.flags & flags::ETHERNET != 0) -= entry.size;
        } else {
            return 0;
        }
        program.applications -= 1;
        if let Some(place) = program.pending.iter().position(|added| *added == (kind, entry.id)) {
            program.pending.swap_remove(place);
            return 0;
        }
        let resident = self.devices[usize::from(entry.device())].resident == Some(number);
        if resident { flags::RESIDENT } else { 0 }
    }

    /// Forgets a program of which nothing is left.
    fn end_if_empty(&mut self, device: u8, id: u64) {
        let Some(number) = self.program_number(device, id) else { return };
        let program = &self.programs.list[number as usize];
        if !program.kernels.is_empty() || !program.circular_buffers.is_empty() {
            return;
        }
        let program = std::mem::take(&mut self.programs.list[number as usize]);
        self.programs.free.push(number);
        self.index.remove(&Key { device, kind: RowKind::Program, id, program: 0 });
        let resident = &mut self.devices[usize::from(device)].resident;
        *resident = resident.filter(|resident| *resident != number);
        if let Some([row, partner]) = program.rows {
            let end = Event { id, row, cores: partner, ..Event::new(EventKind::ProgramEnd, device) };
            self.emit(end);
            self.rows.put(row);
            self.rows.put(partner);
        }
    }

    /// Ends a program: frees its circular buffers and unloads its kernels.
    pub(crate) fn program_end(&mut self, device: u8, id: u64) -> Recorded {
        self.check(device)?;
        let Some(number) = self.program_number(device, id) else {
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
        self.check(device)?;
        let Some(number) = self.program_number(device, id) else {
            return self.unknown_program(device, id);
        };
        let mut event = Event::new(EventKind::KernelDispatch, device);
        self.stamp(&mut event);
        let program = &mut self.programs.list[number as usize];
        let [row, partner] = *program.rows.get_or_insert_with(|| {
            // Both or none: one row alone could not survive a kill.
            match [self.rows.take(&self.segment), self.rows.take(&self.segment)] {
                [row, NO_ROW] | [NO_ROW, row] => {
                    self.rows.put(row);
                    [NO_ROW; 2]
                }
                pair => pair,
            }
        });
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
        let newest = Row::after_dispatch(program.newest.as_ref(), &event);
        program.newest = Some(newest);
        // The next dispatch writes the other row of the pair.
        program.rows = Some([partner, row]);
        let device = &mut self.devices[usize::from(device)];
        if application {
            device.resident = Some(number);
        }
        self.segment.words().commit(&event, Some(&newest), &mut device.counters);
        Ok(())
    }
}

impl Program {
    fn bytes_on(&mut self, ethernet: bool) -> &mut u64 {
        if ethernet { &mut self.kernel_eth_bytes } else { &mut self.kernel_bytes }
    }
}
