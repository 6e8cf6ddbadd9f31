//! The exact counters of one process on one device, and what each event does to them.
//!
//! This is the only implementation of the accounting: the writer runs it on its private copy, the aggregator
//! and embedded readers on the copy they attached to. "Used" is defined here:
//!
//! - DRAM used = `dram` + `trace`;
//! - L1 used = `l1` + `l1_small` + resident circular buffers;
//! - ethernet L1 used = resident kernels on ethernet cores.
//!
//! All of this is *occupied* memory; requested bytes are kept beside it by class. Kernels on Tensix cores lie
//! in reserved memory and have figures of their own.
//!
//! Fabric and dispatch kernels are resident while loaded. Of the application programs, the one dispatched
//! last in each lane is resident.

use crate::class::Class;
use crate::describe::constants;
use crate::event::{Event, EventKind, flags};
use crate::words::viewed_struct;

/// More events than a process can emit in its lifetime.
pub const MAX_COUNT: u64 = 1 << 60;

constants! {
    pub(crate) LIMITS;
    /// More bytes than any one allocation or class of a device can hold. A larger claim is refused, so that
    /// sums over thousands of processes cannot overflow.
    pub const MAX_BYTES: u64 = 1 << 50;
    /// The most bytes of a program's kernels on one kind of cores: a dispatch has 32 bits for them.
    pub const MAX_KERNEL_BYTES: u64 = u32::MAX as u64;
    /// The number of lanes of a device: its sub-devices, each of which runs a program of its own.
    pub const LANES: usize = 8;
}

viewed_struct! {
    /// One class on one device. Freed is the difference between allocated and live.
    pub struct ClassCounters, size 64 {
        /// Bytes occupied now.
        0 => pub live_bytes: u64,
        /// Allocations live now.
        8 => pub live_count: u64,
        /// Bytes ever occupied, summed over all allocations.
        16 => pub alloc_bytes: u64,
        /// Allocations ever made.
        24 => pub alloc_count: u64,
        /// Largest `live_bytes` since the last reset.
        32 => pub peak_bytes: u64,
        /// When that was first reached, in ticks.
        40 => pub peak_time: u64,
        /// `live_count` at that time.
        48 => pub peak_count: u64,
        /// Bytes requested for what is live now.
        56 => pub requested_bytes: u64,
    }
}

viewed_struct! {
    /// The program dispatched last in a lane, and how much of it is resident. All zero in a lane that has
    /// none.
    pub struct Lane, size 32 {
        /// Its id.
        0 => pub program: u64,
        /// Bytes of its circular buffers.
        8 => pub cb_bytes: u64,
        /// Bytes of its kernels on Tensix cores.
        16 => pub kernel_bytes: u64,
        /// Bytes of its kernels on ethernet cores.
        24 => pub kernel_eth_bytes: u64,
    }
}

