//! Any sequence of right and wrong calls, with any number of rows: every result and every figure matches that
//! of a plain map.

use crate::common::{info, observe, open, open_with};
use proptest::prelude::*;
use shm_layout::{Class, MAX_BYTES, RowKind};
use std::collections::{HashMap, HashSet};
use tt_shm_writer::{
    Alloc, BufferType, CircularBuffer, CoreType, Device, Kernel, KernelType, Loaded, Record, Tracker,
};

#[derive(Clone, Copy, Debug)]
enum Call {
    Alloc,
    Free,
    CbAlloc,
    CbFree,
    Load,
    Unload,
    Dispatch,
    EndProgram,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    call: Call,
    device: usize,
    id: u64,
    program: u64,
    size: u64,
    too_large: bool,
}

/// Kind of row, device, program of a circular buffer, id.
type Key = (RowKind, usize, u64, u64);

/// Bytes, and the program it belongs to.
type Value = (u64, u64);

#[derive(Default)]
struct Oracle {
    live: HashMap<Key, Value>,
    /// Device, program and a kernel that it runs, whoever loaded it.
    runs: HashSet<(usize, u64, u64)>,
}

/// Banks of the DRAM of the devices: what a buffer occupies in one, it occupies in all.
const BANKS: u64 = 12;

impl Oracle {
    fn add(&mut self, key: Key, step: &Step) -> bool {
        let fits = !step.too_large && !self.live.contains_key(&key);
        if fits {
            self.live.insert(key, (step.size, step.program));
        }
        fits
    }

    fn load(&mut self, key: Key, step: &Step) -> Option<Loaded> {
        let was_loaded = self.live.contains_key(&key);
        if !was_loaded && !self.add(key, step) {
            return None;
        }
        self.runs.insert((step.device, step.program, step.id));
        Some(if was_loaded { Loaded::Cached } else { Loaded::New })
    }

    fn unload(&mut self, key: Key) -> bool {
        self.runs.retain(|(device, _, kernel)| (*device, *kernel) != (key.1, key.3));
        self.live.remove(&key).is_some()
    }

    fn knows(&self, device: usize, program: u64) -> bool {
        let has_cb = self.live.keys().any(|key| (key.0, key.1, key.2) == (RowKind::Cb, device, program));
        has_cb || self.runs.iter().any(|runs| (runs.0, runs.1) == (device, program))
    }

    /// Ends a program, with what it loaded.
    fn end(&mut self, device: usize, program: u64) -> bool {
        let known = self.knows(device, program);
        let is_its =
            |key: &Key, value: &Value| key.0 != RowKind::Buffer && (key.1, value.1) == (device, program);
        let its: Vec<Key> =
            self.live.iter().filter(|(key, value)| is_its(key, value)).map(|(key, _)| *key).collect();
        for key in its {
            if key.0 == RowKind::Kernel {
                self.unload(key);
            } else {
                self.live.remove(&key);
            }
        }
        self.runs.retain(|runs| (runs.0, runs.1) != (device, program));
        known
    }

    fn sum(&self, kind: RowKind, device: usize) -> u64 {
        let of_kind = self.live.iter().filter(|(key, _)| (key.0, key.1) == (kind, device));
        of_kind.map(|(_, value)| value.0).sum()
    }
}

fn kernel(step: &Step, bytes: u64) -> Kernel {
    let types = [KernelType::Application, KernelType::Fabric, KernelType::Dispatch];
    let cores = if step.id.is_multiple_of(2) { CoreType::Tensix } else { CoreType::Ethernet };
    Kernel::new(step.id, types[(step.id % 3) as usize], cores, bytes, 1).program(step.program)
}

/// Executes a step on both; returns whether they agree.
fn carry_out(tracker: &Tracker, devices: &[Device], oracle: &mut Oracle, step: &Step) -> bool {
    let Step { call, device: number, id, program, .. } = *step;
    let device = devices[number];
    let bytes = if step.too_large { MAX_BYTES + 1 } else { step.size };
    let buffer = (RowKind::Buffer, number, 0, id);
    let cb = (RowKind::Cb, number, program, id);
    let loaded = (RowKind::Kernel, number, 0, id);
    match call {
        Call::Alloc => {
            let alloc = Alloc::new(BufferType::Dram, id, bytes).bytes_per_bank(bytes);
            tracker.alloc(device, alloc).is_ok() == oracle.add(buffer, step)
        }
        Call::Free => tracker.free(device, id).is_ok() == oracle.live.remove(&buffer).is_some(),
        Call::CbAlloc => {
            let alloc = CircularBuffer::new(program, id, bytes, 1);
            tracker.cb_alloc(device, alloc).is_ok() == oracle.add(cb, step)
        }
        Call::CbFree => {
            tracker.cb_free(device, program, id, None).is_ok() == oracle.live.remove(&cb).is_some()
        }
        Call::Load => tracker.kernel_load(device, kernel(step, bytes)).ok() == oracle.load(loaded, step),
        Call::Unload => tracker.kernel_unload(device, id, None).is_ok() == oracle.unload(loaded),
        Call::Dispatch => tracker.dispatch(device, program).is_ok() == oracle.knows(number, program),
        Call::EndProgram => tracker.program_end(device, program).is_ok() == oracle.end(number, program),
    }
}

