//! What follows from the passing of time alone: windows, rates, history, and the compositions that readers see.

use crate::model::device::owes;
use crate::model::slice::Span;
use crate::model::window::Window;
use crate::model::{Model, shares_of};

impl Model {
    /// Opens a new window of peaks on every device. Everything up to `since` must be folded.
    pub(crate) fn open_window(&mut self, since: u64) {
        self.window = Window { since, count: self.window.count + 1, reaches_back: false, ..self.window };
        self.unread_span = self.unread_span.filter(|unread| unread.to >= since);
        let generation = self.mark_changed();
        for row in 0..self.devices.high_water() {
            if let Some(device) = self.devices.change(generation, row) {
                device.open_window(since);
            }
        }
    }

    /// Begins the histories: from now on the sums cover all processes. The first buckets were seen only in part, and so
    /// were those of an earlier aggregator that the gap reaches into. `now` is not before anything that was folded,
    /// which is later than the start of the poll if a process died meanwhile.
    pub(crate) fn begin_history(&mut self, now: u64) {
        (self.now, self.history_since) = (now, now);
        let from = self.window.gap.map_or(now, |(start, _)| start);
        for row in 0..self.devices.high_water() {
            let generation = self.mark_changed();
            if let Some(device) = self.devices.get_mut(row) {
                debug_assert!(device.peaks.latest() <= now, "folded through {}", device.peaks.latest());
                device.observe(now);
                device.history.doubt(Span { from, to: now });
                device.history.flush();
                device.history_changed = generation;
            }
        }
    }

    /// Advances everything to now. `folded_through` is how far events are folded. While a slow process is waited for,
    /// that may be less than at the last call; nothing is taken back then.
    pub(crate) fn advance(&mut self, folded_through: u64) {
        let folded_through = folded_through.max(self.advanced_to);
        self.advanced_to = folded_through;
        if self.promotable {
            self.promote_usages();
        }
        for row in 0..self.processes.high_water() {
            let now = self.now;
            if self.processes.get_mut(row).is_some_and(|process| process.rate.advance(now)) {
                let generation = self.mark_changed();
                self.processes.change(generation, row);
            }
        }
        for row in 0..self.devices.high_water() {
            self.advance_device(row, folded_through);
        }
    }

    fn advance_device(&mut self, row: usize, folded_through: u64) {
        let now = self.now;
        let Some(device) = self.devices.get_mut(row) else { return };
        let mut changed = device.event_rate.advance(now);
        changed |= device.dispatch_rate.advance(now);
        device.advance(folded_through);
        let rolled = folded_through >= self.history_since && device.observe(folded_through);
        changed |= device.owes(owes::DRAM | owes::L1);
        if changed {
            let generation = self.mark_changed();
            self.devices.change(generation, row);
        }
        if changed || rolled || self.devices.changed(row) == self.generation() + 1 {
            let generation = self.mark_changed();
            let Some(device) = self.devices.get_mut(row) else { return };
            device.history.flush();
            device.history_changed = generation;
            let (usages, processes) = (&self.usages, &self.processes);
            let rows = device.usages.clone();
            device.take_makeup(|| shares_of(usages, processes, &rows));
        }
    }
}