viewed_struct! {
    /// All counters of one process on one device. The first words change with every event.
    pub struct Counters, size 1216 {
        /// Position of the last event counted.
        0 => pub position: u64,
        /// Its time in ticks.
        8 => pub time: u64,
        /// Dispatches.
        16 => pub dispatches: u64,
        /// Dispatches that found the binary cached.
        24 => pub cached_dispatches: u64,
        /// Circular buffer bytes of resident programs: the sum over `lanes`.
        32 => pub cb_resident_bytes: u64,
        /// Kernel bytes of resident programs on Tensix cores: the sum over `lanes`.
        40 => pub kernel_resident_bytes: u64,
        /// Kernel bytes of resident programs on ethernet cores: the sum over `lanes`.
        48 => pub kernel_resident_eth_bytes: u64,
        /// Time of the last dispatch in ticks, 0 if there was none.
        56 => pub last_dispatch_time: u64,
        /// Largest DRAM used since the last reset.
        64 => pub dram_peak_bytes: u64,
        /// When that was first reached, in ticks.
        72 => pub dram_peak_time: u64,
        /// DRAM and trace buffers at that time.
        80 => pub dram_peak_count: u64,
        /// Bits of the lanes that have a resident program.
        88 => pub resident_lanes: u64,
        /// Largest L1 used since the last reset.
        96 => pub l1_peak_bytes: u64,
        /// When that was first reached, in ticks.
        104 => pub l1_peak_time: u64,
        /// L1 and L1_SMALL buffers at that time.
        112 => pub l1_peak_count: u64,
        /// Time of the last peak reset in ticks, 0 if there was none.
        120 => pub peak_reset_time: u64,
        /// Fabric and dispatch kernels on Tensix cores.
        128 => pub system_kernel_bytes: u64,
        /// Fabric and dispatch kernels on ethernet cores.
        136 => pub system_kernel_eth_bytes: u64,
        /// Largest ethernet L1 used since the last reset.
        144 => pub eth_peak_bytes: u64,
        /// When that was first reached, in ticks.
        152 => pub eth_peak_time: u64,
        /// Allocations that failed.
        160 => pub failed_allocs: u64,
        /// Time of the last failure in ticks, 0 if there was none.
        168 => pub last_failed_time: u64,
        /// 1 while the process reports the device as open.
        176 => pub open: u64,
        /// Kernel ring buffer: size, 0 if never reported.
        184 => pub kernel_ring_total_bytes: u64,
        /// Kernel ring buffer: bytes used.
        192 => pub kernel_ring_used_bytes: u64,
        /// Kernel ring buffer: programs in it.
        200 => pub kernel_ring_programs: u64,
        /// Zero.
        208 => pub reserved1: [u64; 6],
        /// The resident program of each lane.
        256 => pub lanes: [Lane; LANES],
        /// By [`Class`] code.
        512 => pub classes: [ClassCounters; Class::COUNT],
        /// By [`Class`] code, the part of `live_bytes` for which only the requested size is known.
        1088 => pub requested_basis_bytes: [u64; Class::COUNT],
        /// Zero.
        1160 => pub reserved2: [u64; 7],
    }
}

/// How much of a program is resident.
#[derive(Clone, Copy)]
enum Part {
    Cb,
    Kernel,
    KernelEthernet,
}

impl Lane {
    fn part(&mut self, part: Part) -> &mut u64 {
        match part {
            Part::Cb => &mut self.cb_bytes,
            Part::Kernel => &mut self.kernel_bytes,
            Part::KernelEthernet => &mut self.kernel_eth_bytes,
        }
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
    pub(crate) fn new(event: Event) -> Implausible {
        // By value: an event whose address is taken cannot stay in registers.
        let Event { stamp, kind, class, size, .. } = event;
        Implausible { position: stamp, kind, class, size }
    }
}

impl Counters {
    /// The counters of a device on which nothing has happened.
    pub const ZERO: Counters = bytemuck::zeroed();

    /// DRAM used now.
    #[inline]
    pub fn dram_used(&self) -> u64 {
        self.sum(Class::is_dram, |class| class.live_bytes)
    }

    /// L1 of Tensix cores used now, out of what the allocator can provide.
    #[inline]
    pub fn l1_used(&self) -> u64 {
        self.sum(Class::is_l1_buffer, |class| class.live_bytes) + self.cb_resident_bytes
    }

    /// What is used of device and host memory, by class. Circular buffers count as resident; kernels use
    /// nothing that the allocator provides. DRAM and trace add up to [`Counters::dram_used`], all others
    /// except host memory to [`Counters::l1_used`].
    pub fn used_by_class(&self) -> [u64; Class::COUNT] {
        Class::ALL.map(|class| match class {
            Class::Cb => self.cb_resident_bytes,
            _ if class.is_program_memory() => 0,
            _ => self.live(class),
        })
    }

