//! Figures that the design promises, and what is refused.

use shm_layout::{Class, Counters, Event, EventKind, Implausible, MAX_BYTES, flags};

fn apply(events: &[Event]) -> Counters {
    let mut counters = Counters::ZERO;
    for (index, event) in events.iter().enumerate() {
        let stamp = index as u64 + 1;
        counters.apply(&Event { stamp, time: stamp, ..*event }).unwrap();
    }
    counters
}

fn about(kind: EventKind, class: Class, size: u64) -> Event {
    Event { class: class as u8, size, ..Event::new(kind, 0) }
}

fn fabric() -> Event {
    let size = 57_344 * 16;
    Event { flags: flags::ETHERNET, cores: 16, ..about(EventKind::KernelLoad, Class::KernelFabric, size) }
}

fn dispatch_kernel() -> Event {
    Event { cores: 2, ..about(EventKind::KernelLoad, Class::KernelDispatch, 47_104 * 2) }
}

fn dispatch(size: u64, cbs: u64, eth: u64) -> Event {
    Event { size, address: cbs, aux: eth, flags: flags::RESIDENT, ..Event::new(EventKind::KernelDispatch, 0) }
}

#[test]
fn fabric_kernels_are_on_ethernet_cores() {
    let counters = apply(&[fabric()]);
    assert_eq!((counters.eth_used(), counters.l1_used()), (917_504, 0));
    assert_eq!(counters.class(Class::KernelFabric).live_bytes, 917_504);
    assert_eq!(counters.eth_peak_bytes, 917_504);
}

#[test]
fn dispatch_kernels_are_in_l1() {
    let counters = apply(&[dispatch_kernel()]);
    assert_eq!((counters.eth_used(), counters.l1_used()), (0, 94_208));
}

#[test]
fn both_are_loaded_together() {
    let counters = apply(&[fabric(), dispatch_kernel()]);
    assert_eq!(counters.kernel_loaded_bytes(), 1_011_712);
    assert_eq!((counters.eth_used(), counters.l1_used()), (917_504, 94_208));
}

#[test]
fn application_kernels_are_resident_only_after_dispatch() {
    let size = 102_400 * 80;
    let load = about(EventKind::KernelLoad, Class::KernelApplication, size);
    let loaded = apply(&[load]);
    assert_eq!((loaded.kernel_loaded_bytes(), loaded.l1_used(), loaded.l1_peak_bytes), (8_192_000, 0, 0));
    let dispatched = apply(&[load, dispatch(size, 0, 0)]);
    assert_eq!((dispatched.l1_used(), dispatched.l1_peak_bytes), (8_192_000, 8_192_000));
    // Another program takes its place, even if this one stays loaded.
    let displaced = apply(&[load, dispatch(size, 0, 0), dispatch(4096, 512, 128)]);
    assert_eq!((displaced.l1_used(), displaced.eth_used()), (4608, 128));
    assert_eq!(displaced.l1_peak_bytes, 8_192_000);
}

#[test]
fn a_system_program_displaces_nothing() {
    let system = Event { flags: 0, ..dispatch(0, 0, 0) };
    let counters = apply(&[dispatch(4096, 512, 128), system]);
    assert_eq!((counters.l1_used(), counters.eth_used(), counters.dispatches), (4608, 128, 2));
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
    let resident =
        |kind, class, size, extra| Event { flags: flags::RESIDENT | extra, ..about(kind, class, size) };
    let tensix_fabric = Event { flags: 0, ..fabric() };
    for event in [
        about(EventKind::Free, Class::L1, 65),
        about(EventKind::Free, Class::Dram, 0),
        about(EventKind::Alloc, Class::L1, MAX_BYTES),
        about(EventKind::Alloc, Class::Dram, u64::MAX),
        Event { class: 200, ..about(EventKind::Alloc, Class::Dram, 1) },
        Event { class: 200, ..about(EventKind::Free, Class::Dram, 1) },
        // On the other kind of cores than where it was loaded.
        Event { kind: EventKind::KernelUnload as u8, ..tensix_fabric },
        resident(EventKind::CbFree, Class::Cb, 51, 0),
        resident(EventKind::KernelUnload, Class::KernelApplication, 101, 0),
        resident(EventKind::KernelUnload, Class::KernelApplication, 26, flags::ETHERNET),
        dispatch(MAX_BYTES + 1, 0, 0),
        dispatch(0, MAX_BYTES + 1, 0),
        dispatch(0, 0, MAX_BYTES + 1),
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
    let spoil: [fn(&mut Counters, u64); 16] = [
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
    used_beyond_peak.kernel_resident_bytes = 1;
    assert!(!used_beyond_peak.is_plausible());
}
