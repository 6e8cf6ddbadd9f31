//! A call on a mesh that one device refuses changes none of them.

use crate::common::{info, observe, open};
use shm_layout::MAX_BYTES;
use shm_layout::control::Anomaly;
use tt_shm_writer::{
    Alloc, BufferType, CircularBuffer, CoreType, Counters, Device, Dispatch, Kernel, KernelType, Launch,
    Mesh, ProgramBinaryStatus, Record, RecordError, Target, Tracker,
};

fn three(tracker: &Tracker) -> (Vec<Device>, Mesh) {
    let devices: Vec<Device> = (0..3).map(|chip| tracker.register_device(&info(chip)).unwrap()).collect();
    (devices.clone(), Mesh::new(devices))
}

fn states(tracker: &Tracker, devices: &[Device]) -> Vec<Counters> {
    devices.iter().map(|device| tracker.counters(*device).unwrap()).collect()
}

fn application(id: u64, bytes: u64) -> Kernel {
    Kernel::new(id, KernelType::Application, CoreType::Tensix, bytes, 1)
}

/// The last device has what the call would add, or lacks what it would take away.
#[test]
fn what_one_device_refuses_happens_on_none() {
    let tracker = open();
    let (devices, mesh) = three(&tracker);
    let (first, last) = (devices[0], devices[2]);
    tracker.alloc(last, Alloc::new(BufferType::Dram, 1, 10)).unwrap();
    tracker.alloc(first, Alloc::new(BufferType::Dram, 2, 10)).unwrap();
    tracker.cb_alloc(last, CircularBuffer::new(1, 1, 10, 1)).unwrap();
    tracker.cb_alloc(first, CircularBuffer::new(2, 1, 10, 1)).unwrap();
    tracker.kernel_load(first, application(5, 10)).unwrap();
    let before = states(&tracker, &devices);
    let huge = [application(8, 1), application(9, MAX_BYTES + 1)];
    let launch = Launch::new(7, &huge, ProgramBinaryStatus::NotSent);
    let good = [application(8, 1)];
    let no_lane = Launch::new(7, &good, ProgramBinaryStatus::NotSent).lane(8);
    let refused = [
        tracker.alloc(&mesh, Alloc::new(BufferType::Dram, 1, 10)),
        tracker.alloc(&mesh, Alloc::new(BufferType::Dram, 3, MAX_BYTES + 1)),
        tracker.free(&mesh, 2),
        tracker.free_sized(&mesh, 2, 10),
        tracker.free_dropped(&mesh, 2),
        tracker.cb_alloc(&mesh, CircularBuffer::new(1, 1, 10, 1)),
        tracker.cb_free(&mesh, 2, 1, None),
        tracker.kernel_load(&mesh, huge[1]).map(drop),
        tracker.kernel_unload(&mesh, 5, None),
        tracker.launch(&mesh, launch),
        tracker.launch(first, launch),
        tracker.launch(&mesh, no_lane),
        tracker.dispatch(&mesh, 2),
        tracker.dispatch(first, Dispatch::new(2).lane(9)),
        tracker.program_end(&mesh, 2),
        tracker.alloc_guard(&mesh, Alloc::new(BufferType::Dram, 1, 10)).map(drop),
    ];
    assert!(refused.iter().all(Result::is_err), "{refused:?}");
    assert_eq!(states(&tracker, &devices), before);
    assert_eq!(
        observe(&tracker).anomalies()[Anomaly::DoubleAlloc as usize],
        3,
        "each refusal is counted once"
    );
}

#[test]
fn a_guard_of_a_refused_allocation_leaks_nothing() {
    let tracker = open();
    let (devices, mesh) = three(&tracker);
    tracker.alloc(devices[2], Alloc::new(BufferType::L1, 1, 7)).unwrap();
    let refused = tracker.alloc_guard(&mesh, Alloc::new(BufferType::L1, 1, 10)).map(drop);
    assert!(matches!(refused, Err(RecordError::DoubleAlloc { device: 2, live_bytes: 7, .. })));
    let used: Vec<u64> = states(&tracker, &devices).iter().map(Counters::l1_used).collect();
    assert_eq!(used, [0, 0, 7]);
    tracker.free(devices[2], 1).unwrap();
    drop(tracker.alloc_guard(&mesh, Alloc::new(BufferType::L1, 1, 10)).unwrap());
    assert!(states(&tracker, &devices).iter().all(|counters| counters.l1_used() == 0));
}

/// A host's own kind of target, which names a device twice.
struct Twice([Device; 2]);

impl Target for Twice {
    fn devices(&self) -> &[Device] {
        &self.0
    }
}

#[test]
fn a_device_that_is_named_twice_is_meant_once() {
    let tracker = open();
    let (devices, _) = three(&tracker);
    tracker.alloc(Mesh::new([devices[0], devices[0]]), Alloc::new(BufferType::Dram, 1, 10)).unwrap();
    tracker.alloc(Twice([devices[0]; 2]), Alloc::new(BufferType::Dram, 2, 10)).unwrap();
    assert_eq!(tracker.counters(devices[0]).unwrap().dram_used(), 20);
}