    /// Bytes requested for what makes up [`Counters::dram_used`].
    pub fn dram_requested(&self) -> u64 {
        self.sum(Class::is_dram, |class| class.requested_bytes)
    }

    /// Bytes requested for what makes up [`Counters::l1_used`].
    pub fn l1_requested(&self) -> u64 {
        self.sum(Class::is_l1_buffer, |class| class.requested_bytes) + self.cb_resident_bytes
    }

    /// Resident kernel bytes on Tensix cores, of all types.
    #[inline]
    pub fn kernels_resident(&self) -> u64 {
        self.kernel_resident_bytes + self.system_kernel_bytes
    }

    /// The lane in which a program is resident, if any.
    pub fn lane_of(&self, program: u64) -> Option<usize> {
        (0..LANES).find(|lane| self.resident_lanes >> lane & 1 != 0 && self.lanes[*lane].program == program)
    }

    /// L1 of ethernet cores used now.
    #[inline]
    pub fn eth_used(&self) -> u64 {
        self.kernel_resident_eth_bytes + self.system_kernel_eth_bytes
    }

    /// The number of buffers that make up [`Counters::dram_used`].
    #[inline]
    pub fn dram_count(&self) -> u64 {
        self.sum(Class::is_dram, |class| class.live_count)
    }

    /// The number of buffers in L1 and L1_SMALL.
    #[inline]
    pub fn l1_count(&self) -> u64 {
        self.sum(Class::is_l1_buffer, |class| class.live_count)
    }

    /// Bytes of all loaded kernels, of all types and on all cores.
    pub fn kernel_loaded_bytes(&self) -> u64 {
        let kernels = Class::ALL.into_iter().filter(|class| class.kernel_type().is_some());
        kernels.map(|class| self.live(class)).sum()
    }

