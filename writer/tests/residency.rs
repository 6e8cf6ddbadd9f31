//! Which circular buffers and kernels occupy L1: those of the program dispatched last, and of it only
//! what was there when it was dispatched.

mod common;

use common::{counters, device, open};
use tt_shm_writer::{
    Alloc, BufferType, CircularBuffer, Class, CoreType, Kernel, KernelType, ProgramBinaryStatus, Record,
};

fn application(id: u64, bytes: u64) -> Kernel {
    Kernel::new(id, KernelType::Application, CoreType::Tensix, bytes, 1)
}

#[test]
fn only_the_program_dispatched_last_is_resident() {
    let tracker = open();
    let device = device(&tracker);
    for (program, bytes) in [(1, 100), (2, 30)] {
        tracker.kernel_load(device, application(program, bytes)).unwrap();
        tracker.cb_alloc(device, CircularBuffer::new(program, 7, bytes * 10, 1)).unwrap();
    }
    assert_eq!(counters(&tracker, device).l1_used(), 0);
    tracker.dispatch(device, 1).unwrap();
    assert_eq!(counters(&tracker, device).l1_used(), 1100);
    tracker.dispatch(device, 2).unwrap();
    let second = counters(&tracker, device);
    assert_eq!((second.l1_used(), second.l1_peak_bytes), (330, 1100));
    // What is allocated and loaded is still told, under names of its own.
    assert_eq!((second.class(Class::Cb).live_bytes, second.kernel_loaded_bytes()), (1300, 130));
}

#[test]
fn what_a_resident_program_frees_is_resident_no_more() {
    let tracker = open();
    let device = device(&tracker);
    tracker.kernel_load(device, application(1, 100)).unwrap();
    tracker.cb_alloc(device, CircularBuffer::new(1, 7, 1000, 1)).unwrap();
    tracker.dispatch(device, 1).unwrap();
    // Allocated after the dispatch, so not resident: freeing it must not take resident bytes away.
    tracker.cb_alloc(device, CircularBuffer::new(1, 8, 50, 1)).unwrap();
    tracker.cb_free(device, 1, 8, None).unwrap();
    assert_eq!(counters(&tracker, device).l1_used(), 1100);
    tracker.cb_free(device, 1, 7, Some(1000)).unwrap();
    assert_eq!(counters(&tracker, device).l1_used(), 100);
    tracker.kernel_unload(device, 1, Some(100)).unwrap();
    let end = counters(&tracker, device);
    assert_eq!((end.l1_used(), end.class(Class::Cb).live_count), (0, 0));
    assert!(tracker.dispatch(device, 1).is_err(), "nothing of it is left");
}

#[test]
fn a_program_of_another_turn_frees_no_resident_bytes() {
    let tracker = open();
    let device = device(&tracker);
    for program in [1, 2] {
        tracker.kernel_load(device, application(program, 100)).unwrap();
        tracker.cb_alloc(device, CircularBuffer::new(program, 7, 1000, 1)).unwrap();
        tracker.dispatch(device, program).unwrap();
    }
    tracker.program_end(device, 1).unwrap();
    let counters = counters(&tracker, device);
    assert_eq!((counters.l1_used(), counters.class(Class::Cb).live_bytes), (1100, 1000));
}

#[test]
fn system_kernels_do_not_displace_the_application() {
    let tracker = open();
    let device = device(&tracker);
    tracker.kernel_load(device, application(1, 100)).unwrap();
    tracker.dispatch(device, 1).unwrap();
    let dispatcher = Kernel::new(2, KernelType::Dispatch, CoreType::Tensix, 47_104, 2);
    tracker.kernel_load(device, dispatcher).unwrap();
    tracker.kernel_load(device, dispatcher).unwrap();
    let counters = counters(&tracker, device);
    assert_eq!((counters.l1_used(), counters.resident_program), (94_208 + 100, 1));
    assert_eq!(counters.dispatches, 2);
}

