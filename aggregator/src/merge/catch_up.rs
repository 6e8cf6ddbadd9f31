//! Folding what is not an event in its turn: a state read as a whole, an event out of order, a life that nobody
//! followed, an end.

use shm_layout::table::{ProcessStats, failure_flags, process_flags};
use shm_layout::{Counters, Event, Implausible, UNKNOWN};

use crate::model::Model;
use crate::model::device::{Device, owes};
use crate::model::failures;
use crate::model::figures::{FIGURES, Share, Sums, own_peaks};
use crate::model::slice::{Doubt, Span};
use crate::model::{Process, counters_of, shares_of};

/// Why counters were read as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadReason {
    /// For the first time: what came before is not known.
    First,
    /// Again after events had been missed.
    Again,
}

impl Model {
    /// Counts an event in that comes after later ones were merged, or with which a new slice of time begins.
    #[cold]
    pub(crate) fn fold_out_of_order(
        &mut self,
        process: usize,
        row: usize,
        event: &Event,
        time: u64,
        recent: bool,
    ) -> Result<(), Implausible> {
        let Some(device_row) = self.usages.get(row).map(|usage| usage.device) else { return Ok(()) };
        self.settle_debts(device_row);
        let generation = self.mark_changed();
        let Some(usage) = self.usages.change(generation, row) else { return Ok(()) };
        let before = usage.counters;
        usage.counters.apply(event)?;
        let (old, new) = (Sums::of(&before), Sums::of(&usage.counters));
        let pid = self.processes.get(process).map_or(0, |process| process.stats.pid);
        let history_since = self.history_since;
        let Some(device) = self.devices.change(generation, device_row) else { return Ok(()) };
        let late = device.peaks.is_late(time);
        device.note(event, process, pid, time, recent);
        device.change(time, &old, &new);
        device.observe_from(history_since, time);
        if late {
            self.count_late(process, device_row, time);
        }
        Ok(())
    }

