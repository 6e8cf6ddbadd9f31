//! A naive model of one device: a list of what is live, from which everything is added up each time.

use shm_layout::{Class, Counters, Event, EventKind, flags};

/// Something live.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Thing {
    pub(crate) class: Class,
    pub(crate) size: u64,
    /// Bytes requested; only for a buffer do they differ from what it occupies.
    pub(crate) requested: u64,
    /// Whether `size` is only the requested size.
    pub(crate) basis: bool,
    pub(crate) ethernet: bool,
    /// Program of a circular buffer or application kernel.
    pub(crate) program: u64,
    /// The lane whose last dispatch brought its bytes.
    pub(crate) lane: Option<u8>,
}

/// What a command does to the device; `pick` chooses among what is live.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    Allocate(Thing),
    Free {
        pick: usize,
    },
    Dispatch {
        program: u64,
        cached: bool,
        lane: u8,
        times: u32,
    },
    /// Ends a program: removes what is resident of it from its lane.
    EndProgram(u64),
    ResetPeaks,
    Fail,
    Open(bool),
    Gauge(u64),
}

/// A peak and when it was first reached.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Peak {
    pub(crate) bytes: u64,
    pub(crate) time: u64,
    pub(crate) count: u64,
}

impl Peak {
    fn raise(&mut self, bytes: u64, count: u64, time: u64) {
        if bytes > self.bytes {
            *self = Peak { bytes, time, count };
        }
    }
}

#[derive(Default)]
pub(crate) struct Oracle {
    pub(crate) live: Vec<Thing>,
    pub(crate) time: u64,
    dispatches: [u64; 2],
    failed: u64,
    allocated: [(u64, u64); Class::COUNT],
    class_peaks: [Peak; Class::COUNT],
    dram_peak: Peak,
    l1_peak: Peak,
    eth_peak: Peak,
}

fn is_system(thing: &Thing) -> bool {
    matches!(thing.class, Class::KernelFabric | Class::KernelDispatch)
}

impl Oracle {
    fn sum(&self, of: impl Fn(&Thing) -> bool) -> (u64, u64) {
        let sizes = self.live.iter().filter(|thing| of(thing)).map(|thing| thing.size);
        (sizes.clone().sum(), sizes.count() as u64)
    }

    fn class(&self, class: Class) -> (u64, u64) {
        self.sum(|thing| thing.class == class)
    }

    fn dram(&self) -> (u64, u64) {
        self.sum(|thing| matches!(thing.class, Class::Dram | Class::Trace))
    }

    fn l1_buffers(&self) -> (u64, u64) {
        self.sum(|thing| matches!(thing.class, Class::L1 | Class::L1Small))
    }

    fn l1(&self) -> u64 {
        self.l1_buffers().0 + self.sum(|thing| thing.class == Class::Cb && thing.lane.is_some()).0
    }

    fn kernels(&self, ethernet: bool) -> u64 {
        let resident = |thing: &Thing| is_system(thing) || thing.lane.is_some();
        let is_kernel = |thing: &Thing| thing.class.kernel_type().is_some();
        self.sum(|thing| is_kernel(thing) && thing.ethernet == ethernet && resident(thing)).0
    }

    fn eth(&self) -> u64 {
        self.kernels(true)
    }

    /// Device and host memory that is used.
    fn used(&self) -> u64 {
        self.dram().0 + self.l1() + self.class(Class::SystemMemory).0
    }

    /// Executes a command and returns its event; `None` if there is nothing to free.
    pub(crate) fn carry_out(&mut self, command: &Command) -> Option<Event> {
        self.time += 10;
        let event = match command {
            Command::Allocate(thing) => self.allocate(thing),
            Command::Free { .. } if self.live.is_empty() => return None,
            Command::Free { pick } => self.free(*pick),
            Command::Dispatch { program, cached, lane, times } => {
                self.dispatch(*program, *cached, *lane, *times)
            }
            Command::EndProgram(program) => self.end_program(*program),
            Command::ResetPeaks => self.reset_peaks(),
            Command::Fail => {
                self.failed += 1;
                Event::new(EventKind::AllocFailed, 0)
            }
            Command::Open(true) => Event::new(EventKind::DeviceOpen, 0),
            Command::Open(false) => Event::new(EventKind::DeviceClose, 0),
            Command::Gauge(total) => {
                Event { size: *total, address: 1, aux: 2, ..Event::new(EventKind::Gauge, 0) }
            }
        };
        self.raise_peaks();
        Some(Event { stamp: self.time / 10, time: self.time, ..event })
    }

    fn allocate(&mut self, thing: &Thing) -> Event {
        self.live.push(thing.clone());
        let allocated = &mut self.allocated[thing.class as usize];
        *allocated = (allocated.0 + thing.size, allocated.1 + 1);
        let kind = match thing.class {
            Class::Cb => EventKind::CbAlloc,
            class if class.kernel_type().is_some() => EventKind::KernelLoad,
            _ => EventKind::Alloc,
        };
        event_about(kind, thing)
    }

    fn free(&mut self, pick: usize) -> Event {
        let thing = self.live.remove(pick % self.live.len());
        let kind = match thing.class {
            Class::Cb => EventKind::CbFree,
            class if class.kernel_type().is_some() => EventKind::KernelUnload,
            _ => EventKind::Free,
        };
        event_about(kind, &thing)
    }

