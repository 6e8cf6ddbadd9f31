//! Figures that the design promises, and what is refused.

use shm_layout::{Class, Counters, Event, EventKind, Implausible, MAX_BYTES, MAX_COUNT, flags};

fn apply(events: &[Event]) -> Counters {
    let mut counters = Counters::ZERO;
    for (index, event) in events.iter().enumerate() {
        let stamp = index as u64 + 1;
        counters.apply(&Event { stamp, time: stamp, ..*event }).unwrap();
    }
    counters
}

fn about(kind: EventKind, class: Class, size: u64) -> Event {
    Event { class: class as u8, size, aux: size, ..Event::new(kind, 0) }
}

fn fabric() -> Event {
    let size = 57_344 * 16;
    Event { flags: flags::ETHERNET, cores: 16, ..about(EventKind::KernelLoad, Class::KernelFabric, size) }
}

fn dispatch_kernel() -> Event {
    Event { cores: 2, ..about(EventKind::KernelLoad, Class::KernelDispatch, 47_104 * 2) }
}

fn dispatch(kernels: u64, cbs: u64, eth: u64) -> Event {
    let aux = kernels | eth << 32;
    Event { size: cbs, address: 1, aux, flags: flags::RESIDENT, ..Event::new(EventKind::KernelDispatch, 0) }
}

fn in_lane(lane: u16, program: u64, event: Event) -> Event {
    Event { place: lane, id: program, ..event }
}

#[test]
fn fabric_kernels_are_on_ethernet_cores() {
    let counters = apply(&[fabric()]);
    assert_eq!((counters.eth_used(), counters.l1_used()), (917_504, 0));
    assert_eq!(counters.class(Class::KernelFabric).live_bytes, 917_504);
    assert_eq!(counters.eth_peak_bytes, 917_504);
}

#[test]
fn dispatch_kernels_are_no_part_of_l1_used() {
    let counters = apply(&[dispatch_kernel()]);
    assert_eq!((counters.eth_used(), counters.l1_used(), counters.kernels_resident()), (0, 0, 94_208));
}

#[test]
fn both_are_loaded_together() {
    let counters = apply(&[fabric(), dispatch_kernel()]);
    assert_eq!(counters.kernel_loaded_bytes(), 1_011_712);
    assert_eq!((counters.eth_used(), counters.kernels_resident()), (917_504, 94_208));
}

#[test]
fn application_kernels_are_resident_only_after_dispatch() {
    let size = 102_400 * 80;
    let load = about(EventKind::KernelLoad, Class::KernelApplication, size);
    let loaded = apply(&[load]);
    assert_eq!((loaded.kernel_loaded_bytes(), loaded.kernels_resident()), (8_192_000, 0));
    let dispatched = apply(&[load, dispatch(size, 700, 0)]);
    assert_eq!((dispatched.kernels_resident(), dispatched.l1_used()), (8_192_000, 700));
    // Another program takes its place, even if this one stays loaded.
    let displaced = apply(&[load, dispatch(size, 700, 0), dispatch(4096, 512, 128)]);
    assert_eq!((displaced.kernels_resident(), displaced.l1_used(), displaced.eth_used()), (4096, 512, 128));
    assert_eq!(displaced.l1_peak_bytes, 700);
}

#[test]
fn a_system_program_displaces_nothing() {
    let system = Event { flags: 0, ..dispatch(0, 0, 0) };
    let counters = apply(&[dispatch(4096, 512, 128), system]);
    assert_eq!((counters.l1_used(), counters.eth_used(), counters.dispatches), (512, 128, 2));
}

#[test]
fn programs_in_two_lanes_are_resident_together() {
    let first = in_lane(0, 1, dispatch(10, 100, 3));
    let second = in_lane(5, 2, dispatch(20, 2000, 4));
    let both = apply(&[first, second]);
    assert_eq!((both.l1_used(), both.kernels_resident(), both.eth_used()), (2100, 30, 7));
    assert_eq!((both.l1_peak_bytes, both.resident_lanes), (2100, 0b10_0001));
    // In its own lane, another one displaces the first only.
    let third = apply(&[first, second, in_lane(0, 3, dispatch(1, 7, 0))]);
    assert_eq!((third.l1_used(), third.l1_peak_bytes, third.lane_of(1)), (2007, 2100, None));
    assert!(third.is_plausible());
}

