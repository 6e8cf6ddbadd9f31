//! Usages for which there was no room: which chips they are on, and which is next when there is room again.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use shm_layout::{Counters, DeviceEntry};

/// The number of chips that are remembered as having been used by a process that was not counted.
const MAX_FORGOTTEN: usize = 4096;

/// A process by its row, and its own index of the device.
pub(crate) type Pair = (usize, usize);

/// The usages that are not counted.
#[derive(Debug, Default)]
pub(crate) struct Uncounted {
    /// The chip and user of each pair.
    pairs: BTreeMap<Pair, (u64, u32)>,
    /// The number of pairs on each chip.
    chips: BTreeMap<u64, usize>,
    /// The number of pairs of each user.
    users: BTreeMap<u32, usize>,
    /// The number of pairs that have not been offered the room that became free last.
    due: usize,
    /// The last pair that was offered room.
    last: Pair,
}

impl Uncounted {
    pub(crate) fn add(&mut self, pair: Pair, chip: u64, uid: u32) {
        if self.pairs.insert(pair, (chip, uid)).is_none() {
            *self.chips.entry(chip).or_default() += 1;
            *self.users.entry(uid).or_default() += 1;
        }
    }

    /// Removes a pair; returns its chip and user.
    pub(crate) fn remove(&mut self, pair: Pair) -> Option<(u64, u32)> {
        let (chip, uid) = self.pairs.remove(&pair)?;
        take_one(&mut self.chips, chip);
        take_one(&mut self.users, uid);
        Some((chip, uid))
    }

    pub(crate) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether any pair is on this chip.
    pub(crate) fn is_on(&self, chip: u64) -> bool {
        self.chips.contains_key(&chip)
    }

    /// The users with at least one pair.
    pub(crate) fn users(&self) -> impl Iterator<Item = u32> {
        self.users.keys().copied()
    }

    /// A process of this user that has a pair.
    pub(crate) fn process_of(&self, user: u32) -> Option<usize> {
        self.pairs.iter().find(|(_, (_, uid))| *uid == user).map(|((process, _), _)| *process)
    }

    /// Offers room to all pairs again, after some may have become free.
    pub(crate) fn ask_again(&mut self) {
        self.due = self.pairs.len();
    }

    /// Whether all pairs have been offered the room that became free.
    pub(crate) fn is_asked(&self) -> bool {
        self.due == 0
    }

    /// The next pair to be offered room, with its chip and user. They take turns, so that each gets one
    /// however few are offered room in a poll.
    pub(crate) fn next_due(&mut self) -> Option<(Pair, u64, u32)> {
        self.due = self.due.checked_sub(1)?;
        let (process, device) = self.last;
        let behind = self.pairs.range((process, device + 1)..).next();
        let (pair, (chip, uid)) = behind.or_else(|| self.pairs.first_key_value())?;
        self.last = *pair;
        Some((*pair, *chip, *uid))
    }
}

