//! Which circular buffers and kernels are resident: those of the program dispatched last in each lane, and of it
//! only what was there when it was dispatched.

use crate::common::{counters, device, observe, open};
use tt_shm_writer::{
    Alloc, BufferType, CircularBuffer, Class, CoreType, Counters, Dispatch, Kernel, KernelType, Launch,
    ProgramBinaryStatus, Record, RecordError,
};

fn application(id: u64, bytes: u64) -> Kernel {
    Kernel::new(id, KernelType::Application, CoreType::Tensix, bytes, 1)
}

/// Bytes of circular buffers, and of kernels on Tensix cores. Only the former are L1 used.
fn resident(counters: &Counters) -> (u64, u64) {
    assert_eq!(counters.l1_used(), counters.cb_resident_bytes);
    (counters.cb_resident_bytes, counters.kernels_resident())
}

#[test]
fn only_the_program_dispatched_last_is_resident() {
    let tracker = open();
    let device = device(&tracker);
    for (program, bytes) in [(1, 100), (2, 30)] {
        tracker.kernel_load(device, application(program, bytes)).unwrap();
        tracker.cb_alloc(device, CircularBuffer::new(program, 7, bytes * 10, 1)).unwrap();
    }
    assert_eq!(resident(&counters(&tracker, device)), (0, 0));
    tracker.dispatch(device, 1).unwrap();
    assert_eq!(resident(&counters(&tracker, device)), (1000, 100));
    tracker.dispatch(device, 2).unwrap();
    let second = counters(&tracker, device);
    assert_eq!((resident(&second), second.l1_peak_bytes), ((300, 30), 1000));
    // What is allocated and loaded is still reported, under names of its own.
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
    assert_eq!(resident(&counters(&tracker, device)), (1000, 100));
    tracker.cb_free(device, 1, 7, Some(1000)).unwrap();
    assert_eq!(resident(&counters(&tracker, device)), (0, 100));
    tracker.kernel_unload(device, 1, Some(100)).unwrap();
    let end = counters(&tracker, device);
    assert_eq!((resident(&end), end.class(Class::Cb).live_count), ((0, 0), 0));
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
    assert_eq!((resident(&counters), counters.class(Class::Cb).live_bytes), ((1000, 100), 1000));
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
    assert_eq!((resident(&counters), counters.lane_of(1)), ((0, 94_208 + 100), Some(0)));
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
    assert_eq!((resident(&counters), counters.lane_of(1)), ((0, 107), Some(0)));
}