#[test]
fn a_program_that_moves_to_another_lane_is_there_only_once() {
    let moved = apply(&[in_lane(0, 1, dispatch(10, 100, 3)), in_lane(7, 1, dispatch(10, 100, 3))]);
    assert_eq!((moved.l1_used(), moved.kernels_resident(), moved.eth_used()), (100, 10, 3));
    assert_eq!((moved.resident_lanes, moved.lane_of(1), moved.l1_peak_bytes), (1 << 7, Some(7), 100));
    let ended =
        Event { flags: flags::RESIDENT, place: 1 << 7, id: 1, ..Event::new(EventKind::ProgramEnd, 0) };
    let mut counters = moved;
    counters.apply(&ended).unwrap();
    assert_eq!((counters.l1_used(), counters.kernels_resident(), counters.resident_lanes), (0, 0, 0));
    assert!(counters.is_plausible());
}

#[test]
fn a_dispatch_counts_as_often_as_it_says() {
    let replayed = Event { address: 1000, ..dispatch(1, 2, 3) };
    let cached = Event { flags: flags::RESIDENT | flags::CACHED, address: 20, ..replayed };
    let counters = apply(&[replayed, cached, dispatch(1, 2, 3)]);
    assert_eq!((counters.dispatches, counters.cached_dispatches), (1021, 20));
}

#[test]
fn used_is_what_is_occupied_and_requested_stands_beside_it() {
    let alloc = Event { aux: 2048, ..about(EventKind::Alloc, Class::L1, 131_072) };
    let ten = apply(&[alloc; 10]);
    let l1 = ten.class(Class::L1);
    assert_eq!((ten.l1_used(), ten.l1_requested(), l1.requested_bytes), (10 << 17, 20_480, 20_480));
    assert_eq!((l1.peak_bytes, ten.requested_basis_bytes), (10 << 17, [0; Class::COUNT]));
    let freed = apply(&[[alloc; 10], [Event { kind: EventKind::Free as u8, ..alloc }; 10]].concat());
    assert_eq!((freed.l1_used(), freed.l1_requested()), (0, 0));
    let of = |class: Class, asked: u64| Event { aux: asked, ..about(EventKind::Alloc, class, 4096) };
    let buffers = [of(Class::Dram, 5), of(Class::Trace, 70), of(Class::L1, 600), of(Class::L1Small, 8000)];
    let all = apply(&[&buffers[..], &[dispatch(0, 90_000, 0)]].concat());
    assert_eq!((all.dram_requested(), all.l1_requested()), (75, 98_600));
    assert_eq!(apply(&buffers).lane_of(0), None, "an empty lane has no program");
    // A buffer of which only the requested size is known.
    let told = Event { flags: flags::REQUESTED, ..about(EventKind::Alloc, Class::Dram, 500) };
    let basis = apply(&[told, about(EventKind::Alloc, Class::Dram, 700)]);
    assert_eq!((basis.dram_used(), basis.requested_basis_bytes[Class::Dram as usize]), (1200, 500));
}

#[test]
fn trace_is_dram_and_system_memory_is_nowhere() {
    let counters = apply(&[
        about(EventKind::Alloc, Class::Dram, 1000),
        about(EventKind::Alloc, Class::Trace, 200),
        about(EventKind::Alloc, Class::SystemMemory, 1 << 30),
        about(EventKind::CbAlloc, Class::Cb, 4096),
    ]);
    assert_eq!(counters.dram_used(), 1200);
    assert_eq!((counters.dram_peak_bytes, counters.dram_peak_count), (1200, 2));
    assert_eq!((counters.l1_used(), counters.eth_used()), (0, 0));
    assert_eq!(counters.class(Class::SystemMemory).live_bytes, 1 << 30);
    assert_eq!(counters.class(Class::Cb).live_bytes, 4096);
}

