//! Folding everything but events in order: counters read in full, late events, processes that nobody
//! followed, and the end of a process.

use shm_layout::table::{ProcessStats, failure_flags, process_flags};
use shm_layout::{Counters, Event, Implausible, UNKNOWN};

use crate::model::Model;
use crate::model::device::{Device, owes};
use crate::model::failures;
use crate::model::figures::{FIGURES, Share, Sums, own_peaks};
use crate::model::slice::{Doubt, Span};
use crate::model::{Process, counters_of, shares_of};

/// Why counters were read in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadReason {
    /// Read for the first time; what came before is not known.
    First,
    /// Read again after events were missed.
    Again,
}

impl Model {
    /// Folds an event that is earlier than one already merged, or that begins a new slice of the timeline.
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

    /// Settles the debts of the device behind a process's device index.
    #[cold]
    pub(crate) fn settle_debts_for(&mut self, process: usize, device: u8) {
        let usage = self.usage_of(process, device).and_then(|row| self.usages.get(row));
        if let Some(device) = usage.map(|usage| usage.device) {
            self.settle_debts(device);
        }
    }

    /// Records the failures that were just folded, with their holders.
    pub(crate) fn settle_failures(&mut self) {
        for device in 0..self.devices.high_water() {
            if self.devices.get(device).is_some_and(|device| device.owes(owes::FAILURE)) {
                self.record_failure(device);
            }
        }
    }

    /// Records a failed allocation with who held what at that time. Called when everything before it is
    /// folded and nothing after it.
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

    /// Whether every holder at `time` is known. A process that ended before the aggregator started, or that
    /// is excluded from all totals, is not among them.
    fn knows_all_holders(&self, time: u64) -> bool {
        let broken = |process: &ProcessStats| process.flags & process_flags::BROKEN != 0;
        time >= self.started
            && !self.behind
            && !self.processes.values().any(|(_, process)| broken(&process.stats))
    }

    /// Marks the holders of failures since `since` as uncertain, on all devices of a process whose share was
    /// not what was folded.
    pub(crate) fn doubt_failures(&mut self, process: usize, since: u64) {
        let Some(process) = self.processes.get(process) else { return };
        let usages = process.usages.iter().flatten().filter_map(|row| self.usages.get(*row));
        for device in usages.map(|usage| usage.device).collect::<Vec<_>>() {
            self.doubt_holders(device, since);
        }
    }

    /// Marks the holders of failures on a device since `since` as uncertain, including a failure that was
    /// folded but not recorded yet.
    pub(crate) fn doubt_holders(&mut self, device: usize, since: u64) {
        self.settle_debts(device);
        let Some(chip) = self.devices.get(device).map(|device| device.entry.chip_id) else { return };
        let generation = self.mark_changed();
        self.failures.doubt(generation, chip, since);
    }

    /// Records what a device owes, before anything changes on it.
    pub(crate) fn settle_debts(&mut self, device: usize) {
        if self.devices.get(device).is_some_and(|device| device.owes(owes::FAILURE)) {
            self.record_failure(device);
        }
        let makeup = |device: &&mut Device| device.owes(owes::DRAM | owes::L1);
        let Some(device) = self.devices.get_mut(device).filter(makeup) else { return };
        let (usages, processes, rows) = (&self.usages, &self.processes, device.usages.clone());
        device.take_makeup(|| shares_of(usages, processes, &rows));
    }

    /// Replaces what was known of a process on a device by counters that were read in full at `time`. What it
    /// held since `since` is not known, except that it was no more than its own peaks.
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
        // If later events are merged already, they were merged with the old counters.
        let time = time.max(device.peaks.latest());
        device.doubt(Span { from: since, to: time }, &Doubt { less: old.bytes, more });
        device.find(time, &old, &new);
        device.observe_from(history_since, time);
        self.attest(row, device_row);
        self.uncapped.insert(device_row);
        if let Some(device) = self.devices.get_mut(device_row) {
            // The next missed time gets a slice of its own.
            let sums = device.sums;
            device.peaks.cut(time, &sums);
        }
    }

    /// Bounds the peaks of a device on which counters were read in full, before a process leaves it or the
    /// generation ends.
    pub(crate) fn cap_peaks(&mut self, device_row: usize) {
        if !self.uncapped.remove(&device_row) {
            return;
        }
        let most = self.most_together(device_row);
        if let Some(device) = self.devices.get_mut(device_row) {
            device.peaks.cap(&most);
        }
    }

    /// The most that the processes on a device can have held together: the sum of their own peaks. Unknown
    /// for a process that has reset its peaks.
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

    /// How much more than `old` a process can have held since `since`: up to its own peaks. Unknown if it has
    /// reset them since.
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

    /// Raises the peaks of a device to what a process is certain to have reached by itself in the window.
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

    /// Removes a process that ended from all devices. It held its memory until `closed` if it closed its
    /// segment, otherwise until some time between `alive` and `noticed`.
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
            // Allocations that failed after that did not fail because of it.
            self.doubt_holders(device_row, closed.map_or(from, |closed| closed.saturating_add(1)));
            self.attest(row, device_row);
            self.empty(row);
            self.withdraw_claim(device_row);
        }
    }

    /// Removes a process whose segment is impossible from all devices. Nothing that it reported since it was
    /// found is believed, nor that it holds nothing now.
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

    /// Doubts a process's share in a span: it is so far behind that the others were merged without it.
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

    /// Doubts the order of events in a span in which a clock stepped.
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

    /// Restores what is certain of a device after everything merged was doubted: what each process reached by
    /// itself, and what they hold now.
    fn attest_all(&mut self, device_row: usize) {
        let Some(device) = self.devices.get_mut(device_row) else { return };
        let (sums, rows) = (device.sums, device.usages.clone());
        device.peaks.find(&sums);
        for row in rows {
            self.attest(row, device_row);
        }
    }

    /// Folds a process that was alive on a device for the span `life` while nobody followed it. Its last
    /// counters tell its own peaks.
    pub(crate) fn fold_unfollowed(
        &mut self,
        device_row: usize,
        share: &Share<'_>,
        life: Span,
        times: &[Option<u64>; FIGURES],
    ) {
        let own = own_peaks(share.counters);
        // A reset of peaks discarded what was before it.
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

    /// Folds a process that was alive for the span `life` and of which nothing is known, not even its
    /// devices.
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
