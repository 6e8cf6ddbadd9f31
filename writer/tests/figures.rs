//! The figures that users know from tt-metal, as an observer in shared memory sees them.

use crate::common::{counters, device, info, observe, open};
use tt_shm_writer::{
    Alloc, BufferType, CircularBuffer, Class, CoreType, Kernel, KernelType, Launch, Loaded, Mesh,
    ProgramBinaryStatus, Record,
};

const FABRIC: SystemKernel = SystemKernel(KernelType::Fabric, CoreType::Ethernet, 57_344, 16);
const DISPATCH: SystemKernel = SystemKernel(KernelType::Dispatch, CoreType::Tensix, 47_104, 2);

/// Type, core type, binary, cores.
struct SystemKernel(KernelType, CoreType, u64, u32);

impl SystemKernel {
    fn with_id(&self, id: u64) -> Kernel {
        Kernel::new(id, self.0, self.1, self.2, self.3)
    }
}

#[test]
fn system_kernels_are_binary_times_cores() {
    let tracker = open();
    let device = device(&tracker);
    tracker.kernel_load(device, FABRIC.with_id(1)).unwrap();
    assert_eq!(counters(&tracker, device).class(Class::KernelFabric).live_bytes, 917_504);
    tracker.kernel_load(device, DISPATCH.with_id(2)).unwrap();
    let after = counters(&tracker, device);
    assert_eq!(after.class(Class::KernelDispatch).live_bytes, 94_208);
    assert_eq!(after.kernel_loaded_bytes(), 1_011_712);
    // Fabric kernels are on ethernet cores, whose L1 is counted separately. Dispatch kernels lie in reserved
    // memory.
    assert_eq!((after.kernels_resident(), after.l1_used(), after.eth_used()), (94_208, 0, 917_504));
    tracker.kernel_unload(device, 1, Some(917_504)).unwrap();
    tracker.kernel_unload(device, 2, None).unwrap();
    let end = counters(&tracker, device);
    assert_eq!((end.kernel_loaded_bytes(), end.kernels_resident(), end.eth_used()), (0, 0, 0));
}

#[test]
fn an_application_kernel_is_resident_once_dispatched() {
    let tracker = open();
    let device = device(&tracker);
    let kernel = Kernel::new(9, KernelType::Application, CoreType::Tensix, 102_400, 80);
    assert_eq!(tracker.kernel_load(device, kernel).unwrap(), Loaded::New);
    let loaded = counters(&tracker, device);
    assert_eq!(loaded.class(Class::KernelApplication).live_bytes, 8_192_000);
    assert_eq!(loaded.kernels_resident(), 0);
    assert_eq!(tracker.kernel_load(device, kernel).unwrap(), Loaded::Cached);
    let dispatched = counters(&tracker, device);
    assert_eq!(dispatched.class(Class::KernelApplication).live_bytes, 8_192_000);
    assert_eq!((dispatched.kernels_resident(), dispatched.l1_used()), (8_192_000, 0));
    assert_eq!((dispatched.dispatches, dispatched.cached_dispatches), (1, 1));
}

#[test]
fn kernels_by_type_with_their_counts() {
    let tracker = open();
    let device = device(&tracker);
    let load = |id, kernel_type, bytes| {
        let kernel = Kernel::new(id, kernel_type, CoreType::Tensix, bytes, 1);
        tracker.kernel_load(device, kernel).unwrap();
    };
    (0..2).for_each(|id| load(id, KernelType::Fabric, 56 << 10));
    (2..4).for_each(|id| load(id, KernelType::Dispatch, 46 << 10));
    (4..9).for_each(|id| load(id, KernelType::Application, 24 << 10));
    let counters = counters(&tracker, device);
    let class = |class| (counters.class(class).live_bytes >> 10, counters.class(class).live_count);
    assert_eq!(class(Class::KernelFabric), (112, 2));
    assert_eq!(class(Class::KernelDispatch), (92, 2));
    assert_eq!(class(Class::KernelApplication), (120, 5));
    assert_eq!(counters.kernel_loaded_bytes() >> 10, 324);
}

#[test]
fn a_mesh_reports_on_every_device() {
    let tracker = open();
    let devices: Vec<_> = (0..4).map(|chip| tracker.register_device(&info(chip)).unwrap()).collect();
    let mesh = Mesh::new(devices.clone());
    for id in 0..150 {
        tracker.cb_alloc(&mesh, CircularBuffer::new(id / 10, id, 4096, 64)).unwrap();
    }
    for device in devices {
        let cb = *counters(&tracker, device).class(Class::Cb);
        assert_eq!((cb.live_count, cb.alloc_count, cb.live_bytes), (150, 150, 150 * 4096 * 64));
    }
    let events = observe(&tracker).follow_from_start().by_ref().count();
    assert_eq!(events, 4 * 150);
}

#[test]
fn classes_are_kept_apart() {
    let tracker = open();
    let device = device(&tracker);
    let types =
        [BufferType::Dram, BufferType::L1, BufferType::L1Small, BufferType::Trace, BufferType::SystemMemory];
    for (id, buffer_type) in types.into_iter().enumerate() {
        tracker.alloc(device, Alloc::new(buffer_type, id as u64, 1 << (10 + id))).unwrap();
    }
    let counters = counters(&tracker, device);
    for (id, buffer_type) in types.into_iter().enumerate() {
        assert_eq!(counters.class(buffer_type.class()).live_bytes, 1 << (10 + id));
    }
    // Trace buffers lie in DRAM; host memory is part of no device total.
    assert_eq!(counters.dram_used(), (1 << 10) + (1 << 13));
    assert_eq!(counters.l1_used(), (1 << 11) + (1 << 12));
}

#[test]
fn launching_loads_once_and_counts_every_dispatch() {
    let tracker = open();
    let device = device(&tracker);
    let name = tracker.intern("matmul").unwrap();
    let kernel = Kernel::new(5, KernelType::Application, CoreType::Tensix, 1000, 64).name(name);
    tracker.cb_alloc(device, CircularBuffer::new(5, 0x100, 2048, 64)).unwrap();
    use ProgramBinaryStatus::{Committed, InFlight, NotSent};
    for status in [NotSent, InFlight, Committed] {
        tracker.launch(device, Launch::new(5, &[kernel], status)).unwrap();
    }
    tracker.dispatch(device, 5).unwrap();
    let counters = counters(&tracker, device);
    assert_eq!((counters.dispatches, counters.cached_dispatches), (4, 3));
    assert_eq!(counters.class(Class::KernelApplication).live_bytes, 64_000);
    assert_eq!((counters.l1_used(), counters.kernels_resident()), (2048 * 64, 64_000));
    let programs = observe(&tracker).programs();
    assert_eq!(programs.len(), 1);
    assert_eq!(programs[0].name.as_deref(), Some("matmul"));
    assert_eq!((programs[0].dispatches, programs[0].cache_hits, programs[0].cache_misses), (4, 3, 1));
}

#[test]
fn a_program_that_was_committed_before_tracking_is_late() {
    let tracker = open();
    let device = device(&tracker);
    let kernel = Kernel::new(5, KernelType::Application, CoreType::Tensix, 1000, 4);
    tracker.launch(device, Launch::new(5, &[kernel], ProgramBinaryStatus::Committed)).unwrap();
    let counters = counters(&tracker, device);
    assert_eq!(
        (counters.kernel_loaded_bytes(), counters.dispatches, counters.cached_dispatches),
        (4000, 1, 1)
    );
    assert!(observe(&tracker).programs()[0].late);
}
