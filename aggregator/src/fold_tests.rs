//! The fold against plain addition.

use crate::clock::Clock;
use crate::model::Model;
use shm_layout::table::{DeviceStats, ProcessStats};
use shm_layout::{Class, Counters, DeviceEntry, Event, EventKind, flags};
use tt_shm_os::ClockKind;

/// A fixed sequence (splitmix64), so that a failure repeats.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (x ^ (x >> 31)) % limit
    }
}

fn model(processes: u64) -> Model {
    let mut model = Model::new(Clock::new(), 0, 1);
    for identity in 1..=processes {
        let stats = ProcessStats { identity, pid: identity, ..bytemuck::Zeroable::zeroed() };
        let row = model.add_process(stats, ClockKind::Monotonic).unwrap();
        model.add_device(row, &DeviceEntry { chip_id: 1, ..bytemuck::Zeroable::zeroed() });
    }
    model
}

fn shown(model: &Model) -> DeviceStats {
    model.device_stats(1, model.devices.get(0).unwrap())
}

fn event(kind: EventKind, class: Class, size: u64, stamp: u64) -> Event {
    Event { class: class as u8, size, stamp, time: stamp, ..Event::new(kind, 0) }
}

/// What a process holds: class and size of each allocation.
type Held = Vec<(Class, u64)>;

fn random_event(random: &mut Random, held: &mut Held, stamp: u64) -> Event {
    let classes = [Class::Dram, Class::Trace, Class::L1, Class::KernelDispatch, Class::SystemMemory];
    match random.below(10) {
        0..4 if !held.is_empty() => {
            let (class, size) = held.swap_remove(random.below(held.len() as u64) as usize);
            event(EventKind::Free, class, size, stamp)
        }
        9 => Event {
            size: random.below(50),
            address: random.below(50),
            aux: 0,
            ..event(EventKind::KernelDispatch, Class::Cb, 0, stamp)
        },
        _ => {
            let class = classes[random.below(5) as usize];
            let size = 1 + random.below(100);
            held.push((class, size));
            event(EventKind::Alloc, class, size, stamp)
        }
    }
}

#[test]
fn sums_and_peaks_are_those_of_adding_everything_up() {
    let mut random = Random(7);
    for _ in 0..20 {
        let mut model = model(3);
        let mut held: [Held; 3] = Default::default();
        let mut truth = [Counters::ZERO; 3];
        let (mut dram, mut l1, mut made_of) = (0, 0, [0; 3]);
        for stamp in 1..400 {
            let process = random.below(3) as usize;
            let event = random_event(&mut random, &mut held[process], stamp);
            truth[process].apply(&event).unwrap();
            model.fold(process, stamp, &event).unwrap();
            let used = truth.map(|counters| counters.dram_used());
            if used.iter().sum::<u64>() > dram {
                (dram, made_of) = (used.iter().sum(), used);
            }
            l1 = l1.max(truth.iter().map(Counters::l1_used).sum::<u64>());
            if random.below(5) == 0 {
                model.tick(stamp);
            }
        }
        model.tick(400);
        let shown = shown(&model);
        assert_eq!(shown.dram_used_bytes, truth.iter().map(Counters::dram_used).sum::<u64>());
        assert_eq!(shown.l1_used_bytes, truth.iter().map(Counters::l1_used).sum::<u64>());
        assert_eq!((shown.dram_peak.low, shown.dram_peak.high), (dram, dram));
        assert_eq!((shown.l1_peak.low, shown.l1_peak.high), (l1, l1));
        for holder in shown.dram_composition.holders.iter().filter(|holder| holder.identity != 0) {
            assert_eq!(holder.bytes, made_of[holder.identity as usize - 1]);
        }
    }
}

#[test]
fn a_late_free_lowers_what_is_certain_of_a_peak() {
    let mut model = model(2);
    model.fold(0, 10, &event(EventKind::Alloc, Class::Dram, 100, 1)).unwrap();
    model.fold(1, 30, &event(EventKind::Alloc, Class::Dram, 100, 1)).unwrap();
    assert_eq!(shown(&model).dram_peak.low, 200);
    // In truth process 0 had freed before process 1 allocated.
    model.fold(0, 20, &event(EventKind::Free, Class::Dram, 100, 2)).unwrap();
    let peak = shown(&model).dram_peak;
    assert_eq!((peak.low, peak.high), (100, 200));
    assert_eq!(model.totals.late, 1);
}

#[test]
fn an_impossible_event_changes_nothing_of_the_device() {
    let mut model = model(2);
    model.fold(0, 10, &event(EventKind::Alloc, Class::Dram, 100, 1)).unwrap();
    model.tick(10);
    let before = shown(&model);
    let unload =
        Event { flags: flags::ETHERNET, ..event(EventKind::KernelUnload, Class::KernelFabric, 9, 1) };
    assert!(model.fold(1, 11, &unload).is_err());
    assert_eq!(shown(&model), before);
}
