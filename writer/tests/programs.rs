//! Any order of calls on programs, compared with a model that tracks what every dispatch made resident.

use crate::common::{counters, device, observe, open_with};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use tt_shm_writer::{CircularBuffer, Class, CoreType, Device, Kernel, KernelType, Record, Tracker};

/// A kernel or a circular buffer, by program and id; ids of kernels differ between programs.
type Name = (u64, bool, u64);

#[derive(Clone, Copy, Debug)]
struct Call {
    what: u8,
    program: u64,
    id: u64,
    size: u64,
    fabric: bool,
    ethernet: bool,
}

/// What is live, with bytes, whether it is a fabric kernel, and whether it lies on ethernet cores.
#[derive(Default)]
struct Model {
    live: BTreeMap<Name, (u64, bool, bool)>,
    resident: BTreeSet<Name>,
    dispatches: u64,
}

impl Model {
    fn remove(&mut self, name: Name) -> bool {
        self.resident.remove(&name);
        self.live.remove(&name).is_some()
    }

    fn dispatch(&mut self, program: u64) -> bool {
        let own: BTreeMap<_, _> = self.live.iter().filter(|(name, _)| name.0 == program).collect();
        self.dispatches += u64::from(!own.is_empty());
        let applications: BTreeSet<_> =
            own.iter().filter(|(_, (_, fabric, _))| !fabric).map(|(name, _)| **name).collect();
        let any = !own.is_empty();
        if !applications.is_empty() {
            self.resident = applications;
        }
        any
    }

    /// What is resident: circular buffers and kernels on Tensix cores, and kernels on ethernet cores.
    fn resident(&self) -> (u64, u64) {
        let used = |on_ethernet: bool| {
            let counted = self.live.iter().filter(|(name, (_, fabric, ethernet))| {
                *ethernet == on_ethernet && (*fabric || self.resident.contains(name))
            });
            counted.map(|(_, (size, ..))| size).sum()
        };
        (used(false), used(true))
    }

    fn bytes(&self, class: Class) -> (u64, u64) {
        let of_class = self.live.iter().filter(|((_, is_cb, _), (_, fabric, _))| match class {
            Class::Cb => *is_cb,
            Class::KernelFabric => *fabric,
            _ => !is_cb && !fabric,
        });
        of_class.fold((0, 0), |(bytes, count), (_, (size, ..))| (bytes + size, count + 1))
    }
}

fn call() -> impl Strategy<Value = Call> {
    (0..8_u8, 0..4_u64, 0..3_u64, 0..1000_u64, any::<bool>(), any::<bool>()).prop_map(
        |(what, program, id, size, fabric, ethernet)| Call { what, program, id, size, fabric, ethernet },
    )
}

/// Makes a call; returns whether it and the model agree on its success.
fn make(tracker: &Tracker, device: Device, model: &mut Model, call: Call) -> bool {
    let Call { what, program, id, size, fabric, ethernet } = call;
    let (cb, kernel_id) = ((program, true, id), program * 10 + id);
    let kernel = (program, false, kernel_id);
    let (expected, happened) = match what {
        0 | 1 => {
            let new = !model.live.contains_key(&cb);
            model.live.entry(cb).or_insert((size, false, false));
            (new, tracker.cb_alloc(device, CircularBuffer::new(program, id, size, 1)).is_ok())
        }
        2 => (model.remove(cb), tracker.cb_free(device, program, id, None).is_ok()),
        3 | 4 => {
            if model.live.contains_key(&kernel) {
                model.dispatch(program);
            }
            model.live.entry(kernel).or_insert((size, fabric, ethernet));
            let kernel_type = if fabric { KernelType::Fabric } else { KernelType::Application };
            let core_type = if ethernet { CoreType::Ethernet } else { CoreType::Tensix };
            let kernel = Kernel::new(kernel_id, kernel_type, core_type, size, 1).program(program);
            (true, tracker.kernel_load(device, kernel).is_ok())
        }
        5 => (model.remove(kernel), tracker.kernel_unload(device, kernel_id, None).is_ok()),
        6 => (model.dispatch(program), tracker.dispatch(device, program).is_ok()),
        _ => {
            let names: Vec<_> = model.live.keys().copied().filter(|name| name.0 == program).collect();
            let any = names.into_iter().fold(false, |_, name| model.remove(name));
            (any, tracker.program_end(device, program).is_ok())
        }
    };
    expected == happened
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn what_is_resident_follows_from_the_calls(calls in vec(call(), 0..150), rows in 1..30_u64) {
        // Few rows: programs and buffers without one must count nonetheless.
        let tracker = open_with(|builder| builder.live_capacity(rows).ring_slots(64));
        let device = device(&tracker);
        let mut model = Model::default();
        for (number, call) in calls.into_iter().enumerate() {
            prop_assert!(make(&tracker, device, &mut model, call), "call {number}: {call:?}");
            let own = tracker.counters(device).unwrap();
            let resident = (own.cb_resident_bytes + own.kernels_resident(), own.eth_used());
            prop_assert_eq!(resident, model.resident(), "call {}: {:?}", number, call);
            prop_assert_eq!(own.dispatches, model.dispatches);
            for class in [Class::Cb, Class::KernelApplication, Class::KernelFabric] {
                let counted = own.class(class);
                prop_assert_eq!((counted.live_bytes, counted.live_count), model.bytes(class));
            }
        }
        counters(&tracker, device);
        let allocations = observe(&tracker).allocations();
        prop_assert!(allocations.exact);
        prop_assert_eq!(allocations.list.len() as u64 + allocations.unlisted, model.live.len() as u64);
    }
}
