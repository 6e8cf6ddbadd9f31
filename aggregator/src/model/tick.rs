//! What follows from the time alone: windows, rates, history, compositions that readers want to see.

use crate::model::device::owes;
use crate::model::{Model, shares_of};

impl Model {
    /// Begins a new window of peaks on every device, at a moment up to which everything is folded.
    pub(crate) fn open_window(&mut self, since: u64) {
        self.window.since = since;
        self.window.count += 1;
        let batch = self.batch();
        for row in 0..self.devices.high_water() {
            if let Some(device) = self.devices.change(batch, row) {
                device.open_window(since);
            }
        }
    }

    /// Brings everything up to now; `folded_through` is how far events are folded.
    pub(crate) fn tick(&mut self, folded_through: u64) {
        for row in 0..self.processes.high_water() {
            let now = self.now;
            if self.processes.get_mut(row).is_some_and(|process| process.rate.advance(now)) {
                let batch = self.batch();
                self.processes.change(batch, row);
            }
        }
        for row in 0..self.devices.high_water() {
            self.tick_device(row, folded_through);
        }
    }

    fn tick_device(&mut self, row: usize, folded_through: u64) {
        let now = self.now;
        let Some(device) = self.devices.get_mut(row) else { return };
        let mut changed = device.event_rate.advance(now);
        changed |= device.dispatch_rate.advance(now);
        device.enter(folded_through);
        let used = device.used;
        let rolled =
            folded_through >= self.started && device.history.observe(folded_through, used.dram, used.l1);
        changed |= device.owes(owes::DRAM | owes::L1);
        if changed {
            let batch = self.batch();
            self.devices.change(batch, row);
        }
        if changed || rolled || self.devices.changed(row) == self.generation() + 1 {
            let batch = self.batch();
            let Some(device) = self.devices.get_mut(row) else { return };
            device.history.flush();
            device.history_changed = batch;
            let (usages, processes) = (&self.usages, &self.processes);
            let rows = device.usages.clone();
            device.take_makeup(|| shares_of(usages, processes, &rows));
        }
    }
}
