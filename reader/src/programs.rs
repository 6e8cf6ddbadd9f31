//! Programs: which kernels and circular buffers belong together, and how often they were dispatched.

use std::collections::BTreeMap;

use shm_layout::{CoreType, KernelType, Row, RowKind, flags};

use crate::segment::Segment;

/// A loaded kernel binary of a program on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The process's id for it.
    pub id: u64,
    /// Its type; `None` if this version does not know the code.
    pub kernel_type: Option<KernelType>,
    /// The cores that it lies on.
    pub core_type: CoreType,
    /// The bytes on all cores together.
    pub bytes: u64,
    /// The number of cores it lies on; 0 if unknown.
    pub cores: u32,
    /// The hash of the binary, if the process reports one.
    pub hash: Option<u64>,
    /// Whether tracking began after it was loaded.
    pub late: bool,
}

impl Kernel {
    fn from_row(row: &Row) -> Kernel {
        Kernel {
            id: row.id,
            kernel_type: row.class().and_then(|class| class.kernel_type()),
            core_type: row.core_type(),
            bytes: row.size,
            cores: u32::from(row.cores),
            hash: hash(row),
            late: row.flags & flags::LATE != 0,
        }
    }

    /// The bytes of the binary, the same on every core; `None` if the number of cores is not known.
    pub fn binary_bytes(&self) -> Option<u64> {
        self.bytes.checked_div(u64::from(self.cores))
    }
}

/// A program on one of its devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramDevice {
    /// The index into the segment's device list.
    pub device: u8,
    /// Its kernels, oldest first.
    pub kernels: Vec<Kernel>,
    /// The bytes of all its kernels.
    pub kernel_bytes: u64,
    /// The bytes of its circular buffers.
    pub cb_bytes: u64,
    /// The number of its circular buffers.
    pub cb_count: u64,
    /// The number of dispatches.
    pub dispatches: u64,
    /// The number of dispatches that found the binary on the device.
    pub cache_hits: u64,
    /// The number of dispatches that did not.
    pub cache_misses: u64,
    /// The ticks of the last dispatch; `None` if there was none.
    pub last_dispatch: Option<u64>,
}

/// A program, on all of its devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The process's id for it.
    pub id: u64,
    /// Its name, or that of one of its kernels.
    pub name: Option<String>,
    /// The program on each of its devices, by device index.
    pub devices: Vec<ProgramDevice>,
    /// The bytes of its kernels on all devices.
    pub kernel_bytes: u64,
    /// The bytes of its circular buffers on all devices.
    pub cb_bytes: u64,
    /// The number of its circular buffers on all devices.
    pub cb_count: u64,
    /// The number of dispatches on all devices: one call on a mesh counts on each.
    pub dispatches: u64,
    /// The number of dispatches that found the binary on the device.
    pub cache_hits: u64,
    /// The number of dispatches that did not.
    pub cache_misses: u64,
    /// The ticks of the last dispatch on any device; `None` if there was none.
    pub last_dispatch: Option<u64>,
    /// The types of its kernels, each once.
    pub kernel_types: Vec<KernelType>,
    /// Whether tracking began after some of it was loaded.
    pub late: bool,
}

impl Program {
    /// The indices of its devices.
    pub fn device_indices(&self) -> impl Iterator<Item = u8> {
        self.devices.iter().map(|device| device.device)
    }
}

impl Segment {
    /// The programs that have something loaded, allocated or dispatched, by id.
    pub fn programs(&self) -> Vec<Program> {
        self.programs_of(&self.live_list().rows)
    }

    /// The programs of a live list that was read before.
    pub fn programs_of(&self, rows: &[Row]) -> Vec<Program> {
        let mut programs: BTreeMap<u64, Gathered<'_>> = BTreeMap::new();
        for row in rows {
            if let Some(id) = row.program() {
                programs.entry(id).or_default().add(row);
            }
        }
        programs.into_iter().map(|(id, gathered)| gathered.finish(id, self)).collect()
    }
}

/// The rows of one program by device, before they are added up.
#[derive(Default)]
struct Gathered<'a> {
    devices: BTreeMap<u8, ProgramDevice>,
    /// The row that has the name: the program's own, or else the first of a kernel.
    named: Option<&'a Row>,
}

impl<'a> Gathered<'a> {
    fn add(&mut self, row: &'a Row) {
        let device = self.devices.entry(row.device).or_default();
        device.device = row.device;
        match row.kind() {
            Some(RowKind::Kernel) => {
                device.kernels.push(Kernel::from_row(row));
                device.kernel_bytes = device.kernel_bytes.saturating_add(row.size);
            }
            Some(RowKind::Cb) => {
                device.cb_bytes = device.cb_bytes.saturating_add(row.size);
                device.cb_count += 1;
            }
            Some(RowKind::Program) => {
                device.dispatches = row.size;
                device.cache_hits = row.address;
                device.cache_misses = row.size.saturating_sub(row.address);
                device.last_dispatch = Some(row.time);
            }
            Some(RowKind::Buffer) | None => {}
        }
        self.consider_name(row);
    }

    fn consider_name(&mut self, row: &'a Row) {
        let rank = |row: &Row| match row.kind() {
            Some(RowKind::Program) => 2,
            Some(RowKind::Kernel) => 1,
            _ => 0,
        };
        if row.name != 0 && rank(row) > self.named.map_or(0, rank) {
            self.named = Some(row);
        }
    }

    fn finish(self, id: u64, segment: &Segment) -> Program {
        let name = self.named.and_then(|row| segment.name(row.name));
        let mut program = Program { id, name, ..Program::default() };
        for device in self.devices.into_values() {
            program.include(device);
        }
        program
    }
}

impl Program {
    fn include(&mut self, device: ProgramDevice) {
        let add = |sum: &mut u64, value: u64| *sum = sum.saturating_add(value);
        add(&mut self.kernel_bytes, device.kernel_bytes);
        add(&mut self.cb_bytes, device.cb_bytes);
        add(&mut self.cb_count, device.cb_count);
        add(&mut self.dispatches, device.dispatches);
        add(&mut self.cache_hits, device.cache_hits);
        add(&mut self.cache_misses, device.cache_misses);
        self.last_dispatch = self.last_dispatch.max(device.last_dispatch);
        for kernel in &device.kernels {
            self.late |= kernel.late;
            self.kernel_types.extend(kernel.kernel_type.filter(|t| !self.kernel_types.contains(t)));
        }
        self.devices.push(device);
    }
}

/// The hash of a kernel's binary, if the process reports one.
pub(crate) fn hash(row: &Row) -> Option<u64> {
    Some(row.address).filter(|hash| *hash != 0)
}
