//! Reading while the other side writes at full speed: what is claimed to be exact must be.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::segment::{Writer, header};
use crate::common::table::Publisher;
use shm_layout::table::control;
use tt_shm_reader::{
    Class, DeviceStats, Event, EventKind, ProcessStats, Segment, SegmentHeader, Table, UsageStats,
};

/// Runs `write` over and over, beside `read`, until `read` has returned.
fn while_writing(mut write: impl FnMut(u64) + Send, read: impl FnOnce()) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| (1..).take_while(|_| !done.load(Ordering::Relaxed)).for_each(&mut write));
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        // Even if an assertion fails: the scope waits for the writer.
        let _stop = Stop(&done);
        read();
    });
}

/// Repeats until `step` has counted enough; fails instead of hanging if it never does.
fn until(enough: u64, mut step: impl FnMut() -> u64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut counted = 0;
    while counted < enough {
        counted += step();
        assert!(Instant::now() < deadline, "only {counted} of {enough}");
    }
}

fn busy_writer(devices: usize) -> (Writer, Segment) {
    let plan = SegmentHeader::plan(4096, 64, 64);
    let honest = header();
    let header = SegmentHeader {
        boot_id: honest.boot_id,
        identity: honest.identity,
        pid: honest.pid,
        clock_kind: honest.clock_kind,
        ..plan
    };
    let writer = Writer::with_header(header, devices);
    writer.set(shm_layout::control::ROWS_PUBLISHED, 64);
    let segment = writer.open();
    (writer, segment)
}

#[test]
fn counters_of_a_busy_process_are_of_one_position() {
    let (mut writer, segment) = busy_writer(3);
    let write = |event: u64| {
        writer.commit(Event { class: 0, size: 1, aux: 1, ..Event::new(EventKind::Alloc, (event % 3) as u8) });
    };
    while_writing(write, || {
        let mut last = 0;
        until(2000, || {
            let Ok(snapshot) = segment.counters() else { return 0 };
            let count: u64 = snapshot.counters.iter().map(|c| c.class(Class::Dram).alloc_count).sum();
            assert_eq!(count, snapshot.position, "every event allocates one");
            assert!(snapshot.position >= last);
            last = snapshot.position;
            1
        });
    });
}

#[test]
fn a_follower_of_a_busy_process_counts_every_event() {
    let (mut writer, segment) = busy_writer(1);
    let mut follow = segment.follow_from_start();
    let write = |id| {
        writer.commit(Event { id, class: 0, size: 1, aux: 1, ..Event::new(EventKind::Alloc, 0) });
    };
    while_writing(write, || {
        let mut read = 0;
        until(500_000, || {
            let before = read;
            for event in follow.by_ref().take(1000) {
                read += 1;
                assert_eq!(event.id, event.stamp, "each event is whole");
            }
            assert_eq!(read + follow.missed(), follow.position());
            read - before
        });
    });
}

#[test]
fn the_live_list_of_a_busy_process_is_that_of_its_position() {
    let (mut writer, segment) = busy_writer(1);
    // Odd events allocate, even ones free the same: one is live at odd positions, none at even ones.
    let write = |event: u64| {
        let id = event.div_ceil(2);
        let kind = if event % 2 == 1 { EventKind::Alloc } else { EventKind::Free };
        writer.commit(Event {
            id,
            class: 0,
            size: id,
            aux: id,
            row: (id % 64) as u32,
            ..Event::new(kind, 0)
        });
    };
    while_writing(write, || {
        until(2000, || {
            let all = segment.allocations();
            if all.exact {
                let live: Vec<u64> = all.list.iter().map(|a| a.row.id).collect();
                let expected = (all.position % 2 == 1).then(|| all.position.div_ceil(2));
                assert_eq!(live, Vec::from_iter(expected), "at position {}", all.position);
            }
            u64::from(all.exact)
        });
    });
}

#[test]
fn a_consistent_snapshot_of_a_busy_table_is_of_one_batch() {
    let publisher = Publisher::new();
    let table: Table = publisher.open();
    let write = |generation| {
        publisher.device(0, DeviceStats { generation, events: generation, ..bytemuck::zeroed() });
        publisher.process(0, ProcessStats { generation, position: generation, ..bytemuck::zeroed() });
        publisher.usage(0, UsageStats { generation, logical_id: generation, ..bytemuck::zeroed() });
        publisher.set(control::GENERATION, generation);
        // A real aggregator sleeps between batches; this one leaves a gap that is found now and then.
        (0..generation % 512).for_each(|_| std::hint::spin_loop());
    };
    while_writing(write, || {
        until(500, || {
            let s = table.snapshot();
            if !s.consistent || s.generation == 0 {
                return 0;
            }
            let rows = (s.devices[0].1.events, s.processes[0].1.position, s.usages[0].1.logical_id);
            assert_eq!(rows, (s.generation, s.generation, s.generation));
            1
        });
    });
}

#[test]
fn a_row_that_was_emptied_and_removed_meanwhile_is_noticed() {
    const DEVICES: usize = 64;
    let publisher = Publisher::new();
    let table: Table = publisher.open();
    for index in 1..DEVICES {
        publisher.device(index, DeviceStats { generation: 1, ..bytemuck::zeroed() });
    }
    // A process uses the device, stops using it, and its row is freed: three generations.
    let write = |batch: u64| {
        let (generation, uses) = (batch + 1, u64::from(batch.is_multiple_of(3)));
        publisher.device(0, DeviceStats { generation, processes: uses, ..bytemuck::zeroed() });
        let generation_of_row = if batch % 3 == 2 { 0 } else { generation };
        publisher
            .usage(0, UsageStats { generation: generation_of_row, logical_id: uses, ..bytemuck::zeroed() });
        publisher.set(control::GENERATION, generation);
        // Long enough for a whole snapshot once in a while.
        (0..if batch.is_multiple_of(64) { 20_000 } else { 100 }).for_each(|_| std::hint::spin_loop());
    };
    while_writing(write, || {
        until(1000, || {
            let s = table.snapshot();
            if s.consistent && s.generation > 1 {
                let uses: u64 = s.usages.iter().map(|(_, usage)| usage.logical_id).sum();
                assert_eq!(s.devices[0].1.processes, uses);
            }
            u64::from(s.consistent)
        });
    });
}