    fn count_late(&mut self, process: usize, device: usize, time: u64) {
        let generation = self.mark_changed();
        self.totals.late += 1;
        if let Some(process) = self.processes.change(generation, process) {
            process.stats.late += 1;
        }
        self.doubt_holders(device, time);
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

    /// An allocation failed on a device: keeps who held what. Called when all that happened before is folded and
    /// nothing that came after.
    #[cold]
    #[inline(never)]
    pub(crate) fn record_failure(&mut self, device: usize) {
        let Some(device) = self.devices.get_mut(device) else { return };
        device.owes &= !owes::FAILURE;
        let (device, (process, position)) = (&*device, device.failed);
        let Some(owner) = self.processes.get(process).map(|process| process.stats) else { return };
        if !self.failures.wants(&owner, position) {
            return;
        }
        let (failure, chip_id) = (device.failure, device.entry.chip_id);
        let mut record = failures::blank(&owner, chip_id, position, &failure);
        let shares = device.usages.iter().filter_map(|row| {
            let usage = self.usages.get(*row)?;
            Some((usage.process, &self.processes.get(usage.process)?.stats, &usage.counters))
        });
        failures::compose(&mut record, shares);
        let counted = !self.uncounted.is_on(chip_id);
        if counted && !device.failed_late && self.knows_all_holders(failure.time) {
            record.flags |= failure_flags::HOLDERS_EXACT;
        }
        let generation = self.mark_changed();
        self.failures.note(generation, record);
    }

    /// Who had ended before the aggregator came or is left out of all totals is not among the holders.
    fn knows_all_holders(&self, time: u64) -> bool {
        let broken = |process: &ProcessStats| process.flags & process_flags::BROKEN != 0;
        time >= self.started
            && !self.behind
            && !self.processes.values().any(|(_, process)| broken(&process.stats))
    }

    /// A process's share on its devices was not what was folded, from `since` on.
    pub(crate) fn doubt_failures(&mut self, process: usize, since: u64) {
        let Some(process) = self.processes.get(process) else { return };
        let usages = process.usages.iter().flatten().filter_map(|row| self.usages.get(*row));
        for device in usages.map(|usage| usage.device).collect::<Vec<_>>() {
            self.doubt_holders(device, since);
        }
    }

    /// Who held what on a device since then is not certain, also of a failure that was folded and is not noted yet.
    pub(crate) fn doubt_holders(&mut self, device: usize, since: u64) {
        self.settle_debts(device);
        let Some(chip) = self.devices.get(device).map(|device| device.entry.chip_id) else { return };
        let generation = self.mark_changed();
        self.failures.doubt(generation, chip, since);
    }

    /// Notes what a device owes, before anything changes on it.
    pub(crate) fn settle_debts(&mut self, device: usize) {
        if self.devices.get(device).is_some_and(|device| device.owes(owes::FAILURE)) {
            self.record_failure(device);
        }
        let makeup = |device: &&mut Device| device.owes(owes::DRAM | owes::L1);
        let Some(device) = self.devices.get_mut(device).filter(makeup) else { return };
        let (usages, processes, rows) = (&self.usages, &self.processes, device.usages.clone());
        device.take_makeup(|| shares_of(usages, processes, &rows));
    }

    /// Puts the counters of a process on a device, read as a whole at `time`, in place of what was known. What it
    /// had since `since` is not known, but that it was no more than its own peaks.
    pub(crate) fn fold_counters(&mut self, row: usize, counters: Counters, time: u64, since: u64) {
        let Some(device_row) = self.usages.get(row).map(|usage| usage.device) else { return };
        self.settle_debts(device_row);
        let generation = self.mark_changed();
        let Some(usage) = self.usages.change(generation, row) else { return };
        let before = std::mem::replace(&mut usage.counters, counters);
        let (old, new) = (Sums::of(&before), Sums::of(&counters));
        let more = self.possibly_more(row, &old, since);
        let history_since = self.history_since;
        let Some(device) = self.devices.change(generation, device_row) else { return };
        // If later events were merged already, they were merged with what it had before.
        let time = time.max(device.peaks.latest());
        device.doubt(Span { from: since, to: time }, &Doubt { less: old.bytes, more });
        device.find(time, &old, &new);
        device.observe_from(history_since, time);
        self.attest(row, device_row);
        self.uncapped.insert(device_row);
        if let Some(device) = self.devices.get_mut(device_row) {
            // What is missed next has a slice of its own.
            let sums = device.sums;
            device.peaks.cut(time, &sums);
        }
    }

    /// Bounds the peaks of a device on which counters were read as a whole, before somebody leaves it or the generation ends.
    pub(crate) fn cap_peaks(&mut self, device_row: usize) {
        if !self.uncapped.remove(&device_row) {
            return;
        }
        let most = self.most_together(device_row);
        if let Some(device) = self.devices.get_mut(device_row) {
            device.peaks.cap(&most);
        }
    }

    /// What the processes on a device can have had together: each its own peaks, unless it has reset them.
    fn most_together(&self, device: usize) -> [u64; FIGURES] {
        let rows = self.devices.get(device).map_or(&[][..], |device| &device.usages);
        let mut most = [0_u64; FIGURES];
        for counters in counters_of(&self.usages, rows) {
            let forgot = counters.peak_reset_time != 0;
            for (sum, own) in most.iter_mut().zip(own_peaks(counters)) {
                *sum = if forgot { UNKNOWN } else { sum.saturating_add(own.bytes) };
            }
        }
        most
    }

    /// How much more than `old` a process can have had since a moment: up to its own peaks, unless it has reset
    /// them since. Then nobody knows.
    fn possibly_more(&self, row: usize, old: &Sums, since: u64) -> [u64; FIGURES] {
        let unknown = Doubt::ANYTHING_MORE.more;
        let Some(usage) = self.usages.get(row) else { return unknown };
        let Some(process) = self.processes.get(usage.process) else { return unknown };
        let reset = usage.counters.peak_reset_time;
        if reset != 0 && !(1..=since).contains(&self.clock.to_ns(process.clock, reset)) {
            return unknown;
        }
        let own = own_peaks(&usage.counters);
        std::array::from_fn(|figure| own[figure].bytes.saturating_sub(old.bytes[figure]))
    }

    /// What a process reached by itself in the window is certain.
    fn attest(&mut self, row: usize, device: usize) {
        let Some(usage) = self.usages.get(row) else { return };
        let Some(Process { stats, clock: kind, .. }) = self.processes.get(usage.process) else { return };
        let share = Share { identity: stats.identity, pid: stats.pid, counters: &usage.counters };
        let times = own_peaks(&usage.counters).map(|own| self.time_of(*kind, own.ticks));
        let times = times.map(|time| Some(time).filter(|time| self.window.has(*time)));
        if let Some(device) = self.devices.get_mut(device) {
            device.attest_own_peaks(&share, &times);
        }
    }

    /// Takes a process that ended out of all devices. What it held was there until `closed`, if it said when, else
    /// until some time between `alive` and `noticed`.
    pub(crate) fn bury(&mut self, process: usize, closed: Option<u64>, alive: u64, noticed: u64) {
        let last_event = self.processes.get(process).map_or(0, |process| process.stats.last_event);
        let from = alive.max(last_event).saturating_add(1);
        for (row, device_row) in self.take_usages(process) {
            let held = self.usages.get(row).map_or(Sums::ZERO, |usage| Sums::of(&usage.counters));
            self.settle_debts(device_row);
            self.cap_peaks(device_row);
            let generation = self.mark_changed();
            let Some(device) = self.devices.change(generation, device_row) else { continue };
            if closed.is_none() && held != Sums::ZERO {
                device.doubt(Span { from, to: noticed }, &Doubt::up_to(held.bytes));
            }
            device.change(closed.unwrap_or(noticed), &held, &Sums::ZERO);
            device.leave(row, last_event);
            device.observe_from(self.history_since, noticed);
            // Who failed after that did not fail because of it.
            self.doubt_holders(device_row, closed.map_or(from, |closed| closed.saturating_add(1)));
            self.attest(row, device_row);
            self.empty(row);
            self.withdraw_claim(device_row);
        }
    }

    /// Takes a process out of all devices whose segment says what cannot be. Nothing that it said since it was found is
    /// believed, nor that it holds nothing now.
    pub(crate) fn disown(&mut self, process: usize, attached: u64) {
        let now = self.now;
        for (row, device_row) in self.take_usages(process) {
            let said = self.usages.get(row).map_or(Sums::ZERO, |usage| Sums::of(&usage.counters));
            self.settle_debts(device_row);
            self.cap_peaks(device_row);
            let generation = self.mark_changed();
            let Some(device) = self.devices.change(generation, device_row) else { continue };
            device.find(now, &said, &Sums::ZERO);
            device.disbelieve(attached, now);
            device.leave(row, now);
            self.empty(row);
            self.withdraw_claim(device_row);
            self.attest_all(device_row);
        }
    }

    /// In that span, what a process had is not known: it is so far behind that the others were merged without it.
    pub(crate) fn doubt_share(&mut self, process: usize, span: Span) {
        let rows = self.processes.get(process).map_or(Vec::new(), |process| process.usages.clone());
        for row in rows.into_iter().flatten() {
            let generation = self.mark_changed();
            let Some((device_row, less)) =
                self.usages.get(row).map(|u| (u.device, Sums::of(&u.counters).bytes))
            else {
                continue;
            };
            self.doubt_holders(device_row, span.from);
            if let Some(device) = self.devices.change(generation, device_row) {
                device.doubt(span, &Doubt { less, more: Doubt::ANYTHING_MORE.more });
            }
        }
    }

    /// In that span, the order of events is not known: a clock stepped.
    pub(crate) fn doubt_order(&mut self, span: Span) {
        for row in 0..self.devices.high_water() {
            self.doubt_holders(row, span.from);
            let generation = self.mark_changed();
            let Some(device) = self.devices.change(generation, row) else { continue };
            device.doubt(span, &Doubt::ANYTHING);
            // While rings are read for the first time, the sums are those of long ago.
            if self.now >= self.history_since {
                self.attest_all(row);
            }
        }
    }

    /// What is certain of a device after nothing that was merged is: what each process reached by itself, and what
    /// they hold now.
    fn attest_all(&mut self, device_row: usize) {
        let Some(device) = self.devices.get_mut(device_row) else { return };
        let (sums, rows) = (device.sums, device.usages.clone());
        device.peaks.find(&sums);
        for row in rows {
            self.attest(row, device_row);
        }
    }

    /// A process lived from `start` to `end` on a device while nobody followed it. Its last counters tell its own
    /// peaks.
    pub(crate) fn fold_unfollowed(
        &mut self,
        device_row: usize,
        share: &Share<'_>,
        life: Span,
        times: &[Option<u64>; FIGURES],
    ) {
        let own = own_peaks(share.counters);
        // A reset in its life made it forget what was before.
        let more = match share.counters.peak_reset_time {
            0 => own.map(|own| own.bytes),
            _ => Doubt::ANYTHING_MORE.more,
        };
        self.doubt_holders(device_row, life.from);
        let generation = self.mark_changed();
        let Some(device) = self.devices.change(generation, device_row) else { return };
        device.doubt(life, &Doubt { less: [0; FIGURES], more });
        device.peaks.note_others(life);
        device.attest_own_peaks(share, times);
    }

    /// A process lived in that span of which nobody knows what it had, or on which devices.
    pub(crate) fn fold_lost(&mut self, life: Span) {
        self.note_unread(life);
        for row in 0..self.devices.high_water() {
            self.doubt_holders(row, life.from);
            let generation = self.mark_changed();
            let Some(device) = self.devices.change(generation, row) else { continue };
            device.doubt(life, &Doubt::ANYTHING_MORE);
            device.peaks.note_others(life);
        }
    }
}
