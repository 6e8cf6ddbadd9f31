//! Exact counters of one process on one device, and what each event does to them.
//!
//! This is the only implementation of the accounting: the writer runs it on its private copy, the
//! aggregator and embedded readers run it on the copy that they attached to. "Used" is defined here:
//!
//! - DRAM used = `dram` + `trace`;
//! - L1 used = `l1` + `l1_small` + resident circular buffers + resident kernels on Tensix cores;
//! - ethernet L1 used = resident kernels on ethernet cores.
//!
//! Resident are fabric and dispatch kernels while loaded, and of the application programs the one
//! that was dispatched last.

use crate::class::Class;
use crate::event::{Event, EventKind, flags};
use crate::words::viewed_struct;

/// More bytes than any one allocation or class of a device can hold. A claim above it is refused, so
/// that sums over thousands of processes cannot overflow.
pub const MAX_BYTES: u64 = 1 << 50;

/// More events than a process can emit in its life.
pub const MAX_COUNT: u64 = 1 << 60;

viewed_struct! {
    /// One class on one device. What was freed is the difference of allocated and live.
    pub struct ClassCounters, size 64 {
        /// Bytes live now.
        0 => pub live_bytes: u64,
        /// Allocations live now.
        8 => pub live_count: u64,
        /// Bytes ever allocated.
        16 => pub alloc_bytes: u64,
        /// Allocations ever made.
        24 => pub alloc_count: u64,
        /// Largest `live_bytes` since the last reset.
        32 => pub peak_bytes: u64,
        /// When that was reached first, in ticks.
        40 => pub peak_time: u64,
        /// `live_count` at that time.
        48 => pub peak_count: u64,
        /// Zero.
        56 => pub reserved: u64,
    }
}

viewed_struct! {
    /// All counters of one process on one device. The first words change with every event.
    pub struct Counters, size 832 {
        /// Position of the last event counted in.
        0 => pub position: u64,
        /// Its time in ticks.
        8 => pub time: u64,
        /// Dispatches.
        16 => pub dispatches: u64,
        /// Dispatches that found the binary cached.
        24 => pub cached_dispatches: u64,
        /// Circular buffer bytes of the resident program.
        32 => pub cb_resident_bytes: u64,
        /// Kernel bytes of the resident program on Tensix cores.
        40 => pub kernel_resident_bytes: u64,
        /// Kernel bytes of the resident program on ethernet cores.
        48 => pub kernel_resident_eth_bytes: u64,
        /// The program dispatched last.
        56 => pub resident_program: u64,
        /// Largest DRAM used since the last reset.
        64 => pub dram_peak_bytes: u64,
        /// When that was reached first, in ticks.
        72 => pub dram_peak_time: u64,
        /// DRAM and trace buffers at that time.
        80 => pub dram_peak_count: u64,
        /// Zero.
        88 => pub reserved1: u64,
        /// Largest L1 used since the last reset.
        96 => pub l1_peak_bytes: u64,
        /// When that was reached first, in ticks.
        104 => pub l1_peak_time: u64,
        /// L1 and L1_SMALL buffers at that time.
        112 => pub l1_peak_count: u64,
        /// Time of the last dispatch in ticks, 0 if there was none.
        120 => pub last_dispatch_time: u64,
        /// Fabric and dispatch kernels on Tensix cores.
        128 => pub system_kernel_bytes: u64,
        /// Fabric and dispatch kernels on ethernet cores.
        136 => pub system_kernel_eth_bytes: u64,
        /// Largest ethernet L1 used since the last reset.
        144 => pub eth_peak_bytes: u64,
        /// When that was reached first, in ticks.
        152 => pub eth_peak_time: u64,
        /// Allocations that failed.
        160 => pub failed_allocs: u64,
        /// Time of the last failure in ticks, 0 if there was none.
        168 => pub last_failed_time: u64,
        /// 1 while the process says that it has the device open.
        176 => pub open: u64,
        /// Time of the last peak reset in ticks, 0 if there was none.
        184 => pub peak_reset_time: u64,
        /// Kernel ring buffer: size, 0 if never reported.
        192 => pub kernel_ring_total_bytes: u64,
        /// Kernel ring buffer: bytes used.
        200 => pub kernel_ring_used_bytes: u64,
        /// Kernel ring buffer: programs in it.
        208 => pub kernel_ring_programs: u64,
        /// Zero.
        216 => pub reserved3: [u64; 5],
        /// By [`Class`] code.
        256 => pub classes: [ClassCounters; Class::COUNT],
    }
}