    fn dispatch(&mut self, program: u64, cached: bool, lane: u8, times: u32) -> Event {
        for thing in &mut self.live {
            if thing.program == program && matches!(thing.class, Class::Cb | Class::KernelApplication) {
                thing.lane = Some(lane);
            } else if thing.lane == Some(lane) {
                thing.lane = None;
            }
        }
        self.dispatches[0] += u64::from(times);
        self.dispatches[1] += if cached { u64::from(times) } else { 0 };
        let resident = |class, ethernet| {
            let of_program = |thing: &Thing| thing.program == program && thing.lane.is_some();
            self.sum(|thing| of_program(thing) && thing.class == class && thing.ethernet == ethernet).0
        };
        let kernels = [false, true].map(|ethernet| resident(Class::KernelApplication, ethernet));
        Event {
            id: program,
            flags: flags::RESIDENT | if cached { flags::CACHED } else { 0 },
            size: resident(Class::Cb, false),
            aux: kernels[0] | kernels[1] << 32,
            address: u64::from(times),
            place: u16::from(lane),
            ..Event::new(EventKind::KernelDispatch, 0)
        }
    }

    fn end_program(&mut self, program: u64) -> Event {
        // Set in all lanes: only the one that it is in matters.
        self.live.iter_mut().filter(|thing| thing.program == program).for_each(|thing| thing.lane = None);
        Event { id: program, flags: flags::RESIDENT, place: 0xff, ..Event::new(EventKind::ProgramEnd, 0) }
    }

    fn reset_peaks(&mut self) -> Event {
        let time = self.time;
        for class in Class::ALL {
            let (bytes, count) = self.class(class);
            self.class_peaks[class as usize] = Peak { bytes, time, count };
        }
        self.dram_peak = Peak { bytes: self.dram().0, time, count: self.dram().1 };
        self.l1_peak = Peak { bytes: self.l1(), time, count: self.l1_buffers().1 };
        self.eth_peak = Peak { bytes: self.eth(), time, count: 0 };
        Event::new(EventKind::PeakReset, 0)
    }

    fn raise_peaks(&mut self) {
        for class in Class::ALL {
            let (bytes, count) = self.class(class);
            self.class_peaks[class as usize].raise(bytes, count, self.time);
        }
        let ((dram, dram_count), time) = (self.dram(), self.time);
        self.dram_peak.raise(dram, dram_count, time);
        self.l1_peak.raise(self.l1(), self.l1_buffers().1, time);
        self.eth_peak.raise(self.eth(), 0, time);
    }

    /// Compares every figure.
    pub(crate) fn check(&self, counters: &Counters) {
        assert_eq!(counters.dram_used(), self.dram().0);
        assert_eq!(counters.l1_used(), self.l1());
        assert_eq!(counters.eth_used(), self.eth());
        assert_eq!(counters.kernels_resident(), self.kernels(false));
        assert_eq!(counters.used_by_class().iter().sum::<u64>(), self.used());
        assert_eq!(
            (counters.dispatches, counters.cached_dispatches),
            (self.dispatches[0], self.dispatches[1])
        );
        assert_eq!(counters.failed_allocs, self.failed);
        for class in Class::ALL {
            let found = counters.class(class);
            assert_eq!((found.live_bytes, found.live_count), self.class(class), "{class:?}");
            assert_eq!((found.alloc_bytes, found.alloc_count), self.allocated[class as usize]);
            let of_class = || self.live.iter().filter(|thing| thing.class == class);
            assert_eq!(found.requested_bytes, of_class().map(|thing| thing.requested).sum::<u64>());
            let basis: u64 = of_class().filter(|thing| thing.basis).map(|thing| thing.size).sum();
            assert_eq!(counters.requested_basis_bytes[class as usize], basis);
            let peak = Peak { bytes: found.peak_bytes, time: found.peak_time, count: found.peak_count };
            assert_eq!(peak, self.class_peaks[class as usize], "{class:?}");
        }
        let peak = |bytes, time, count| Peak { bytes, time, count };
        let c = counters;
        assert_eq!(peak(c.dram_peak_bytes, c.dram_peak_time, c.dram_peak_count), self.dram_peak);
        assert_eq!(peak(c.l1_peak_bytes, c.l1_peak_time, c.l1_peak_count), self.l1_peak);
        assert_eq!(peak(c.eth_peak_bytes, c.eth_peak_time, 0), self.eth_peak);
        assert!(counters.is_plausible());
    }
}

fn event_about(kind: EventKind, thing: &Thing) -> Event {
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let is_buffer = matches!(kind, EventKind::Alloc | EventKind::Free);
    Event {
        class: thing.class as u8,
        size: thing.size,
        aux: if is_buffer { thing.requested } else { thing.program },
        flags: flag(thing.ethernet, flags::ETHERNET)
            | flag(thing.lane.is_some(), flags::RESIDENT)
            | flag(thing.basis, flags::REQUESTED),
        place: thing.lane.map_or(0, |lane| 1 << lane),
        ..Event::new(kind, 0)
    }
}
