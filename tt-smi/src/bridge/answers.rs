//! Answers to questions, from the segments of all processes that report. What is not known is 0: the protocol has no
//! other value for it.

use std::collections::BTreeMap;
use std::io;

use shm_layout::claims::{Claims, Standing};
use shm_layout::{Class, Counters, DeviceEntry, known};
use tt_shm_measure::message::{Info, Kind, Message};
use tt_shm_os::Namespace;

use crate::segments::Segments;

/// By place in [`Message::allocated`]: the classes that are part of it.
const SUMS: [&[Class]; 6] = [
    &[Class::Dram],
    &[Class::L1],
    &[Class::L1Small],
    &[Class::Trace],
    &[Class::Cb],
    &[Class::KernelApplication, Class::KernelFabric, Class::KernelDispatch],
];

/// The devices that processes use, by the number that they have for them.
#[derive(Debug, Default)]
pub(super) struct Devices(BTreeMap<u64, Device>);

/// What is known of a device.
#[derive(Debug, Default)]
struct Device {
    said: Claims,
    allocated: [u64; 6],
    /// Size, bytes used and programs of the fullest kernel ring buffer.
    ring: [u64; 3],
}

impl Devices {
    /// Reads them.
    pub(super) fn read(namespace: &Namespace) -> io::Result<Devices> {
        let mut devices = Devices::default();
        let user = rustix::process::geteuid().as_raw();
        for segment in &Segments::open(namespace)?.live {
            let entries = segment.devices();
            // A broken segment is part of no total.
            let Ok(snapshot) = segment.counters() else { continue };
            let standing = Standing::for_user(segment.uid(), user);
            for (entry, counters) in entries.iter().zip(&snapshot.counters) {
                devices.add(standing, entry, counters);
            }
        }
        Ok(devices)
    }

    fn add(&mut self, standing: Standing, entry: &DeviceEntry, counters: &Counters) {
        let Some(number) = entry.logical() else { return };
        let device = self.0.entry(number).or_default();
        device.said.add(standing, [entry]);
        for (sum, classes) in device.allocated.iter_mut().zip(SUMS) {
            let live = classes.iter().map(|class| counters.classes[*class as usize].live_bytes);
            *sum = live.fold(*sum, u64::saturating_add);
        }
        if counters.kernel_ring_used_bytes >= device.ring[1] && counters.kernel_ring_total_bytes > 0 {
            device.ring = [
                counters.kernel_ring_total_bytes,
                counters.kernel_ring_used_bytes,
                counters.kernel_ring_programs,
            ];
        }
    }

    fn get(&self, number: i32) -> Option<&Device> {
        self.0.get(&u64::try_from(number).ok()?)
    }

    /// The answer to QUERY: sums over all processes.
    pub(super) fn statistics(&self, number: i32) -> Message {
        let mut answer = Message::answer(Kind::Response, number);
        if let Some(device) = self.get(number) {
            answer.allocated = device.allocated;
            answer.ring = device.ring.map(short);
        }
        answer
    }

    /// The answer to DEVICE_INFO_QUERY: a device, or with number -1 how many there are.
    pub(super) fn info(&self, number: i32) -> Message {
        let mut answer = Message::answer(Kind::DeviceInfoResponse, number);
        if number == -1 {
            // Clients then ask for each number below this one.
            let count = self.0.last_key_value().map_or(0, |(last, _)| last.saturating_add(1));
            (answer.info.num_devices, answer.info.is_available) = (short(count), u32::from(count > 0));
        } else if let Some(device) = self.get(number) {
            let entry = device.said.settle(0).entry;
            answer.totals = [entry.dram_total().unwrap_or(0), entry.l1_total().unwrap_or(0)];
            answer.info = info_of(&entry);
        }
        answer
    }
}

fn info_of(entry: &DeviceEntry) -> Info {
    let if_known = |bit: u64, value: u64| if entry.known & bit != 0 { value } else { 0 };
    let dram_channels = if_known(known::DRAM_CHANNELS, entry.dram_channels);
    let dram_channel_bytes = if_known(known::DRAM, entry.dram_bytes).checked_div(dram_channels).unwrap_or(0);
    Info {
        arch: entry.architecture() as u32,
        dram_channels: short(dram_channels),
        dram_channel_bytes: short(dram_channel_bytes),
        l1_per_core: short(if_known(known::L1, entry.l1_per_core)),
        is_available: 1,
        num_devices: 0,
    }
}

/// A figure in a field of 32 bits; 0, which is unknown, if it does not fit.
fn short(figure: u64) -> u32 {
    u32::try_from(figure).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_shm_measure::scene::Scene;
    use tt_shm_writer::{Alloc, Arch, BufferType, CircularBuffer, CoreMemory, DeviceInfo, Record};

    #[test]
    fn answers_are_sums_over_processes_and_what_they_say_of_a_device() {
        let scene = Scene::new();
        let [one, two] = [0, 0].map(|_| scene.builder().open().unwrap());
        let known = DeviceInfo {
            chip_id: 99,
            logical_id: Some(2),
            arch: Arch::Wormhole,
            dram_bytes: Some(12 << 30),
            dram_channels: Some(12),
            l1: Some(CoreMemory { cores: 64, bytes_per_core: 1_499_136 }),
            ..DeviceInfo::default()
        };
        let first = one.register_device(&known).unwrap();
        let number_only = DeviceInfo { chip_id: 2, logical_id: Some(2), ..DeviceInfo::default() };
        let second = two.register_device(&number_only).unwrap();
        one.alloc(first, Alloc::new(BufferType::Dram, 1, 1000)).unwrap();
        two.alloc(second, Alloc::new(BufferType::Dram, 1, 24)).unwrap();
        two.alloc(second, Alloc::new(BufferType::Trace, 2, 7)).unwrap();
        two.cb_alloc(second, CircularBuffer::new(0, 1, 64, 1)).unwrap();
        one.kernel_ring(first, 70_656, 4096, 3).unwrap();
        let devices = Devices::read(&scene.namespace).unwrap();
        let statistics = devices.statistics(2);
        assert_eq!(statistics.allocated, [1024, 0, 0, 7, 64, 0]);
        assert_eq!((statistics.kind, statistics.ring), (Kind::Response as u8, [70_656, 4096, 3]));
        let info = devices.info(2);
        assert_eq!(info.totals, [12 << 30, 64 * 1_499_136]);
        let Info { arch, dram_channels, dram_channel_bytes, l1_per_core, is_available, .. } = info.info;
        assert_eq!((arch, dram_channels, dram_channel_bytes), (2, 12, 1 << 30));
        assert_eq!((l1_per_core, is_available), (1_499_136, 1));
        assert_eq!((devices.info(-1).info.num_devices, devices.info(-1).info.is_available), (3, 1));
        for unknown in [0, 7, -2, i32::MIN] {
            assert_eq!(devices.info(unknown), Message::answer(Kind::DeviceInfoResponse, unknown));
            assert_eq!(devices.statistics(unknown), Message::answer(Kind::Response, unknown));
        }
    }
}