/// An event that cannot follow the state it was applied to: more freed than was live, or sizes beyond
/// [`MAX_BYTES`]. Only a broken or hostile segment has such events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {position} is impossible: kind {kind}, class {class}, {size} bytes")]
pub struct Implausible {
    /// Position of the event.
    pub position: u64,
    /// Its kind code.
    pub kind: u8,
    /// Its class code.
    pub class: u8,
    /// Its size.
    pub size: u64,
}

impl Implausible {
    #[cold]
    fn new(event: Event) -> Implausible {
        // By value: an event whose address is taken cannot stay in registers.
        let Event { stamp, kind, class, size, .. } = event;
        Implausible { position: stamp, kind, class, size }
    }
}

impl Counters {
    /// Counters of a device that nothing happened on.
    pub const ZERO: Counters = bytemuck::zeroed();

    /// DRAM used now.
    #[inline]
    pub fn dram_used(&self) -> u64 {
        self.live(Class::Dram) + self.live(Class::Trace)
    }

    /// L1 of Tensix cores used now.
    #[inline]
    pub fn l1_used(&self) -> u64 {
        self.live(Class::L1)
            + self.live(Class::L1Small)
            + self.cb_resident_bytes
            + self.kernel_resident_bytes
            + self.system_kernel_bytes
    }

    /// What is used of device and host memory, by class: circular buffers and kernels as they are resident on
    /// Tensix cores. DRAM and trace add up to [`Counters::dram_used`], all others but host memory to
    /// [`Counters::l1_used`].
    pub fn used_by_class(&self) -> [u64; Class::COUNT] {
        let mut bytes = [0; Class::COUNT];
        for class in [Class::Dram, Class::Trace, Class::L1, Class::L1Small, Class::SystemMemory] {
            bytes[class as usize] = self.live(class);
        }
        bytes[Class::Cb as usize] = self.cb_resident_bytes;
        bytes[Class::KernelApplication as usize] = self.kernel_resident_bytes;
        // Both types of system kernels on Tensix cores are kept in one sum. Fabric kernels are the ones that
        // run on ethernet cores, so dispatch kernels come first.
        let dispatch = self.live(Class::KernelDispatch).min(self.system_kernel_bytes);
        bytes[Class::KernelDispatch as usize] = dispatch;
        bytes[Class::KernelFabric as usize] = self.system_kernel_bytes - dispatch;
        bytes
    }

    /// L1 of ethernet cores used now.
    #[inline]
    pub fn eth_used(&self) -> u64 {
        self.kernel_resident_eth_bytes + self.system_kernel_eth_bytes
    }

    /// Buffers that make up [`Counters::dram_used`].
    #[inline]
    pub fn dram_count(&self) -> u64 {
        self.class(Class::Dram).live_count + self.class(Class::Trace).live_count
    }

    /// Buffers in L1 and L1_SMALL.
    #[inline]
    pub fn l1_count(&self) -> u64 {
        self.class(Class::L1).live_count + self.class(Class::L1Small).live_count
    }

    /// Bytes of all loaded kernels, whatever their type and cores.
    pub fn kernel_loaded_bytes(&self) -> u64 {
        [Class::KernelApplication, Class::KernelFabric, Class::KernelDispatch]
            .into_iter()
            .map(|class| self.live(class))
            .sum()
    }

    /// The counters of one class.
    #[inline]
    pub fn class(&self, class: Class) -> &ClassCounters {
        &self.classes[class as usize]
    }

    #[inline]
    fn live(&self, class: Class) -> u64 {
        self.classes[class as usize].live_bytes
    }

