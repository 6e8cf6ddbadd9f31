//! Live allocations, programs, and how kernels share binaries.

use crate::common::segment::Writer;
use shm_layout::control;
use tt_shm_reader::{
    Class, CoreType, Event, EventKind, KernelSharing, KernelType, Row, RowKind, flags, kernel_sharing,
    monotonic_ns,
};

#[test]
fn allocations_are_those_that_live() {
    let mut writer = Writer::new(2);
    let name = writer.name(b"weights");
    let site = writer.name(b"model.py:7");
    let began = monotonic_ns();
    let event = Event {
        class: Class::Dram as u8,
        id: 1,
        size: 10,
        row: 1,
        name,
        site,
        ..Event::new(EventKind::Alloc, 0)
    };
    let first = writer.commit(event);
    writer.alloc(1, Class::L1, 2, 20);
    writer.free(1, Class::L1, 2, 20);
    let third = writer.alloc(1, Class::Trace, 3, 30);
    writer.dispatch(0, 9, 0, (10, 11), None);
    writer.set(control::UNLISTED, 4);

    let segment = writer.open();
    let all = segment.allocations();
    assert_eq!((all.position, all.exact, all.missed, all.unlisted), (5, true, 0, 4));
    let rows: Vec<Row> = all.list.iter().map(|a| a.row).collect();
    let expected = [&first, &third].map(Row::from_event);
    assert_eq!(rows, expected, "oldest first, without the program row");
    assert_eq!(all.list[0].name.as_deref(), Some("weights"));
    assert_eq!(all.list[0].site.as_deref(), Some("model.py:7"));
    assert_eq!((&all.list[1].name, &all.list[1].site), (&None, &None));
    // Ticks of the test's clock are nanoseconds, but the observer measures them: hence the slack.
    let most = 2 * (monotonic_ns() - began) + 1_000_000;
    assert!(all.list[0].age_ns <= most);
    assert!(all.list[0].age_ns >= all.list[1].age_ns);
    assert_eq!(segment.live_list().rows.len(), 3);
}

#[test]
fn lists_fill_a_buffer_that_was_used_before() {
    let mut writer = Writer::new(1);
    let segment = writer.open();
    let (mut rows, mut list, mut counters) = (Vec::new(), Vec::new(), Vec::new());
    for count in [300_u64, 2] {
        (0..count).for_each(|id| _ = writer.alloc(0, Class::Dram, id, 1));
        writer.dispatch(0, 9, 0, (400, 401), None);
        let listed = segment.rows_into(&mut rows);
        assert_eq!((rows.len() as u64, listed.position), (count + 1, writer.head), "with the program's");
        assert_eq!(listed, segment.allocations_into(&mut list));
        assert_eq!((list.len() as u64, listed.exact, listed.missed, listed.unlisted), (count, true, 0, 0));
        assert_eq!(segment.counters_into(&mut counters).unwrap(), writer.head);
        assert_eq!(counters, writer.truth(), "not appended");
        (0..count).for_each(|id| _ = writer.free(0, Class::Dram, id, 1));
    }
    assert!(rows.capacity() >= 300, "its memory is kept");
    assert_eq!(segment.device(0), segment.devices().first().copied());
    assert_eq!(segment.device(1), None);
}

#[test]
fn an_age_counts_from_the_allocation() {
    let mut writer = Writer::new(1);
    let hour = 3_600_000_000_000;
    let mut event = writer.stamp(Event { class: 0, row: 1, ..Event::new(EventKind::Alloc, 0) });
    event.time = writer.header.anchor_ticks.saturating_sub(hour);
    writer.words().write_slot(event.to_words());
    writer.words().change_row(&event, event.to_words());
    writer.words().publish_head(event.stamp);
    let age = writer.open().allocations().list[0].age_ns;
    let expected = writer.header.anchor_ticks - event.time;
    assert!((expected / 2..2 * expected + hour).contains(&age), "{age} instead of {expected}");
}

#[test]
fn rows_that_are_newer_than_every_event_make_a_list_inexact() {
    let mut writer = Writer::new(1);
    writer.alloc(0, Class::Dram, 1, 1);
    writer.words().rows[1][0].store(99, std::sync::atomic::Ordering::Relaxed);
    let all = writer.open().allocations();
    assert!(!all.exact);
}

/// A kernel of a program: binary x cores.
fn kernel(device: u8, id: u64, class: Class, (binary, cores): (u64, u16), program: u64, hash: u64) -> Event {
    Event {
        class: class as u8,
        id,
        size: binary * u64::from(cores),
        cores,
        address: hash,
        aux: program,
        row: id as u32,
        ..Event::new(EventKind::KernelLoad, device)
    }
}

fn cb(device: u8, id: u64, size: u64, program: u64) -> Event {
    Event {
        class: Class::Cb as u8,
        id,
        size,
        aux: program,
        row: id as u32,
        ..Event::new(EventKind::CbAlloc, device)
    }
}