    /// A figure of all classes of a kind. Both are constants where it is called, so the loop is unrolled and only those
    /// classes are left of it.
    #[inline(always)]
    fn sum(&self, is_one: impl Fn(Class) -> bool, figure: impl Fn(&ClassCounters) -> u64) -> u64 {
        Class::ALL.into_iter().filter(|class| is_one(*class)).map(|class| figure(self.class(class))).sum()
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

    /// Whether honest events can lead to every figure. Must be checked before counters that came from another
    /// process are used: the sums above rely on it.
    pub fn is_plausible(&self) -> bool {
        let bytes = [
            self.system_kernel_bytes,
            self.system_kernel_eth_bytes,
            self.dram_peak_bytes,
            self.l1_peak_bytes,
            self.eth_peak_bytes,
        ];
        let counts = [self.dispatches, self.cached_dispatches, self.failed_allocs];
        bytes.iter().all(|bytes| *bytes <= 16 * MAX_BYTES)
            && counts.iter().all(|count| *count <= MAX_COUNT)
            && self.are_classes_plausible()
            && self.are_lanes_plausible()
            && self.dram_used() <= self.dram_peak_bytes
            && self.l1_used() <= self.l1_peak_bytes
            && self.eth_used() <= self.eth_peak_bytes
    }

    fn are_classes_plausible(&self) -> bool {
        self.classes.iter().zip(self.requested_basis_bytes).all(|(class, basis)| {
            class.live_bytes <= class.peak_bytes
                && class.peak_bytes <= MAX_BYTES
                && class.requested_bytes <= MAX_BYTES
                && basis <= class.live_bytes
                && class.live_count <= class.alloc_count
                && class.alloc_count <= MAX_COUNT
        })
    }

    /// Whether no lane has more than a program can have, empty lanes have nothing, and the sums match the
    /// lanes.
    fn are_lanes_plausible(&self) -> bool {
        let lanes = || self.lanes.iter().enumerate();
        let is_resident = |lane: usize| self.resident_lanes >> lane & 1 != 0;
        let each = lanes().all(|(number, lane)| {
            lane.cb_bytes <= MAX_BYTES
                && lane.kernel_bytes.max(lane.kernel_eth_bytes) <= MAX_KERNEL_BYTES
                && (is_resident(number) || *lane == bytemuck::zeroed())
        });
        let sum = |bytes: fn(&Lane) -> u64| lanes().map(|(_, lane)| bytes(lane)).sum::<u64>();
        each && self.resident_lanes < 1 << LANES
            && self.cb_resident_bytes == sum(|lane| lane.cb_bytes)
            && self.kernel_resident_bytes == sum(|lane| lane.kernel_bytes)
            && self.kernel_resident_eth_bytes == sum(|lane| lane.kernel_eth_bytes)
    }

    /// Whether an allocation of this class can be added: see [`Implausible`].
    #[inline(always)]
    pub fn has_room(&self, class: Class, size: u64, requested: u64) -> bool {
        let counters = &self.classes[class as usize];
        // Neither sum overflows: live bytes were checked when they were added.
        size <= MAX_BYTES
            && requested <= MAX_BYTES
            && counters.live_bytes.wrapping_add(size) <= MAX_BYTES
            && counters.requested_bytes.wrapping_add(requested) <= MAX_BYTES
    }

    /// Applies an event. On an error nothing has changed.
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
        let requested = event.requested();
        if !self.has_room(class, event.size, requested) {
            return Err(Implausible::new(*event));
        }
        if event.has(flags::REQUESTED) {
            let basis = &mut self.requested_basis_bytes[class as usize];
            *basis = basis.wrapping_add(event.size);
        }
        let counters = &mut self.classes[class as usize];
        counters.live_bytes = counters.live_bytes.wrapping_add(event.size);
        counters.live_count += 1;
        counters.requested_bytes = counters.requested_bytes.wrapping_add(requested);
        counters.alloc_bytes = counters.alloc_bytes.wrapping_add(event.size);
        counters.alloc_count += 1;
        if counters.live_bytes > counters.peak_bytes {
            counters.peak_bytes = counters.live_bytes;
            counters.peak_time = event.time;
            counters.peak_count = counters.live_count;
        }
        if class.is_dram() {
            self.raise_dram_peak(event.time);
        } else if class.is_l1_buffer() {
            self.raise_l1_peak(event.time);
        } else if class.is_system_kernel() {
            // Bounded: it is a part of the class's live bytes.
            *self.system_kernels(event) += event.size;
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
        let requested = counters.requested_bytes.checked_sub(event.requested()).ok_or_else(impossible)?;
        let known = if event.has(flags::REQUESTED) { 0 } else { event.size };
        let basis = self.requested_basis_bytes[class as usize];
        let basis = basis.checked_sub(event.size - known).ok_or_else(impossible)?;
        if basis > live_bytes {
            return Err(impossible());
        }
        if class.is_program_memory() {
            self.remove_resident(class, *event)?;
        }
        self.requested_basis_bytes[class as usize] = basis;
        let counters = &mut self.classes[class as usize];
        counters.live_bytes = live_bytes;
        counters.live_count = live_count;
        counters.requested_bytes = requested;
        Ok(())
    }

    /// Subtracts what is freed from the resident bytes that it was part of.
    #[inline(never)]
    fn remove_resident(&mut self, class: Class, event: Event) -> Result<(), Implausible> {
        // By value and out of line: an event whose address is taken cannot stay in registers, and buffers are freed far
        // more often than what programs consist of.
        let impossible = || Implausible::new(event);
        if class.is_system_kernel() {
            let bytes = self.system_kernels(&event);
            *bytes = bytes.checked_sub(event.size).ok_or_else(impossible)?;
            return Ok(());
        }
        if !event.has(flags::RESIDENT) {
            return Ok(());
        }
        if u32::from(event.place) >= 1 << LANES {
            return Err(impossible());
        }
        let part = match class {
            Class::Cb => Part::Cb,
            _ if event.has(flags::ETHERNET) => Part::KernelEthernet,
            _ => Part::Kernel,
        };
        let is_in = |number: &usize| event.place >> number & 1 != 0;
        if (0..LANES).filter(is_in).any(|number| *self.lanes[number].part(part) < event.size) {
            return Err(impossible());
        }
        for number in (0..LANES).filter(is_in) {
            *self.lanes[number].part(part) -= event.size;
            // Not less than the part of the lane.
            let sum = self.resident(part);
            *sum = sum.wrapping_sub(event.size);
        }
        Ok(())
    }

    fn resident(&mut self, part: Part) -> &mut u64 {
        match part {
            Part::Cb => &mut self.cb_resident_bytes,
            Part::Kernel => &mut self.kernel_resident_bytes,
            Part::KernelEthernet => &mut self.kernel_resident_eth_bytes,
        }
    }

    #[inline]
    fn dispatch(&mut self, event: &Event) -> Result<(), Implausible> {
        let (times, resident) = (event.times(), event.has(flags::RESIDENT));
        let fits = event.size <= MAX_BYTES && usize::from(event.lane()) < LANES;
        if times == 0
            || self.dispatches.max(self.cached_dispatches).wrapping_add(times) > MAX_COUNT
            || resident && !fits
        {
            return Err(Implausible::new(*event));
        }
        self.dispatches += times;
        self.cached_dispatches += if event.has(flags::CACHED) { times } else { 0 };
        self.last_dispatch_time = event.time;
        if resident {
            self.enter_lane(event);
            self.raise_l1_peak(event.time);
            self.raise_eth_peak(event.time);
        }
        Ok(())
    }

    /// Makes the program of a dispatch resident in its lane. Its memory exists only once, so it leaves the
    /// lane in which it was resident before.
    #[inline]
    fn enter_lane(&mut self, event: &Event) {
        let number = usize::from(event.lane()) % LANES;
        let others = self.resident_lanes & !(1 << number);
        if others != 0 {
            self.leave_lanes(others, event.id);
        }
        self.leave_lane(number);
        let [kernel_bytes, kernel_eth_bytes] = event.dispatched_kernels();
        self.lanes[number] = Lane { program: event.id, cb_bytes: event.size, kernel_bytes, kernel_eth_bytes };
        self.resident_lanes |= 1 << number;
        self.cb_resident_bytes = self.cb_resident_bytes.wrapping_add(event.size);
        self.kernel_resident_bytes = self.kernel_resident_bytes.wrapping_add(kernel_bytes);
        self.kernel_resident_eth_bytes = self.kernel_resident_eth_bytes.wrapping_add(kernel_eth_bytes);
    }

    #[cold]
    fn leave_lanes(&mut self, lanes: u64, program: u64) {
        for number in (0..LANES).filter(|number| lanes >> number & 1 != 0) {
            if self.lanes[number].program == program {
                self.leave_lane(number);
                self.lanes[number] = bytemuck::zeroed();
                self.resident_lanes &= !(1 << number);
            }
        }
    }

    /// Subtracts a lane's program from the sums. Wrapping: the sums are those of the lanes.
    #[inline]
    fn leave_lane(&mut self, number: usize) {
        let Lane { cb_bytes, kernel_bytes, kernel_eth_bytes, .. } = self.lanes[number];
        self.cb_resident_bytes = self.cb_resident_bytes.wrapping_sub(cb_bytes);
        self.kernel_resident_bytes = self.kernel_resident_bytes.wrapping_sub(kernel_bytes);
        self.kernel_resident_eth_bytes = self.kernel_resident_eth_bytes.wrapping_sub(kernel_eth_bytes);
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
                self.kernel_ring_programs = event.ring_programs();
            }
            EventKind::ProgramEnd if event.has(flags::RESIDENT) => {
                self.leave_lanes(self.resident_lanes & u64::from(event.place), event.id);
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

    /// Converts every time in the counters, for publication in another clock.
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