    /// Whether every figure is one that honest events can lead to. Ask before using counters that came
    /// from another process: the sums above rely on it.
    pub fn is_plausible(&self) -> bool {
        let bytes = [
            self.cb_resident_bytes,
            self.kernel_resident_bytes,
            self.kernel_resident_eth_bytes,
            self.system_kernel_bytes,
            self.system_kernel_eth_bytes,
            self.dram_peak_bytes,
            self.l1_peak_bytes,
            self.eth_peak_bytes,
        ];
        let counts = [self.dispatches, self.cached_dispatches, self.failed_allocs];
        bytes.iter().all(|bytes| *bytes <= 8 * MAX_BYTES)
            && counts.iter().all(|count| *count <= MAX_COUNT)
            && self.classes.iter().all(|class| {
                class.live_bytes <= class.peak_bytes
                    && class.peak_bytes <= MAX_BYTES
                    && class.live_count <= class.alloc_count
                    && class.alloc_count <= MAX_COUNT
            })
            && self.dram_used() <= self.dram_peak_bytes
            && self.l1_used() <= self.l1_peak_bytes
            && self.eth_used() <= self.eth_peak_bytes
    }

    /// Counts an event in. On an error nothing has changed.
    #[inline(always)]
    pub fn apply(&mut self, event: &Event) -> Result<(), Implausible> {
        match event.kind() {
            Some(EventKind::Alloc | EventKind::CbAlloc | EventKind::KernelLoad) => self.add(event)?,
            Some(EventKind::Free | EventKind::CbFree | EventKind::KernelUnload) => self.remove(event)?,
            Some(EventKind::KernelDispatch) => self.dispatch(event)?,
            Some(kind) => self.note(kind, event),
            None => {}
        }
        self.position = event.stamp;
        self.time = event.time;
        Ok(())
    }

    #[inline(always)]
    fn add(&mut self, event: &Event) -> Result<(), Implausible> {
        let class = event.class().ok_or_else(|| Implausible::new(*event))?;
        let counters = &mut self.classes[class as usize];
        // Both are far from overflowing: what is live was checked when it was added.
        let live = counters.live_bytes.wrapping_add(event.size);
        if event.size > MAX_BYTES || live > MAX_BYTES {
            return Err(Implausible::new(*event));
        }
        counters.live_bytes = live;
        counters.live_count += 1;
        counters.alloc_bytes = counters.alloc_bytes.wrapping_add(event.size);
        counters.alloc_count += 1;
        if live > counters.peak_bytes {
            counters.peak_bytes = live;
            counters.peak_time = event.time;
            counters.peak_count = counters.live_count;
        }
        // Comparisons: a match would be a jump through a table.
        if class <= Class::Trace {
            self.raise_dram_peak(event.time);
        } else if class <= Class::L1Small {
            self.raise_l1_peak(event.time);
        } else if class.is_system_kernel() {
            // Bounded: a part of the class's live bytes.
            *self.system_kernels(event) += event.size;
            self.raise_l1_peak(event.time);
            self.raise_eth_peak(event.time);
        }
        Ok(())
    }

    #[inline(always)]
    fn remove(&mut self, event: &Event) -> Result<(), Implausible> {
        let impossible = || Implausible::new(*event);
        let class = event.class().ok_or_else(impossible)?;
        let counters = &self.classes[class as usize];
        let live_bytes = counters.live_bytes.checked_sub(event.size).ok_or_else(impossible)?;
        let live_count = counters.live_count.checked_sub(1).ok_or_else(impossible)?;
        self.remove_resident(class, event)?;
        let counters = &mut self.classes[class as usize];
        counters.live_bytes = live_bytes;
        counters.live_count = live_count;
        Ok(())
    }

    /// Takes what is freed out of the resident bytes that it was part of.
    #[inline(always)]
    fn remove_resident(&mut self, class: Class, event: &Event) -> Result<(), Implausible> {
        if class < Class::Cb {
            return Ok(());
        }
        let part = match class {
            Class::KernelFabric | Class::KernelDispatch => self.system_kernels(event),
            Class::Cb if event.has(flags::RESIDENT) => &mut self.cb_resident_bytes,
            Class::KernelApplication if event.has(flags::RESIDENT | flags::ETHERNET) => {
                &mut self.kernel_resident_eth_bytes
            }
            Class::KernelApplication if event.has(flags::RESIDENT) => &mut self.kernel_resident_bytes,
            _ => return Ok(()),
        };
        *part = part.checked_sub(event.size).ok_or_else(|| Implausible::new(*event))?;
        Ok(())
    }

