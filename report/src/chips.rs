//! The chips of a record: what its processes say of them, joined by chip id.

use std::collections::HashMap;

use shm_layout::{Class, DeviceEntry, known};
use tt_shm_record::Record;

/// The pools of DRAM and of L1, and the bits that say that they differ.
const DISPUTES: [(u64, u64); 2] = [
    (known::POOL | known::POOL << 1 | known::DRAM, known::DRAM_POOLS_DIFFER),
    (known::POOL << 2 | known::POOL << 3 | known::L1, known::L1_POOLS_DIFFER),
];

/// A chip, as far as the processes of a record describe it.
#[derive(Clone, Debug)]
pub(crate) struct Chip {
    /// What is known of it; `None` if no description is in the record.
    pub(crate) entry: Option<DeviceEntry>,
    /// The processes that have it, by their place in the record.
    pub(crate) processes: Vec<usize>,
}

impl Chip {
    /// Its DRAM and L1 capacity, where known and not disputed.
    pub(crate) fn totals(&self) -> [Option<u64>; 2] {
        let total = |of: fn(&DeviceEntry) -> Option<u64>| self.entry.as_ref().and_then(of);
        [total(DeviceEntry::dram_total), total(DeviceEntry::l1_total)]
    }

    /// The bytes of the pool of a class, where known and not disputed.
    pub(crate) fn pool_total(&self, class: Class) -> Option<u64> {
        let entry = self.entry.as_ref()?;
        let differs = if class.is_dram() { known::DRAM_POOLS_DIFFER } else { known::L1_POOLS_DIFFER };
        if entry.known & differs != 0 {
            return None;
        }
        entry.pool(class).map(|pool| pool.total())
    }

    fn learn(&mut self, later: &DeviceEntry) {
        let Some(entry) = &mut self.entry else {
            self.entry = Some(*later);
            return;
        };
        let disputed = entry.disputed_by(later);
        entry.learn(later);
        for (bits, differ) in DISPUTES {
            if disputed & bits != 0 {
                entry.known |= differ;
            }
        }
    }
}

/// All chips, and which one each device of each process is.
#[derive(Debug)]
pub(crate) struct Chips {
    /// In the order in which they are shown: by logical id, then by chip id.
    pub(crate) list: Vec<Chip>,
    /// By place of the process and index of the device.
    places: Vec<Vec<usize>>,
}

impl Chips {
    pub(crate) fn of(record: &Record) -> Chips {
        let mut chips = Chips { list: Vec::new(), places: Vec::new() };
        let mut by_id: HashMap<u64, usize> = HashMap::new();
        for (process, known) in record.processes().enumerate() {
            let mut places = Vec::new();
            for device in &known.devices {
                let place = match device {
                    Some(device) => *by_id.entry(device.chip_id).or_insert(chips.list.len()),
                    None => chips.list.len(),
                };
                if place == chips.list.len() {
                    chips.list.push(Chip { entry: None, processes: Vec::new() });
                }
                let chip = &mut chips.list[place];
                device.iter().for_each(|device| chip.learn(device));
                if !chip.processes.contains(&process) {
                    chip.processes.push(process);
                }
                places.push(place);
            }
            chips.places.push(places);
        }
        chips.sort();
        chips
    }

    fn sort(&mut self) {
        let key = |place: &usize| {
            let entry = self.list[*place].entry.as_ref();
            let logical = entry.and_then(DeviceEntry::logical).unwrap_or(u64::MAX);
            (logical, entry.map_or(u64::MAX, |entry| entry.chip_id), *place)
        };
        let mut order: Vec<usize> = (0..self.list.len()).collect();
        order.sort_by_key(key);
        let mut moved = vec![0; order.len()];
        order.iter().enumerate().for_each(|(new, old)| moved[*old] = new);
        self.list = order.iter().map(|old| self.list[*old].clone()).collect();
        self.places.iter_mut().flatten().for_each(|place| *place = moved[*place]);
    }

    /// The chip that a device of a process is. `None` if the process has no such device.
    #[inline]
    pub(crate) fn place(&self, process: usize, device: u8) -> Option<usize> {
        self.places.get(process)?.get(usize::from(device)).copied()
    }

    /// The chips of a process, each once.
    pub(crate) fn of_process(&self, process: usize) -> Vec<usize> {
        let mut places = self.places.get(process).cloned().unwrap_or_default();
        places.sort_unstable();
        places.dedup();
        places
    }
}

/// Places as `0-3,7 x5`; one place as `0`.
pub(crate) fn label(places: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for place in places {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *place => *last = *place,
            _ => parts.push((*place, *place)),
        }
    }
    let part = |(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    let list = parts.iter().map(part).collect::<Vec<_>>().join(",");
    if places.len() > 1 { format!("{list} x{}", places.len()) } else { list }
}

#[cfg(test)]
mod tests {
    #[test]
    fn places_are_joined() {
        assert_eq!(super::label(&[0]), "0");
        assert_eq!(super::label(&[0, 1, 2, 3]), "0-3 x4");
        assert_eq!(super::label(&[0, 1, 3]), "0-1,3 x3");
    }
}
