//! What is held at a moment of a record, by device, class and name; and how two such differ.

use std::collections::BTreeMap;

use tt_shm_reader::{Class, RowKind};
use tt_shm_record::{Process, ReadError, Record, State};

/// A device: its logical number, if it has one, else its chip.
pub(super) type DeviceKey = (Option<u64>, u64);

/// An amount of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Amount {
    pub(super) count: u64,
    pub(super) bytes: u64,
}

/// What is live at a moment.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// By device and class, from the counters: exact even where a list is not.
    sums: BTreeMap<(DeviceKey, Class), Amount>,
    /// By device, class and name.
    names: BTreeMap<(DeviceKey, Class, String), Amount>,
    pub(super) exact: bool,
}

impl Held {
    pub(super) fn at(record: &Record, time_ns: u64) -> Result<Held, ReadError> {
        let mut held = Held { exact: true, ..Held::default() };
        for state in record.states_at(time_ns)? {
            let Some(process) = record.process(state.process) else { continue };
            held.exact &= state.are_rows_exact();
            held.add(process, &state);
        }
        Ok(held)
    }

    fn add(&mut self, process: &Process, state: &State) {
        let device = |index: usize| {
            let entry = process.devices.get(index).copied().flatten();
            entry.map(|entry| (entry.logical(), entry.chip_id))
        };
        for (index, counters) in state.counters.iter().enumerate() {
            let Some(device) = device(index) else {
                self.exact = false;
                continue;
            };
            for class in Class::ALL {
                let live = counters.class(class);
                if live.live_count > 0 {
                    let sum = self.sums.entry((device, class)).or_default();
                    (sum.count, sum.bytes) = (sum.count + live.live_count, sum.bytes + live.live_bytes);
                }
            }
        }
        for row in state.rows.iter().filter(|row| row.kind() != Some(RowKind::Program)) {
            let (Some(device), Some(class)) = (device(usize::from(row.device)), row.class()) else {
                continue;
            };
            let name = process.name(row.name).map_or_else(String::new, |name| name.to_string());
            let amount = self.names.entry((device, class, name)).or_default();
            (amount.count, amount.bytes) = (amount.count + 1, amount.bytes.saturating_add(row.size));
        }
    }
}

/// A class, or a name of a class, that is held differently.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Change {
    pub(super) class: Class,
    /// `None` for the sum of the class; empty if the memory has no name.
    pub(super) name: Option<String>,
    pub(super) before: Amount,
    pub(super) after: Amount,
}

impl Change {
    pub(super) fn bytes(&self) -> i128 {
        i128::from(self.after.bytes) - i128::from(self.before.bytes)
    }

    pub(super) fn count(&self) -> i128 {
        i128::from(self.after.count) - i128::from(self.before.count)
    }
}

/// Everything that differs.
#[derive(Debug)]
pub(super) struct Changes {
    /// The devices of both sides, by their places in the lists below.
    pub(super) devices: Vec<DeviceKey>,
    pub(super) sums: Vec<(usize, Change)>,
    pub(super) names: Vec<(usize, Change)>,
}

/// What two moments hold differently.
pub(super) fn compare(before: &Held, after: &Held) -> Changes {
    let keys = before.sums.keys().chain(after.sums.keys()).map(|(device, _)| *device);
    let named = before.names.keys().chain(after.names.keys()).map(|(device, ..)| *device);
    let mut devices: Vec<DeviceKey> = keys.chain(named).collect();
    devices.sort_unstable();
    devices.dedup();
    let place = |device: &DeviceKey| devices.binary_search(device).unwrap_or_default();
    let differ = |change: &(usize, Change)| change.1.before != change.1.after;
    let sums = both(&before.sums, &after.sums).into_iter().map(|((device, class), before, after)| {
        (place(&device), Change { class, name: None, before, after })
    });
    let names =
        both(&before.names, &after.names).into_iter().map(|((device, class, name), before, after)| {
            (place(&device), Change { class, name: Some(name), before, after })
        });
    let (sums, names) = (sums.filter(differ).collect(), names.filter(differ).collect());
    Changes { sums, names, devices }
}

fn both<K: Ord + Clone>(
    before: &BTreeMap<K, Amount>,
    after: &BTreeMap<K, Amount>,
) -> Vec<(K, Amount, Amount)> {
    let mut all: BTreeMap<&K, [Amount; 2]> = BTreeMap::new();
    before.iter().for_each(|(key, amount)| all.entry(key).or_default()[0] = *amount);
    after.iter().for_each(|(key, amount)| all.entry(key).or_default()[1] = *amount);
    all.into_iter().map(|(key, [before, after])| (key.clone(), before, after)).collect()
}