#[test]
fn programs_are_joined_over_devices() {
    let mut writer = Writer::new(2);
    let (kernel_name, program_name) = (writer.name(b"reader"), writer.name(b"softmax"));
    let app = Class::KernelApplication;
    writer.commit(Event { name: kernel_name, ..kernel(0, 1, app, (102_400, 80), 7, 5) });
    writer.commit(Event { flags: flags::LATE | flags::ETHERNET, ..kernel(1, 2, app, (1000, 2), 7, 0) });
    writer.commit(kernel(1, 3, Class::KernelFabric, (57_344, 16), 8, 0));
    writer.commit(kernel(0, 4, Class::KernelDispatch, (47_104, 2), 9, 0));
    writer.commit(cb(0, 5, 2048, 7));
    writer.commit(cb(0, 6, 1024, 7));
    writer.alloc(0, Class::Dram, 9, 1);

    let segment = writer.open();
    assert_eq!(segment.programs()[0].name.as_deref(), Some("reader"), "no name of its own yet");
    let first = writer.dispatch(0, 7, 0, (20, 21), None);
    let second = Row { name: program_name, ..writer.dispatch(0, 7, flags::CACHED, (21, 20), Some(&first)) };
    shm_layout::protocol::stamped::write(&writer.words().rows[21], &second);
    let third = writer.dispatch(1, 7, flags::CACHED, (22, 23), None);

    let programs = segment.programs();
    assert_eq!(programs.iter().map(|p| p.id).collect::<Vec<_>>(), [7, 8, 9]);
    let p = &programs[0];
    assert_eq!(p.name.as_deref(), Some("softmax"));
    assert_eq!(p.device_indices().collect::<Vec<_>>(), [0, 1]);
    assert_eq!((p.kernel_bytes, p.cb_bytes, p.cb_count), (8_194_000, 3072, 2));
    assert_eq!((p.dispatches, p.cache_hits, p.cache_misses), (3, 2, 1));
    assert_eq!(p.last_dispatch, Some(third.time));
    assert_eq!((p.kernel_types.as_slice(), p.late), ([KernelType::Application].as_slice(), true));

    let d = &p.devices[0];
    assert_eq!((d.kernel_bytes, d.cb_bytes, d.cb_count), (8_192_000, 3072, 2));
    assert_eq!((d.dispatches, d.cache_hits, d.cache_misses), (2, 1, 1));
    assert_eq!(d.last_dispatch, Some(second.time));
    let k = &d.kernels[0];
    assert_eq!((k.binary_bytes(), k.cores, k.bytes, k.hash), (Some(102_400), 80, 8_192_000, Some(5)));
    assert_eq!((k.core_type, k.late), (CoreType::Tensix, false));
    let k = &p.devices[1].kernels[0];
    assert_eq!((k.core_type, k.late, k.hash), (CoreType::Ethernet, true, None));

    let fabric = &programs[1];
    assert_eq!(
        (fabric.kernel_types.as_slice(), fabric.last_dispatch),
        ([KernelType::Fabric].as_slice(), None)
    );
    assert_eq!((fabric.kernel_bytes, fabric.dispatches, fabric.late), (917_504, 0, false));
}

#[test]
fn hostile_program_rows_do_not_overflow() {
    let mut writer = Writer::new(1);
    let mut event = kernel(0, 1, Class::KernelApplication, (1, 0), 7, 3);
    event.size = u64::MAX;
    for id in 1..4 {
        let event = writer.stamp(Event { id, row: id as u32, ..event });
        writer.words().change_row(&event, event.to_words());
        writer.words().publish_head(event.stamp);
    }
    let dispatches =
        Row { kind: RowKind::Program as u8, stamp: 3, id: 7, size: 1, address: 2, ..bytemuck::zeroed() };
    shm_layout::protocol::stamped::write(&writer.words().rows[9], &dispatches);
    let segment = writer.open();
    let programs = segment.programs();
    assert_eq!((programs[0].kernel_bytes, programs[0].cache_misses), (u64::MAX, 0));
    assert_eq!(programs[0].devices[0].kernels[0].binary_bytes(), None);
    assert_eq!(kernel_sharing(&segment.live_list().rows)[0].loaded, u64::MAX);
}

#[test]
fn copies_of_a_binary_are_told_apart() {
    let row = |device, hash, size| Row {
        kind: RowKind::Kernel as u8,
        device,
        address: hash,
        size,
        ..bytemuck::zeroed()
    };
    let mut rows =
        vec![row(1, 9, 100), row(0, 7, 160), row(0, 7, 100), row(0, 8, 30), row(0, 0, 5), row(0, 0, 6)];
    rows.push(Row { kind: RowKind::Cb as u8, ..row(0, 7, 1000) });
    assert_eq!(
        kernel_sharing(&rows),
        [
            KernelSharing { device: 0, loaded: 301, unique: 190, shared: 100, unhashed: 11 },
            KernelSharing { device: 1, loaded: 100, unique: 100, shared: 0, unhashed: 0 },
        ]
    );
}