#[test]
fn an_impossible_event_changes_nothing() {
    let before = apply(&[about(EventKind::Alloc, Class::L1, 64), fabric(), dispatch(100, 50, 25)]);
    let resident = |kind, class, size, extra| Event {
        flags: flags::RESIDENT | extra,
        place: 1,
        ..about(kind, class, size)
    };
    let live = [
        about(EventKind::CbAlloc, Class::Cb, 1000),
        about(EventKind::KernelLoad, Class::KernelApplication, 1000),
    ];
    let mut with_live = before;
    live.iter().for_each(|event| with_live.apply(event).unwrap());
    let before = with_live;
    let tensix_fabric = Event { flags: 0, ..fabric() };
    let cb_free = resident(EventKind::CbFree, Class::Cb, 50, 0);
    for event in [
        about(EventKind::Free, Class::L1, 65),
        about(EventKind::Free, Class::Dram, 0),
        // More was requested than for all that is live, or none of it is known by its requested size only.
        Event { aux: 65, ..about(EventKind::Free, Class::L1, 64) },
        Event { flags: flags::REQUESTED, ..about(EventKind::Free, Class::L1, 64) },
        about(EventKind::Alloc, Class::L1, MAX_BYTES),
        about(EventKind::Alloc, Class::Dram, u64::MAX),
        Event { aux: MAX_BYTES + 1, ..about(EventKind::Alloc, Class::Dram, 1) },
        Event { class: 200, ..about(EventKind::Alloc, Class::Dram, 1) },
        Event { class: 200, ..about(EventKind::Free, Class::Dram, 1) },
        // On the other kind of cores than where it was loaded.
        Event { kind: EventKind::KernelUnload as u8, ..tensix_fabric },
        resident(EventKind::CbFree, Class::Cb, 51, 0),
        resident(EventKind::KernelUnload, Class::KernelApplication, 101, 0),
        resident(EventKind::KernelUnload, Class::KernelApplication, 26, flags::ETHERNET),
        // In an empty lane, in one of two lanes that have it, in a lane that does not exist.
        Event { place: 2, ..cb_free },
        Event { place: 3, ..cb_free },
        Event { place: 1 << 8, ..cb_free },
        dispatch(0, MAX_BYTES + 1, 0),
        in_lane(8, 1, dispatch(0, 0, 0)),
        Event { address: 7 << 32, ..dispatch(0, 0, 0) },
    ] {
        let event = Event { stamp: 99, ..event };
        let mut counters = before;
        let Event { kind, class, size, .. } = event;
        assert_eq!(counters.apply(&event), Err(Implausible { position: 99, kind, class, size }), "{event:?}");
        assert_eq!(counters, before, "{event:?}");
    }
}

#[test]
fn a_foreign_kind_moves_the_position_only() {
    let mut counters = apply(&[about(EventKind::Alloc, Class::Dram, 64)]);
    let before = counters;
    counters.apply(&Event { kind: 255, stamp: 7, time: 8, ..Event::new(EventKind::Marker, 0) }).unwrap();
    assert_eq!(counters, Counters { position: 7, time: 8, ..before });
}

/// Every figure that a sum, a count or a peak is made of; the others are only ever shown.
#[test]
fn figures_near_the_end_of_the_range_are_implausible() {
    let spoil: [fn(&mut Counters, u64); 20] = [
        |c, v| c.cb_resident_bytes = v,
        |c, v| c.kernel_resident_bytes = v,
        |c, v| c.kernel_resident_eth_bytes = v,
        |c, v| c.system_kernel_bytes = v,
        |c, v| c.system_kernel_eth_bytes = v,
        |c, v| c.dram_peak_bytes = v,
        |c, v| c.l1_peak_bytes = v,
        |c, v| c.eth_peak_bytes = v,
        |c, v| c.dispatches = v,
        |c, v| c.cached_dispatches = v,
        |c, v| c.failed_allocs = v,
        |c, v| c.classes[0].live_bytes = v,
        |c, v| c.classes[8].live_bytes = v,
        |c, v| c.classes[3].peak_bytes = v,
        |c, v| c.classes[4].live_count = v,
        |c, v| c.classes[5].alloc_count = v,
        |c, v| c.classes[0].requested_bytes = v,
        |c, v| c.requested_basis_bytes[1] = v,
        |c, v| c.lanes[2].cb_bytes = v,
        |c, v| c.resident_lanes = v,
    ];
    assert!(Counters::ZERO.is_plausible());
    for (index, spoil) in spoil.iter().enumerate() {
        for value in [u64::MAX, u64::MAX - 1, 1 << 63, (1 << 60) + 1] {
            let mut counters = Counters::ZERO;
            spoil(&mut counters, value);
            assert!(!counters.is_plausible(), "figure {index} = {value}");
        }
    }
    let mut used_beyond_peak = Counters::ZERO;
    used_beyond_peak.classes[Class::Dram as usize].live_bytes = 1;
    used_beyond_peak.classes[Class::Dram as usize].peak_bytes = 1;
    used_beyond_peak.classes[Class::Dram as usize].live_count = 1;
    used_beyond_peak.classes[Class::Dram as usize].alloc_count = 1;
    assert!(!used_beyond_peak.is_plausible());
}

#[test]
fn sums_that_are_not_those_of_the_lanes_are_implausible() {
    let resident = apply(&[in_lane(3, 1, dispatch(10, 100, 3))]);
    assert!(resident.is_plausible());
    let spoil: [fn(&mut Counters); 7] = [
        |c| c.cb_resident_bytes -= 1,
        |c| c.kernel_resident_bytes += 1,
        |c| c.kernel_resident_eth_bytes = 0,
        |c| c.lanes[3].kernel_bytes = 1 << 32,
        |c| c.resident_lanes = 0,
        |c| c.resident_lanes = 1 << 8 | 1 << 3,
        |c| c.lanes[0].program = 1,
    ];
    for (index, spoil) in spoil.iter().enumerate() {
        let mut counters = resident;
        spoil(&mut counters);
        assert!(!counters.is_plausible(), "figure {index}");
    }
}