    #[inline]
    fn dispatch(&mut self, event: &Event) -> Result<(), Implausible> {
        if event.size.max(event.address).max(event.aux) > MAX_BYTES {
            return Err(Implausible::new(*event));
        }
        self.dispatches += 1;
        self.cached_dispatches += u64::from(event.has(flags::CACHED));
        self.last_dispatch_time = event.time;
        if event.has(flags::RESIDENT) {
            self.kernel_resident_bytes = event.size;
            self.cb_resident_bytes = event.address;
            self.kernel_resident_eth_bytes = event.aux;
            self.resident_program = event.id;
            self.raise_l1_peak(event.time);
            self.raise_eth_peak(event.time);
        }
        Ok(())
    }

    fn note(&mut self, kind: EventKind, event: &Event) {
        match kind {
            EventKind::AllocFailed => {
                self.failed_allocs += 1;
                self.last_failed_time = event.time;
            }
            EventKind::PeakReset => self.reset_peaks(event.time),
            EventKind::DeviceOpen | EventKind::DeviceClose => {
                self.open = u64::from(kind == EventKind::DeviceOpen);
            }
            EventKind::Gauge => {
                self.kernel_ring_total_bytes = event.size;
                self.kernel_ring_used_bytes = event.address;
                self.kernel_ring_programs = event.aux;
            }
            _ => {}
        }
    }

    #[inline]
    fn system_kernels(&mut self, event: &Event) -> &mut u64 {
        if event.has(flags::ETHERNET) {
            &mut self.system_kernel_eth_bytes
        } else {
            &mut self.system_kernel_bytes
        }
    }

    #[inline]
    fn raise_dram_peak(&mut self, time: u64) {
        let used = self.dram_used();
        if used > self.dram_peak_bytes {
            self.dram_peak_bytes = used;
            self.dram_peak_time = time;
            self.dram_peak_count = self.dram_count();
        }
    }

    #[inline]
    fn raise_l1_peak(&mut self, time: u64) {
        let used = self.l1_used();
        if used > self.l1_peak_bytes {
            self.l1_peak_bytes = used;
            self.l1_peak_time = time;
            self.l1_peak_count = self.l1_count();
        }
    }

    #[inline]
    fn raise_eth_peak(&mut self, time: u64) {
        let used = self.eth_used();
        if used > self.eth_peak_bytes {
            self.eth_peak_bytes = used;
            self.eth_peak_time = time;
        }
    }

    fn reset_peaks(&mut self, time: u64) {
        for class in &mut self.classes {
            class.peak_bytes = class.live_bytes;
            class.peak_time = time;
            class.peak_count = class.live_count;
        }
        self.dram_peak_bytes = self.dram_used();
        self.dram_peak_time = time;
        self.dram_peak_count = self.dram_count();
        self.l1_peak_bytes = self.l1_used();
        self.l1_peak_time = time;
        self.l1_peak_count = self.l1_count();
        self.eth_peak_bytes = self.eth_used();
        self.eth_peak_time = time;
        self.peak_reset_time = time;
    }

    /// Converts every time in it, for publication in another clock.
    pub fn map_times(&mut self, convert: impl Fn(u64) -> u64) {
        let fixed = [
            &mut self.time,
            &mut self.dram_peak_time,
            &mut self.l1_peak_time,
            &mut self.eth_peak_time,
            &mut self.last_dispatch_time,
            &mut self.last_failed_time,
            &mut self.peak_reset_time,
        ];
        let classes = self.classes.iter_mut().map(|class| &mut class.peak_time);
        for time in fixed.into_iter().chain(classes) {
            if *time != 0 {
                *time = convert(*time);
            }
        }
    }
}
