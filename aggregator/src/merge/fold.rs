//! How a state read as a whole, or an event that came late, changes the model.

use shm_layout::{Class, Counters};

use crate::merge::stretch::Late;
use crate::model::device::{Device, Exchange, owes};
use crate::model::figures::{Live, Resident, Share, Used};
use crate::model::{Model, counters_of, shares_of};

/// Whether the way to new counters is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Nothing happened in between that is not in the peaks.
    Followed,
    /// The counters were read as a whole for the first time: what came before is not known.
    First,
    /// The counters were read again after events had been missed.
    Again,
}

impl Model {
    /// An event came after later ones of other processes: the sums in between were not those seen.
    #[cold]
    pub(crate) fn fold_late(&mut self, process: usize, device: u8, late: &Late) {
        let batch = self.batch();
        self.totals.late += 1;
        let usage = self.usage_of(process, device);
        self.doubt_failures_on(process, device, late.since);
        if let Some(process) = self.processes.change(batch, process) {
            process.stats.late += 1;
        }
        let Some(usage) = usage.and_then(|row| self.usages.get(row)) else { return };
        let Some(device) = self.devices.change(batch, usage.device) else { return };
        device.lower(late.change, late.class, late.since);
        let row = usage.device;
        self.widen(row, late.since);
    }

    /// Notes what a process's device owes.
    #[cold]
    pub(crate) fn settle_debts_for(&mut self, process: usize, device: u8) {
        let usage = self.usage_of(process, device).and_then(|row| self.usages.get(row));
        if let Some(device) = usage.map(|usage| usage.device) {
            self.settle_debts(device);
        }
    }

    /// Notes which failures just folded are of which holders.
    pub(crate) fn settle_failures(&mut self) {
        for device in 0..self.devices.high_water() {
            if self.devices.get(device).is_some_and(|device| device.owes(owes::FAILURE)) {
                self.record_failure(device);
            }
        }
    }

    /// Notes what a device owes, before anything changes on it.
    fn settle_debts(&mut self, device: usize) {
        if self.devices.get(device).is_some_and(|device| device.owes(owes::FAILURE)) {
            self.record_failure(device);
        }
        let makeup = |device: &&mut Device| device.owes(owes::DRAM | owes::L1);
        let Some(device) = self.devices.get_mut(device).filter(makeup) else { return };
        let (usages, processes, rows) = (&self.usages, &self.processes, device.usages.clone());
        device.take_makeup(|| shares_of(usages, processes, &rows));
    }

    /// Puts the counters of a process on a device in place of what was known.
    pub(crate) fn replace_counters(&mut self, row: usize, counters: Counters, time: u64, known: Known) {
        let batch = self.batch();
        let Some(device_row) = self.usages.get(row).map(|usage| usage.device) else { return };
        self.settle_debts(device_row);
        let Some(usage) = self.usages.change(batch, row) else { return };
        let old = std::mem::replace(&mut usage.counters, counters);
        let Some(device) = self.devices.change(batch, device_row) else { return };
        device.enter(time);
        for class in 0..Class::COUNT {
            let (mut before, mut after) = (Live::of(&old, class), Live::of(&counters, class));
            if known != Known::Again {
                // What a process allocated before it was seen is not what happened since, and what it
                // allocated stays when it ends.
                (before, after) = (before.without_history(), after.without_history());
            }
            device.exchange_class(class, before, after, time);
        }
        device.exchange_used(Exchange { old: Used::of(&old), new: Used::of(&counters) }, time);
        device.exchange_resident(Resident::of(&old), Resident::of(&counters), time);
        if time >= self.started {
            device.history.observe(time, device.used.dram, device.used.l1);
        }
        if known != Known::Followed {
            self.reach_back(row, device_row, &old);
        }
    }

    /// Peaks of the time that was not followed: at least what the process itself reached in the window, at
    /// most what all of them can have reached together.
    fn reach_back(&mut self, row: usize, device_row: usize, old: &Counters) {
        let (clock, window) = (&self.clock, self.window);
        let Some(usage) = self.usages.get(row) else { return };
        let Some(process) = self.processes.get(usage.process) else { return };
        let Some(device) = self.devices.get_mut(device_row) else { return };
        let in_window = |ticks| window.time_in(clock, process.clock, ticks);
        let share =
            Share { identity: process.stats.identity, pid: process.stats.pid, counters: &usage.counters };
        device.raise_to_own_peaks(&share, in_window);
        let last_known = clock.to_ns(process.clock, old.time);
        let since = if old.time == 0 { process.stats.started } else { last_known };
        self.widen(device_row, since);
    }

    /// Something was not followed from `since` to now: no peak of that time was above the sum of the processes'
    /// own, unless one of them has reset its own since. Then nobody knows.
    fn widen(&mut self, device: usize, since: u64) {
        let (clock, now, since) = (&self.clock, self.now, since.max(self.window.begin()));
        let Some(device) = self.devices.get_mut(device) else { return };
        let rows = std::mem::take(&mut device.usages);
        let reaches_back = |row: &usize| {
            let usage = self.usages.get(*row)?;
            let reset = usage.counters.peak_reset_time;
            Some(reset == 0 || clock.to_ns(self.processes.get(usage.process)?.clock, reset) <= since)
        };
        if rows.iter().all(|row| reaches_back(row).unwrap_or(true)) {
            device.widen(|| counters_of(&self.usages, &rows));
        } else {
            device.widen_without_bound();
        }
        device.usages = rows;
        device.exact_since = now;
    }
}