#[test]
fn a_device_is_open_until_it_is_closed() {
    let (open, close) = (Event::new(EventKind::DeviceOpen, 0), Event::new(EventKind::DeviceClose, 0));
    assert_eq!([&[][..], &[open], &[open, close]].map(|events| apply(events).open), [0, 1, 0]);
}

#[test]
fn a_gauge_is_what_was_said_last() {
    let gauge = |size, address, aux| Event { size, address, aux, ..Event::new(EventKind::Gauge, 0) };
    let counters = apply(&[gauge(70, 35, 5), gauge(71, 36, 6)]);
    let Counters { kernel_ring_total_bytes, kernel_ring_used_bytes, kernel_ring_programs, .. } = counters;
    assert_eq!((kernel_ring_total_bytes, kernel_ring_used_bytes, kernel_ring_programs), (71, 36, 6));
}

/// The value was reached before; when it was reached again does not matter.
#[test]
fn the_time_of_a_peak_is_when_it_was_reached_first() {
    for class in [Class::Dram, Class::L1] {
        let (alloc, free) = (about(EventKind::Alloc, class, 9), about(EventKind::Free, class, 9));
        let counters = apply(&[alloc, free, alloc]);
        assert_eq!(counters.class(class).peak_time, 1);
        let of_memory = if class == Class::Dram { counters.dram_peak_time } else { counters.l1_peak_time };
        assert_eq!(of_memory, 1);
    }
    let unload = Event { kind: EventKind::KernelUnload as u8, ..fabric() };
    assert_eq!(apply(&[fabric(), unload, fabric()]).eth_peak_time, 1);
}

#[test]
fn a_program_ends_only_in_its_lanes() {
    let begun = in_lane(2, 7, dispatch(10, 100, 3));
    let end = |place, flags| Event { place, flags, id: 7, ..Event::new(EventKind::ProgramEnd, 0) };
    let resident = |last: Event| apply(&[begun, last]).cb_resident_bytes;
    assert_eq!(resident(end(1 << 2, flags::RESIDENT)), 0);
    assert_eq!(resident(end(1 << 1, flags::RESIDENT)), 100, "it is in another lane");
    assert_eq!(resident(end(1 << 2, 0)), 100, "it is not said to be resident");
    assert_eq!(resident(Event { id: 8, ..end(1 << 2, flags::RESIDENT) }), 100, "another program");
}

#[test]
fn dispatches_are_counted_up_to_the_most_there_can_be() {
    let mut counters = Counters { dispatches: MAX_COUNT - 1, ..Counters::ZERO };
    assert!(counters.apply(&dispatch(1, 1, 0)).is_ok());
    assert_eq!(counters.dispatches, MAX_COUNT);
    let before = counters;
    assert!(counters.apply(&dispatch(1, 1, 0)).is_err());
    assert_eq!(counters, before);
}

#[test]
fn a_lane_that_there_is_not_is_implausible() {
    assert!(!Counters { resident_lanes: 1 << 8, ..Counters::ZERO }.is_plausible());
    assert!(Counters { resident_lanes: (1 << 8) - 1, ..Counters::ZERO }.is_plausible());
}

/// Every time is converted, and a time that is not set stays so.
#[test]
fn all_times_are_converted() {
    let failed = about(EventKind::AllocFailed, Class::Dram, 1);
    let events = [
        about(EventKind::Alloc, Class::Dram, 5),
        about(EventKind::Alloc, Class::L1, 5),
        fabric(),
        dispatch(1, 1, 1),
        failed,
    ];
    let mut counters = apply(&events);
    counters.time = 5;
    let before = counters;
    counters.map_times(|ticks| 1000 + ticks);
    let times = |c: &Counters| {
        let fixed = [c.time, c.dram_peak_time, c.l1_peak_time, c.eth_peak_time, c.last_dispatch_time];
        let others = [c.last_failed_time, c.peak_reset_time];
        fixed
            .into_iter()
            .chain(others)
            .chain(c.classes.iter().map(|class| class.peak_time))
            .collect::<Vec<_>>()
    };
    let expected: Vec<u64> =
        times(&before).into_iter().map(|time| if time == 0 { 0 } else { 1000 + time }).collect();
    assert_eq!(times(&counters), expected);
    assert!(expected.iter().filter(|time| **time != 0).count() >= 9 && expected.contains(&0), "{expected:?}");
}
