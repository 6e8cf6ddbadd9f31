//! Small data sets for tests of views.

use bytemuck::Zeroable;
use ratatui::layout::Rect;
use tt_shm_reader::{
    Class, Counters, DeviceEntry, DeviceStats, Freshness, ProcessStats, TableSnapshot, UsageStats, known,
    process_state, text,
};

use crate::model::{Clock, Model};
use crate::model::{Origin, Reading};
use crate::screen::data::{Data, More};
use crate::screen::page::Scene;
use crate::screen::theme::Theme;

/// CLOCK_MONOTONIC of the data.
pub(crate) const NOW: u64 = 100_000_000_000;

/// This many devices and processes, each process on all devices, with pids from 100 on; a higher pid has more DRAM.
pub(crate) fn data(devices: u64, processes: u64, more: More) -> Data {
    let device = |number: u64| {
        let entry = DeviceEntry { chip_id: 7 + number, ..DeviceEntry::zeroed() };
        (number as usize, DeviceStats { generation: 1, entry, processes, ..DeviceStats::zeroed() })
    };
    let process = |number: u64| {
        let pid_namespace = tt_shm_os::pid_namespace().unwrap_or(0);
        let (state, pid, name) = (process_state::ALIVE, 100 + number, text::encode("worker"));
        let identity = pid;
        let stats =
            ProcessStats { generation: 1, state, identity, pid, pid_namespace, name, ..Zeroable::zeroed() };
        (number as usize, stats)
    };
    let usage = |(process, device): (u64, u64)| {
        let mut counters = Counters::ZERO;
        let (dram, bytes) = (&mut counters.classes[Class::Dram as usize], 1 + process);
        (dram.live_bytes, dram.alloc_bytes, dram.peak_bytes) = (bytes, bytes, bytes);
        (dram.live_count, dram.alloc_count, dram.peak_count) = (1, 1, 1);
        (counters.dram_peak_bytes, counters.dram_peak_count) = (bytes, 1);
        let row = (process * devices + device) as usize;
        let entry = DeviceEntry { logical_id: device, known: known::LOGICAL, ..DeviceEntry::zeroed() };
        (
            row,
            UsageStats {
                generation: 1,
                process,
                device,
                logical_id: device,
                entry,
                counters,
                ..Zeroable::zeroed()
            },
        )
    };
    let pairs = (0..processes).flat_map(|process| (0..devices).map(move |device| (process, device)));
    let snapshot = TableSnapshot {
        generation: 1,
        consistent: true,
        devices: (0..devices).map(device).collect(),
        processes: (0..processes).map(process).collect(),
        usages: pairs.map(usage).collect(),
        notices: Vec::new(),
        failures: Vec::new(),
        driver: Vec::new(),
        driver_left_out: 0,
        regions: Vec::new(),
        regions_left_out: 0,
        events: 0,
        missed: 0,
        late: 0,
        lost: 0,
        as_of: 0,
        refused: 0,
        window_since: 0,
        windows: 0,
        overflow: 0,
        unseen: 0,
        publish_errors: 0,
        incomplete_since: None,
        clock_steps: 0,
        awake_since: 0,
        gap: None,
        freshness: Freshness { heartbeat_ns: NOW, age_ns: 0, closed: false, interval_ns: 20_000_000 },
    };
    let reading = Reading {
        snapshot,
        origin: Origin::Embedded,
        clock: Clock { monotonic_ns: NOW, realtime_ns: 1_790_000_000 * 1_000_000_000, awake_since: 0 },
        rates_known: true,
        hidden: Vec::new(),
        refused_table: None,
    };
    Data::new(Model::new(&reading), more)
}

/// A scene of the data.
pub(crate) fn scene(data: &Data, width: u16, height: u16) -> Scene<'_> {
    Scene { data, device: 0, area: Rect::new(0, 0, width, height), theme: &Theme::MONO, frozen: false }
}
