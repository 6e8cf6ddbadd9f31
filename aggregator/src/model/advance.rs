//! What follows from the time alone: windows, rates, history, compositions that readers want to see.

use crate::model::device::owes;
use crate::model::timeline::Span;
use crate::model::{Model, Window, shares_of};

impl Model {
    /// Begins a new window of peaks on every device, at a moment up to which everything is folded.
    pub(crate) fn open_window(&mut self, since: u64) {
        self.window = Window { since, count: self.window.count + 1, reaches_back: false, ..self.window };
        self.unread = self.unread.filter(|unread| unread.to >= since);
        let generation = self.mark_changed();
        for row in 0..self.devices.high_water() {
            if let Some(device) = self.devices.change(generation, row) {
                device.open_window(since);
            }
        }
    }

    /// The sums are those of all processes now: histories begin, with buckets of which only a part was seen. So were
    /// those of an earlier aggregator into which the gap reaches. `now` is not before anything that was folded: when
    /// somebody died meanwhile, that is later than the poll began.
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

    /// Whether somebody who could not be read may have something on any device.
    pub(crate) fn set_incomplete(&mut self, incomplete: bool) {
        self.incomplete = incomplete;
        if incomplete {
            self.note_unread(Span { from: self.now, to: self.now });
        }
        for row in 0..self.devices.high_water() {
            if self.devices.get_mut(row).is_some_and(|device| device.set_incomplete(incomplete)) {
                let generation = self.mark_changed();
                self.devices.change(generation, row);
            }
        }
    }

    /// Brings everything up to now; `folded_through` is how far events are folded. While somebody is waited for that is
    /// less than before, and nothing is taken back.
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
