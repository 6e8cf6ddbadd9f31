//! Many processes with many devices: trackers of this process, each with a segment of its own.

use fastrand::Rng;
use tt_shm_aggregator::{Aggregator, Config};
use tt_shm_measure::scene::Scene;
use tt_shm_measure::sink::chip;
use tt_shm_measure::workload::SIZE;
use tt_shm_writer::{Alloc, BufferType, DEFAULT_RING_SLOTS, Device, ExclusiveTracker, Record};

/// How large a crowd is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Segments.
    pub processes: usize,
    /// Devices that each process uses.
    pub devices: usize,
    /// Live allocations of each process, on its devices in turn.
    pub live: usize,
}

/// One that is as good as a process.
#[derive(Debug)]
struct Member {
    tracker: ExclusiveTracker,
    devices: Vec<Device>,
    live: usize,
    random: Rng,
}

impl Member {
    fn new(scene: &Scene, size: Size) -> Member {
        let tracker = scene.builder().open().expect("a segment");
        let Ok(tracker) = tracker.into_exclusive() else { panic!("the only handle") };
        let register = |id| tracker.register_device(&chip(id)).expect("a device");
        let devices: Vec<Device> = (0..size.devices as u64).map(register).collect();
        let member = Member { tracker, devices, live: size.live, random: Rng::with_seed(1) };
        for id in 0..size.live {
            member.alloc(id);
        }
        member
    }

    fn alloc(&self, id: usize) {
        let device = self.devices[id % self.devices.len()];
        self.tracker.alloc(device, Alloc::new(BufferType::Dram, id as u64, SIZE)).expect("not live");
    }

    fn free(&self, id: usize) {
        let device = self.devices[id % self.devices.len()];
        self.tracker.free(device, id as u64).expect("live");
    }

    fn pair(&mut self) {
        let id = self.random.usize(..self.live);
        self.free(id);
        self.alloc(id);
    }
}

/// All of them.
#[derive(Debug)]
pub struct Crowd {
    members: Vec<Member>,
    size: Size,
}

impl Crowd {
    /// Opens all segments.
    pub fn new(scene: &Scene, size: Size) -> Crowd {
        let members = (0..size.processes).map(|_| Member::new(scene, size)).collect();
        Crowd { members, size }
    }

    /// Fills every ring with new events, members taking turns after so many, and says how many in all.
    pub fn fill(&mut self, turn: u64) -> u64 {
        // Not to the last slot: a reader may not be lapped.
        let each = (DEFAULT_RING_SLOTS - 64) / turn * turn;
        for _ in 0..each / turn {
            for member in &mut self.members {
                for _ in 0..turn / 2 {
                    member.pair();
                }
            }
        }
        each * self.members.len() as u64
    }

    /// One more allocation of the first member on its first device.
    pub fn alloc(&self, number: usize) {
        // A multiple of the number of devices, and not in use.
        self.members[0].alloc((self.size.live + 1 + number) * self.size.devices);
    }

    /// Bytes that are live on the first device.
    pub fn first_device_bytes(&self) -> u64 {
        let each = self.size.live.div_ceil(self.size.devices);
        (each * self.size.processes) as u64 * SIZE
    }
}

/// An aggregator that follows a scene's trackers. They are this process's: files of the dead, if there are any,
/// are somebody else's affair.
pub fn observer(scene: &Scene) -> Aggregator {
    Aggregator::new(Config { reap: false, ..Config::new(scene.namespace.clone()) }).expect("/dev/shm")
}

/// Folds so many events, all of which are old enough.
pub fn fold(aggregator: &mut Aggregator, events: u64) {
    let mut folded = 0;
    while folded < events {
        folded += aggregator.poll().events;
    }
    assert_eq!(folded, events);
}
