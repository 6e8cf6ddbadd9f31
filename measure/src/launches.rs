//! Launches of programs, in a loop with what a host does between them.

use crate::clock::Stopwatch;
use crate::host_work::HostWork;
use crate::message::{Kind, place};
use crate::sink::{WrongSum, chip};
use crate::socket::SocketClient;
use tt_shm_writer::{
    CircularBuffer, CoreType, Device, Kernel, KernelType, Mesh, ProgramBinaryStatus, Record, Tracker,
};

const KERNEL_BYTES: u64 = 100 << 10;
const CORES: u32 = 64;

/// Which launches a loop is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launch {
    /// The same program again, which is on the devices.
    Cached,
    /// A program that was never seen.
    First,
}

impl Launch {
    /// As it is called in results.
    pub fn name(self) -> &'static str {
        match self {
            Launch::Cached => "cached dispatch",
            Launch::First => "first launch",
        }
    }

    /// Nanoseconds per dispatch of a loop. Programs are numbered on from `program`.
    pub fn round(self, host: &Host, work: &mut HostWork, dispatches: u64, program: &mut u64) -> f64 {
        let clock = Stopwatch::get();
        let mut ticks = 0;
        host.prepare(0);
        for _ in 0..dispatches {
            *program += 1;
            let start = clock.ticks();
            work.run();
            match self {
                Launch::First => host.first_launch(*program),
                Launch::Cached => host.dispatch(),
            }
            ticks += clock.since(start);
            if self == Launch::First {
                host.end(*program);
            }
        }
        clock.ns(ticks) / dispatches as f64
    }
}

/// Who is told of a launch.
#[derive(Debug)]
pub enum Host {
    /// Nobody: the loop alone.
    Nothing,
    /// A tracker, for these devices.
    Tracked {
        /// The handle.
        tracker: Tracker,
        /// All devices.
        mesh: Mesh,
        /// One of them, to look at.
        first: Device,
    },
    /// And the number of devices.
    Socket(SocketClient, i32),
}

impl Host {
    /// A tracker that has so many devices.
    pub fn tracked(tracker: &Tracker, devices: usize) -> Host {
        let chips = 0..devices as u64;
        let devices: Vec<Device> =
            chips.map(|id| tracker.register_device(&chip(id)).expect("a device")).collect();
        Host::Tracked { tracker: tracker.clone(), first: devices[0], mesh: Mesh::new(devices) }
    }

    /// Loads program 0 if that was not done yet.
    pub fn prepare(&self, program: u64) {
        if let Host::Tracked { tracker, mesh, .. } = self {
            let kernels = [kernel(program)];
            let launch = tt_shm_writer::Launch::new(program, &kernels, ProgramBinaryStatus::Committed);
            tracker.launch(mesh, launch).expect("loaded or cached");
        }
    }

    /// The program's binary is on the devices.
    #[inline]
    pub fn dispatch(&self) {
        match self {
            Host::Nothing => {}
            Host::Tracked { tracker, mesh, .. } => tracker.dispatch(mesh, 0).expect("loaded"),
            Host::Socket(client, devices) => {
                for device in 0..*devices {
                    client.send(Kind::KernelLoad, device, 0, KERNEL_BYTES);
                }
            }
        }
    }

    /// A program that was never seen: a circular buffer, its kernel, its dispatch.
    #[inline]
    pub fn first_launch(&self, program: u64) {
        match self {
            Host::Nothing => {}
            Host::Tracked { tracker, mesh, .. } => {
                tracker.cb_alloc(mesh, CircularBuffer::new(program, 1, 4096, CORES)).expect("new");
                let kernels = [kernel(program)];
                let launch = tt_shm_writer::Launch::new(program, &kernels, ProgramBinaryStatus::NotSent);
                tracker.launch(mesh, launch).expect("new");
            }
            Host::Socket(client, devices) => {
                for device in 0..*devices {
                    client.send(Kind::Alloc, device, program, 4096 * u64::from(CORES));
                    client.send(Kind::KernelLoad, device, program, KERNEL_BYTES);
                }
            }
        }
    }

    /// Not timed: the loop would grow without end.
    pub fn end(&self, program: u64) {
        match self {
            Host::Nothing => {}
            Host::Tracked { tracker, mesh, .. } => tracker.program_end(mesh, program).expect("loaded"),
            Host::Socket(client, devices) => {
                for device in 0..*devices {
                    client.send(Kind::Free, device, program, 0);
                    client.send(Kind::KernelUnload, device, program, 0);
                }
            }
        }
    }

    /// A dispatch is counted on the first device, a first launch loads and an end unloads. Nothing may be
    /// told of program 1 otherwise.
    pub fn check(&self) -> Result<(), WrongSum> {
        let before = self.dispatches();
        self.prepare(0);
        self.dispatch();
        self.first_launch(1);
        let result = match self {
            Host::Nothing => Ok(()),
            Host::Tracked { tracker, .. } if !tracker.is_enabled() => Ok(()),
            Host::Tracked { .. } => WrongSum::check("dispatches counted", self.dispatches() - before, 3),
            Host::Socket(client, _) => {
                WrongSum::check("bytes of kernels", client.query(0)[place::KERNEL], 2 * KERNEL_BYTES)
            }
        };
        self.end(1);
        result
    }

    /// As the tracker counts them on the first device.
    fn dispatches(&self) -> u64 {
        match self {
            Host::Tracked { tracker, first, .. } => tracker.counters(*first).map_or(0, |now| now.dispatches),
            Host::Nothing | Host::Socket(..) => 0,
        }
    }
}

fn kernel(program: u64) -> Kernel {
    Kernel::new(program, KernelType::Application, CoreType::Tensix, KERNEL_BYTES, CORES)
}
