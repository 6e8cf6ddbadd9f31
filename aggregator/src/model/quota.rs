//! How the rows of the table, and the memory behind them, are shared among users.

use std::collections::BTreeMap;

use shm_layout::table::{MAX_USAGES, TABLE_DEVICES};
use shm_layout::{Counters, DeviceEntry, MAX_DEVICES};

use crate::model::device::Device;
use crate::model::rows::Rows;

/// Device rows that each user other than our own may fill: as many as one process can list.
const FOREIGN_DEVICES: usize = MAX_DEVICES;
/// Device rows that all other users may fill together; the rest is reserved for our own.
const ALL_FOREIGN_DEVICES: usize = TABLE_DEVICES - MAX_DEVICES / 2;
/// Usages that are counted. The table has rows for the first of them; the others are in all sums.
const MAX_COUNTED: usize = 1 << 18;
/// Usages that are counted for each user other than our own. Bounds the memory that many processes can make us use.
pub(crate) const FOREIGN_COUNTED: usize = if cfg!(test) { 8 } else { 1 << 16 };
/// Usage rows of the table that each other user may fill.
const FOREIGN_USAGES: usize = MAX_USAGES / 4;

/// One process's use of one device.
#[derive(Debug)]
pub(crate) struct Usage {
    pub(crate) process: usize,
    pub(crate) device: usize,
    pub(crate) uid: u32,
    /// What the process claims about the device.
    pub(crate) entry: DeviceEntry,
    /// Whether that contradicts what is taken as true.
    pub(crate) conflict: bool,
    /// The process's counters on the device. Times are in ticks of the process's clock.
    pub(crate) counters: Counters,
    /// Whether the row is freed with the next generation.
    pub(crate) retired: bool,
}

/// How many usages a user has.
#[derive(Clone, Copy, Debug, Default)]
struct UserUsages {
    counted: usize,
    /// Those with a row in the table.
    listed: usize,
}

/// All usages, within the quota of each user.
///
/// Row numbers below [`MAX_USAGES`] are rows of the table; those above it are counted but not listed.
#[derive(Debug)]
pub(crate) struct Usages {
    rows: Rows<Usage>,
    users: BTreeMap<u32, UserUsages>,
    /// Our own user, who has no quota.
    own: u32,
}

impl Usages {
    pub(crate) fn new(own: u32) -> Usages {
        Usages { rows: Rows::new(MAX_COUNTED), users: BTreeMap::new(), own }
    }

    pub(crate) fn get(&self, row: usize) -> Option<&Usage> {
        self.rows.get(row)
    }

    /// A usage that is about to change in this generation.
    #[inline]
    pub(crate) fn change(&mut self, generation: u64, row: usize) -> Option<&mut Usage> {
        self.rows.change(generation, row)
    }

    /// Every row ever used: number, generation that changed it last, usage.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, u64, Option<&Usage>)> {
        self.rows.iter()
    }

    /// Rows in use or used before.
    pub(crate) fn high_water(&self) -> usize {
        self.rows.high_water()
    }

    /// Whether one more usage of this user can be counted.
    pub(crate) fn may_count(&self, uid: u32) -> bool {
        let counted = self.users.get(&uid).map_or(0, |theirs| theirs.counted);
        (uid == self.own || counted < FOREIGN_COUNTED) && self.rows.free_from(self.first_row(uid)).is_some()
    }

    /// Adds a usage; `None` if its user's quota or the memory for all is used up.
    pub(crate) fn insert(&mut self, generation: u64, usage: Usage) -> Option<usize> {
        let uid = usage.uid;
        if !self.may_count(uid) {
            return None;
        }
        let row = self.rows.insert_from(self.first_row(uid), generation, usage).ok()?;
        let theirs = self.users.entry(uid).or_default();
        theirs.counted += 1;
        theirs.listed += usize::from(row < MAX_USAGES);
        Some(row)
    }

    /// Frees a row; returns whether there was a usage in it.
    pub(crate) fn remove(&mut self, generation: u64, row: usize) -> bool {
        let Some(usage) = self.rows.remove(generation, row) else { return false };
        if let Some(theirs) = self.users.get_mut(&usage.uid) {
            theirs.counted -= 1;
            theirs.listed -= usize::from(row < MAX_USAGES);
        }
        true
    }

    /// Usages that are counted and have no row in the table.
    pub(crate) fn unlisted(&self) -> usize {
        self.rows.count_from(MAX_USAGES)
    }

    /// Moves a usage without a row in the table into a free one that its user may have. Returns its old and new row.
    pub(crate) fn promote(&mut self, generation: u64) -> Option<(usize, usize)> {
        let free = self.rows.free_from(0).filter(|free| *free < MAX_USAGES)?;
        let may_list = |usage: &Usage| !usage.retired && self.may_list(usage.uid);
        let (from, _) = self.rows.values_from(MAX_USAGES).find(|(_, usage)| may_list(usage))?;
        let usage = self.rows.remove(generation, from)?;
        let uid = usage.uid;
        let to = self.rows.insert_from(free, generation, usage).ok()?;
        self.users.entry(uid).or_default().listed += 1;
        Some((from, to))
    }

    /// Whether a user may have one more row of the table.
    fn may_list(&self, uid: u32) -> bool {
        uid == self.own || self.users.get(&uid).is_none_or(|theirs| theirs.listed < FOREIGN_USAGES)
    }

    /// The first row that a user's next usage may have.
    fn first_row(&self, uid: u32) -> usize {
        if self.may_list(uid) { 0 } else { MAX_USAGES }
    }
}

/// A row for one more device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceRoom {
    /// A row is free.
    Free,
    /// The unused device in this row has to go.
    InPlaceOf(usize),
}

/// Room for a device that a user names; `None` if there is none. The user's own unused rows are given up first, then
/// those of other users; what our own user had is kept as long as possible.
pub(crate) fn room_for_device(devices: &Rows<Device>, own: u32, uid: u32) -> Option<DeviceRoom> {
    let theirs = |device: &Device| device.uid == uid;
    let foreign = |device: &Device| device.uid != own;
    let count = |of: &dyn Fn(&Device) -> bool| devices.values().filter(|(_, device)| of(device)).count();
    let unused = |of: &dyn Fn(&Device) -> bool| {
        let rows = devices
            .values()
            .filter(|(_, device)| device.usages.is_empty() && device.driver.is_none() && of(device));
        rows.min_by_key(|(_, device)| device.gone_until).map(|(row, _)| DeviceRoom::InPlaceOf(row))
    };
    if uid != own && count(&theirs) >= FOREIGN_DEVICES {
        return unused(&theirs);
    }
    if uid != own && count(&foreign) >= ALL_FOREIGN_DEVICES {
        return unused(&theirs).or_else(|| unused(&foreign));
    }
    if devices.count() < TABLE_DEVICES {
        return Some(DeviceRoom::Free);
    }
    unused(&theirs).or_else(|| unused(&foreign)).or_else(|| unused(&|_| true))
}
