//! Clocks that step, disagree or lie: times may be wrong then, totals never.

use crate::common::{Scene, buffer, chip, settled};
use shm_layout::{Class, Event, EventKind};
use tt_shm_os::monotonic_ns;
use tt_shm_reader::process_state;

/// Far from every other time, in ticks of every clock.
const HOUR: u64 = 3_600_000_000_000;

#[test]
fn time_running_backwards_in_events_changes_no_total() {
    let scene = Scene::new();
    let mut process = scene.process();
    let device = process.register(chip(1));
    let mut aggregator = scene.aggregator();
    let now = process.clock.ticks();
    let times = [now, now.saturating_sub(HOUR), now + HOUR, 0, u64::MAX, now];
    for (size, time) in (1..).zip(times) {
        process.emit_raw(Event { time, ..buffer(EventKind::Alloc, device, Class::Dram, size) });
    }
    let snapshot = settled(&mut aggregator);
    let shown = snapshot.devices[0].1;
    assert_eq!((shown.dram_used_bytes, shown.classes[0].live_count), (21, 6));
    let own = snapshot.usages[0].1.counters;
    assert_eq!(own.dram_peak_bytes, process.counters(device).dram_peak_bytes);
    // A time from the future would make the next real one look old for an hour.
    assert!(snapshot.processes[0].1.last_event <= monotonic_ns() + 1_000_000_000);
    process.alloc(device, Class::Dram, 100);
    let snapshot = settled(&mut aggregator);
    assert_eq!(snapshot.devices[0].1.dram_used_bytes, 121);
}

#[test]
fn segments_whose_anchors_disagree_add_up() {
    let scene = Scene::new();
    let (mut honest, mut ahead, mut behind) = (scene.process(), scene.process(), scene.process());
    ahead.change_header(|header| {
        header.anchor_monotonic_ns += HOUR;
        header.anchor_realtime_ns += 24 * HOUR;
    });
    behind.change_header(|header| {
        header.anchor_monotonic_ns = 1;
        header.anchor_realtime_ns = 0;
        header.anchor_ticks = u64::MAX;
    });
    let mut aggregator = scene.aggregator();
    for process in [&mut honest, &mut ahead, &mut behind] {
        let device = process.register(chip(1));
        process.alloc(device, Class::Dram, 1000);
        process.alloc(device, Class::L1, 10);
        process.free(device, Class::L1, 10);
    }
    let snapshot = settled(&mut aggregator);
    let shown = snapshot.devices[0].1;
    assert_eq!((shown.dram_used_bytes, shown.l1_used_bytes), (3000, 0));
    assert!(shown.dram_peak.low <= 3000 && shown.dram_peak.high >= 3000, "{:?}", shown.dram_peak);
    let alive = snapshot.processes.iter().filter(|(_, p)| p.state == process_state::ALIVE && p.flags == 0);
    assert_eq!(alive.count(), 3);
}