/// What the process reports about itself, and what an observer finds, matches the oracle.
fn compare(tracker: &Tracker, devices: &[Device], oracle: &Oracle) {
    let segment = observe(tracker);
    let seen = segment.counters().unwrap();
    for (number, device) in devices.iter().enumerate() {
        let own = tracker.counters(*device).unwrap();
        assert_eq!(seen.counters[number], own);
        assert_eq!(own.dram_used(), BANKS * oracle.sum(RowKind::Buffer, number));
        assert_eq!(own.dram_requested(), oracle.sum(RowKind::Buffer, number));
        assert_eq!(own.class(Class::Cb).live_bytes, oracle.sum(RowKind::Cb, number));
        assert_eq!(own.kernel_loaded_bytes(), oracle.sum(RowKind::Kernel, number));
    }
    let list = segment.allocations();
    assert!(list.exact);
    assert_eq!(list.list.len() as u64 + list.unlisted, oracle.live.len() as u64);
    for listed in &list.list {
        let row = &listed.row;
        let kind = row.kind().unwrap();
        let program = if kind == RowKind::Cb { row.aux } else { 0 };
        let key = (kind, usize::from(row.device), program, row.id);
        assert_eq!(oracle.live.get(&key).map(|(size, _)| *size), Some(row.requested()), "{key:?}");
        let banks = if kind == RowKind::Buffer { BANKS } else { 1 };
        assert_eq!(row.size, banks * row.requested());
    }
}

/// A device that another tracker registered is refused by every call.
fn try_unknown_device(tracker: &Tracker, unknown: Device, step: &Step) {
    assert!(tracker.alloc(unknown, Alloc::new(BufferType::Dram, step.id, 1)).is_err());
    assert!(tracker.free(unknown, step.id).is_err());
    assert!(tracker.cb_alloc(unknown, CircularBuffer::new(step.program, step.id, 1, 1)).is_err());
    assert!(tracker.kernel_load(unknown, kernel(step, 1)).is_err());
    assert!(tracker.dispatch(unknown, step.program).is_err());
}

fn calls() -> impl Strategy<Value = Call> {
    prop_oneof![
        4 => Just(Call::Alloc),
        3 => Just(Call::Free),
        2 => Just(Call::CbAlloc),
        2 => Just(Call::CbFree),
        2 => Just(Call::Load),
        2 => Just(Call::Unload),
        2 => Just(Call::Dispatch),
        1 => Just(Call::EndProgram),
    ]
}

fn steps(ids: u64) -> impl Strategy<Value = Vec<Step>> {
    let step = (calls(), 0..3_usize, 0..ids, 0..6_u64, 1..1000_u64, prop::bool::weighted(0.05));
    let step = step.prop_map(|(call, device, id, program, size, too_large)| Step {
        call,
        device,
        id,
        program,
        size,
        too_large,
    });
    prop::collection::vec(step, 1..1500)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_is_that_of_a_map(
        rows in prop::sample::select(vec![1_u64, 2, 7, 64, 5000]),
        steps in prop::sample::select(vec![5_u64, 40, 1000]).prop_flat_map(steps),
    ) {
        let tracker = open_with(|builder| builder.live_capacity(rows).ring_slots(64));
        let devices: Vec<Device> = (0..3).map(|chip| tracker.register_device(&info(chip)).unwrap()).collect();
        let other = open();
        (0..3).for_each(|chip| _ = other.register_device(&info(chip)).unwrap());
        let unknown = other.register_device(&info(3)).unwrap();
        let mut oracle = Oracle::default();
        for (number, step) in steps.iter().enumerate() {
            prop_assert!(carry_out(&tracker, &devices, &mut oracle, step), "{step:?}");
            if number % 50 == 0 {
                try_unknown_device(&tracker, unknown, step);
                compare(&tracker, &devices, &oracle);
            }
        }
        compare(&tracker, &devices, &oracle);
    }
}