#[test]
fn a_program_whose_application_kernels_are_gone_displaces_nothing() {
    let tracker = open();
    let device = device(&tracker);
    let fabric = Kernel::new(20, KernelType::Fabric, CoreType::Tensix, 7, 1).program(2);
    tracker.kernel_load(device, fabric).unwrap();
    tracker.kernel_load(device, application(21, 50).program(2)).unwrap();
    tracker.cb_alloc(device, CircularBuffer::new(2, 1, 5, 1)).unwrap();
    tracker.kernel_unload(device, 21, None).unwrap();
    tracker.cb_free(device, 2, 1, None).unwrap();
    tracker.kernel_load(device, application(1, 100)).unwrap();
    tracker.dispatch(device, 1).unwrap();
    tracker.dispatch(device, 2).unwrap();
    let counters = counters(&tracker, device);
    assert_eq!((counters.l1_used(), counters.resident_program), (107, 1));
}

#[test]
fn ethernet_kernels_of_a_program_count_as_ethernet_l1() {
    let tracker = open();
    let device = device(&tracker);
    let ethernet = Kernel::new(11, KernelType::Application, CoreType::Ethernet, 500, 2).program(1);
    tracker.kernel_load(device, application(1, 100)).unwrap();
    tracker.kernel_load(device, ethernet).unwrap();
    tracker.dispatch(device, 1).unwrap();
    let resident = counters(&tracker, device);
    assert_eq!((resident.l1_used(), resident.eth_used(), resident.eth_peak_bytes), (100, 1000, 1000));
    tracker.kernel_unload(device, 11, None).unwrap();
    let unloaded = counters(&tracker, device);
    assert_eq!((unloaded.l1_used(), unloaded.eth_used()), (100, 0));
}

#[test]
fn a_globally_allocated_circular_buffer_has_no_bytes_of_its_own() {
    let tracker = open();
    let device = device(&tracker);
    tracker.alloc(device, Alloc::new(BufferType::L1, 1, 4096)).unwrap();
    tracker.cb_alloc(device, CircularBuffer::new(3, 1, 4096, 1).globally_allocated()).unwrap();
    tracker.dispatch(device, 3).unwrap();
    let counters = counters(&tracker, device);
    assert_eq!(counters.l1_used(), 4096);
    assert_eq!((counters.class(Class::Cb).live_count, counters.class(Class::Cb).live_bytes), (1, 0));
}

#[test]
fn one_circular_buffer_id_in_two_programs_is_two_buffers() {
    let tracker = open();
    let device = device(&tracker);
    tracker.cb_alloc(device, CircularBuffer::new(1, 0x1000, 10, 1)).unwrap();
    tracker.cb_alloc(device, CircularBuffer::new(2, 0x1000, 20, 1)).unwrap();
    assert_eq!(counters(&tracker, device).class(Class::Cb).live_bytes, 30);
    tracker.cb_free(device, 1, 0x1000, None).unwrap();
    assert_eq!(counters(&tracker, device).class(Class::Cb).live_bytes, 20);
}

#[test]
fn a_launch_makes_the_program_resident_that_it_names() {
    let tracker = open();
    let device = device(&tracker);
    tracker.cb_alloc(device, CircularBuffer::new(1, 7, 10, 1)).unwrap();
    tracker.cb_alloc(device, CircularBuffer::new(2, 7, 2000, 1)).unwrap();
    tracker.launch(device, application(5, 100).program(1), ProgramBinaryStatus::NotSent).unwrap();
    assert_eq!(counters(&tracker, device).l1_used(), 110);
    // The same kernel, found loaded, as part of another program.
    tracker.launch(device, application(5, 100).program(2), ProgramBinaryStatus::Committed).unwrap();
    let second = counters(&tracker, device);
    assert_eq!((second.resident_program, second.cb_resident_bytes), (2, 2000));
    tracker.program_end(device, 1).unwrap();
    assert_eq!(counters(&tracker, device).l1_used(), 2000);
    tracker.program_end(device, 2).unwrap();
    assert_eq!(counters(&tracker, device).l1_used(), 0);
}