#[test]
fn ethernet_kernels_of_a_program_count_as_ethernet_l1() {
    let tracker = open();
    let device = device(&tracker);
    let ethernet = Kernel::new(11, KernelType::Application, CoreType::Ethernet, 500, 2).program(1);
    tracker.kernel_load(device, application(1, 100)).unwrap();
    tracker.kernel_load(device, ethernet).unwrap();
    tracker.dispatch(device, 1).unwrap();
    let both = counters(&tracker, device);
    assert_eq!((both.kernels_resident(), both.eth_used(), both.eth_peak_bytes), (100, 1000, 1000));
    tracker.kernel_unload(device, 11, None).unwrap();
    let unloaded = counters(&tracker, device);
    assert_eq!((unloaded.kernels_resident(), unloaded.eth_used()), (100, 0));
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
fn a_kernel_that_another_program_loaded_is_resident_with_the_one_that_runs_it() {
    let tracker = open();
    let device = device(&tracker);
    tracker.cb_alloc(device, CircularBuffer::new(1, 7, 10, 1)).unwrap();
    tracker.cb_alloc(device, CircularBuffer::new(2, 7, 2000, 1)).unwrap();
    let kernels = [application(5, 100)];
    tracker.launch(device, Launch::new(1, &kernels, ProgramBinaryStatus::NotSent)).unwrap();
    assert_eq!(resident(&counters(&tracker, device)), (10, 100));
    // The same kernel, found loaded, as part of another program.
    tracker.launch(device, Launch::new(2, &kernels, ProgramBinaryStatus::Committed)).unwrap();
    let second = counters(&tracker, device);
    assert_eq!((second.lane_of(2), resident(&second)), (Some(0), (2000, 100)));
    assert_eq!(second.kernel_loaded_bytes(), 100, "it is loaded once");
    // In two lanes, both run it.
    tracker.dispatch(device, Dispatch::new(1).lane(3)).unwrap();
    assert_eq!(resident(&counters(&tracker, device)), (2010, 200));
    tracker.kernel_unload(device, 5, None).unwrap();
    assert_eq!(resident(&counters(&tracker, device)), (2010, 0));
}

#[test]
fn a_program_that_ends_leaves_its_lane_and_the_kernels_of_others() {
    let tracker = open();
    let device = device(&tracker);
    let kernels = [application(5, 100)];
    tracker.launch(device, Launch::new(1, &kernels, ProgramBinaryStatus::NotSent)).unwrap();
    let second = Launch::new(2, &kernels, ProgramBinaryStatus::Committed).lane(1);
    tracker.launch(device, second).unwrap();
    assert_eq!(resident(&counters(&tracker, device)), (0, 200));
    tracker.program_end(device, 2).unwrap();
    let first = counters(&tracker, device);
    assert_eq!((resident(&first), first.kernel_loaded_bytes(), first.lane_of(2)), ((0, 100), 100, None));
    assert!(tracker.dispatch(device, 2).is_err(), "it has ended");
    tracker.launch(device, second).unwrap();
    // What a program loaded ends with it, whichever programs run it.
    tracker.program_end(device, 1).unwrap();
    assert_eq!(resident(&counters(&tracker, device)), (0, 0));
    assert!(tracker.dispatch(device, 2).is_err(), "nothing of it is left");
}

#[test]
fn programs_in_two_lanes_are_resident_together() {
    let tracker = open();
    let device = device(&tracker);
    for (program, bytes) in [(1, 100), (2, 30)] {
        tracker.kernel_load(device, application(program, bytes)).unwrap();
        tracker.cb_alloc(device, CircularBuffer::new(program, 7, bytes * 10, 1)).unwrap();
        tracker.dispatch(device, Dispatch::new(program).lane(program as u8).queue(1)).unwrap();
    }
    let both = counters(&tracker, device);
    assert_eq!((resident(&both), both.l1_peak_bytes), ((1300, 130), 1300));
    // A program that moves to another lane leaves its own.
    tracker.dispatch(device, Dispatch::new(1).lane(2)).unwrap();
    let moved = counters(&tracker, device);
    assert_eq!((resident(&moved), moved.lane_of(1), moved.lane_of(2)), ((1000, 100), Some(2), None));
    tracker.cb_free(device, 2, 7, None).unwrap();
    tracker.cb_free(device, 1, 7, None).unwrap();
    assert_eq!(resident(&counters(&tracker, device)), (0, 100));
    let refused = tracker.dispatch(device, Dispatch::new(1).lane(8));
    assert_eq!(refused, Err(RecordError::LaneOutOfRange { device: 0, lane: 8 }));
}

#[test]
fn a_launch_of_a_program_with_three_kernels_is_one_dispatch() {
    let tracker = open();
    let device = device(&tracker);
    let kernels = [application(10, 1), application(11, 20), application(12, 300)];
    tracker.launch(device, Launch::new(1, &kernels, ProgramBinaryStatus::NotSent)).unwrap();
    let first = counters(&tracker, device);
    assert_eq!((first.dispatches, first.cached_dispatches, resident(&first)), (1, 0, (0, 321)));
    tracker.launch(device, Launch::new(1, &kernels, ProgramBinaryStatus::Committed)).unwrap();
    let second = counters(&tracker, device);
    assert_eq!((second.dispatches, second.cached_dispatches, resident(&second)), (2, 1, (0, 321)));
    let programs = observe(&tracker).programs();
    assert_eq!((programs.len(), programs[0].dispatches, programs[0].kernel_bytes), (1, 2, 321));
}

#[test]
fn a_replayed_trace_is_one_event_for_many_dispatches() {
    let tracker = open();
    let device = device(&tracker);
    tracker.kernel_load(device, application(1, 100)).unwrap();
    tracker.dispatch(device, Dispatch::new(1).times(1000).lane(2).queue(3)).unwrap();
    tracker.dispatch(device, Dispatch::new(1).times(0)).unwrap();
    let after = counters(&tracker, device);
    assert_eq!((after.dispatches, after.cached_dispatches, after.lane_of(1)), (1000, 1000, Some(2)));
    let segment = observe(&tracker);
    assert_eq!((segment.programs()[0].dispatches, segment.programs()[0].cache_misses), (1000, 0));
    let events: Vec<_> = segment.follow_from_start().collect();
    let [_, dispatch] = events[..] else { panic!("a load and a dispatch") };
    assert_eq!((dispatch.times(), dispatch.lane(), dispatch.queue()), (1000, 2, 3));
}

#[test]
fn a_dispatch_says_of_which_type_its_kernels_are() {
    let tracker = open();
    let device = device(&tracker);
    tracker.kernel_load(device, Kernel::new(1, KernelType::Fabric, CoreType::Ethernet, 9, 1)).unwrap();
    tracker.kernel_load(device, application(2, 100)).unwrap();
    tracker.dispatch(device, 1).unwrap();
    tracker.dispatch(device, 2).unwrap();
    let events: Vec<_> = observe(&tracker).follow_from_start().skip(2).map(|event| event.class()).collect();
    assert_eq!(events, [Some(Class::KernelFabric), Some(Class::KernelApplication)]);
}