fn take_one<K: Ord>(counts: &mut BTreeMap<K, usize>, key: K) {
    if let Entry::Occupied(mut count) = counts.entry(key) {
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}

/// The counters of a process at a position, to be folded when the events up to there are folded.
#[derive(Debug)]
pub(crate) struct Recount {
    pub(crate) position: u64,
    /// By the process's own device index.
    pub(crate) devices: Vec<(DeviceEntry, Counters)>,
}

/// Until when chips without a row were used by a process, or may have been.
#[derive(Debug, Default)]
pub(crate) struct Forgotten {
    chips: BTreeMap<u64, u64>,
    all: u64,
}

impl Forgotten {
    pub(crate) fn note(&mut self, chip: u64, until: u64) {
        if self.chips.len() >= MAX_FORGOTTEN {
            self.chips.clear();
            self.all = self.all.max(until);
        }
        self.chips.insert(chip, until);
    }

    /// Takes the note of a chip; 0 if there is none.
    pub(crate) fn take(&mut self, chip: u64) -> u64 {
        self.chips.remove(&chip).unwrap_or(0).max(self.all)
    }
}

#[cfg(test)]
mod tests {
    use shm_layout::table::ProcessStats;
    use tt_shm_os::ClockKind;

    use super::*;
    use crate::model::Model;
    use crate::model::quota::FOREIGN_COUNTED;
    use crate::segments::clock::Clock;

    #[test]
    fn everybody_is_asked_in_turn_and_once() {
        let mut uncounted = Uncounted::default();
        for pair in [(1, 0), (1, 1), (3, 0)] {
            uncounted.add(pair, 7, 1000);
        }
        assert_eq!(uncounted.next_due(), None, "nothing became free");
        let turn = |uncounted: &mut Uncounted| uncounted.next_due().map(|(pair, ..)| pair);
        uncounted.ask_again();
        assert_eq!(turn(&mut uncounted), Some((1, 0)));
        assert_eq!(turn(&mut uncounted), Some((1, 1)));
        uncounted.ask_again();
        let asked: Vec<Pair> = std::iter::from_fn(|| turn(&mut uncounted)).collect();
        assert_eq!(asked, [(3, 0), (1, 0), (1, 1)]);
    }

    #[test]
    fn a_chip_is_left_with_the_last_of_its_pairs() {
        let mut uncounted = Uncounted::default();
        uncounted.add((1, 0), 7, 1000);
        uncounted.add((2, 0), 7, 1001);
        assert_eq!((uncounted.users().count(), uncounted.process_of(1001)), (2, Some(2)));
        assert_eq!(uncounted.remove((1, 0)), Some((7, 1000)));
        assert!(uncounted.is_on(7) && uncounted.users().eq([1001]));
        assert_eq!((uncounted.remove((1, 0)), uncounted.remove((2, 0))), (None, Some((7, 1001))));
        assert!(!uncounted.is_on(7) && uncounted.len() == 0);
    }

    /// Adds a process of a user on one chip.
    fn add(model: &mut Model, uid: u64, chip_id: u64) -> usize {
        let stats = ProcessStats { uid, identity: 1, ..bytemuck::Zeroable::zeroed() };
        let process = model.add_process(stats, Some(ClockKind::Monotonic)).unwrap();
        model.add_device(process, &entry(chip_id));
        process
    }

    fn entry(chip_id: u64) -> DeviceEntry {
        DeviceEntry { chip_id, ..bytemuck::Zeroable::zeroed() }
    }

    /// Whether each device is incomplete, by row.
    fn incomplete(model: &mut Model) -> Vec<bool> {
        model.set_unread(false);
        model.devices.values().map(|(_, device)| device.incomplete).collect()
    }

    #[test]
    fn who_finds_no_room_makes_one_device_incomplete_until_there_is_some() {
        let mut model = Model::new(Clock::begin(), 0, 1);
        add(&mut model, 0, 1);
        let crowd: Vec<usize> = (0..=FOREIGN_COUNTED).map(|_| add(&mut model, 1000, 2)).collect();
        assert_eq!((incomplete(&mut model), model.overflow()), (vec![false, true], 1));
        assert_eq!(model.next_countable(), None, "nobody left");
        model.bury(crowd[3], Some(10), 10, 10);
        model.free_retired();
        assert_eq!(model.next_countable(), crowd.last().copied());
        let mut counters = Counters::ZERO;
        counters.classes[0].live_bytes = 77;
        let recount = Recount { position: 1, devices: vec![(entry(2), counters)] };
        model.recounts.insert(crowd[FOREIGN_COUNTED], recount);
        model.count_again(crowd[FOREIGN_COUNTED], 20);
        assert_eq!((incomplete(&mut model), model.overflow()), (vec![false, false], 0));
        let shown = model.devices.get(1).unwrap();
        assert_eq!((shown.sums.bytes[0], shown.usages.len()), (77, FOREIGN_COUNTED));
    }

    #[test]
    fn what_is_forgotten_of_too_many_chips_is_forgotten_of_all() {
        let mut forgotten = Forgotten::default();
        for chip in 0..=MAX_FORGOTTEN as u64 {
            forgotten.note(chip, 5);
        }
        forgotten.note(3, 9);
        assert_eq!((forgotten.take(3), forgotten.take(3), forgotten.take(9999)), (9, 5, 5));
    }
}
