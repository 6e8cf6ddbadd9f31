//! How one event, or a state read as a whole, changes the model.

use shm_layout::{Class, Counters, Event, EventKind, Implausible, NO_DEVICE};

use crate::device::{Device, Exchange};
use crate::figures::{Live, Share, Used};
use crate::model::{Model, counters_of, shares_of};

/// Events older than this do not belong to the rate of the last second.
const RATE_NS: u64 = 1_000_000_000;

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
    /// Counts an event of a process in. On an error nothing has changed and the segment is broken.
    #[inline]
    pub(crate) fn fold(&mut self, process: usize, time: u64, event: &Event) -> Result<(), Implausible> {
        let batch = self.batch();
        let recent = time.saturating_add(RATE_NS) > self.now;
        let Some(owner) = self.processes.change(batch, process) else { return Ok(()) };
        owner.stats.position = event.stamp;
        owner.stats.last_event = time;
        if recent {
            owner.rate.add();
        }
        self.totals.events += 1;
        if event.device == NO_DEVICE {
            return Ok(());
        }
        let usage = owner.usages.get(usize::from(event.device)).copied().flatten();
        let Some(usage) = usage else { return Ok(()) };
        self.fold_on_device(usage, time, event, recent)
    }

    fn fold_on_device(
        &mut self,
        row: usize,
        time: u64,
        event: &Event,
        recent: bool,
    ) -> Result<(), Implausible> {
        let batch = self.batch();
        let Some(device_row) = self.usages.get(row).map(|usage| usage.device) else { return Ok(()) };
        if may_lower(event) {
            self.take_makeup(device_row);
        }
        let Some(usage) = self.usages.change(batch, row) else { return Ok(()) };
        let class = event.class().map(|class| class as usize).filter(|_| moves_class(event));
        let (old, old_class) =
            (Used::of(&usage.counters), class.map(|class| Live::of(&usage.counters, class)));
        usage.counters.apply(event)?;
        let change = Exchange { old, new: Used::of(&usage.counters) };
        let new_class = class.map(|class| Live::of(&usage.counters, class));
        let process = usage.process;
        let Some(device) = self.devices.change(batch, device_row) else { return Ok(()) };
        device.enter(time);
        if let (Some(class), Some(old), Some(new)) = (class, old_class, new_class) {
            device.exchange_class(class, old, new, time);
        }
        device.exchange_used(change, time);
        device.events += 1;
        if recent {
            device.event_rate.add();
        }
        if time >= self.started {
            device.history.observe(time, device.used.dram, device.used.l1);
        }
        let moved = change.is_change() || class.is_some();
        if moved && device.order.is_late(process, time) {
            let less = class.zip(old_class.zip(new_class));
            let less = less.map(|(class, (old, new))| (class, old.bytes.saturating_sub(new.bytes)));
            self.fold_late(device_row, process, change, less, time);
        }
        self.note(device_row, process, event, time, recent);
        Ok(())
    }

    /// What an event says beside bytes.
    #[inline]
    fn note(&mut self, device: usize, process: usize, event: &Event, time: u64, recent: bool) {
        let kind = event.kind();
        if !matches!(kind, Some(EventKind::KernelDispatch | EventKind::AllocFailed)) {
            return;
        }
        let pid = self.processes.get(process).map_or(0, |process| process.stats.pid);
        let Some(device) = self.devices.get_mut(device) else { return };
        match kind {
            Some(EventKind::AllocFailed) => device.note_failure(event, pid, time),
            _ if recent => device.dispatch_rate.add(),
            _ => {}
        }
    }

    /// An event came after later ones of other processes: the sums in between were not those seen.
    #[cold]
    fn fold_late(
        &mut self,
        device: usize,
        process: usize,
        change: Exchange,
        class: Option<(usize, u64)>,
        since: u64,
    ) {
        let batch = self.batch();
        self.totals.late += 1;
        if let Some(process) = self.processes.change(batch, process) {
            process.stats.late += 1;
        }
        let now = self.now;
        let Some(device) = self.devices.change(batch, device) else { return };
        device.lower(change, class, since);
        let (usages, rows) = (&self.usages, device.usages.clone());
        device.widen(|| counters_of(usages, &rows), now);
    }

    /// Takes the compositions that a device owes, before it uses less.
    #[inline]
    fn take_makeup(&mut self, device: usize) {
        let Some(device) = self.devices.get_mut(device).filter(|device| device.owes_makeup()) else { return };
        let (usages, processes, rows) = (&self.usages, &self.processes, device.usages.clone());
        device.take_makeup(|| shares_of(usages, processes, &rows));
    }

    /// Puts the counters of a process on a device in place of what was known.
    pub(crate) fn replace_counters(&mut self, row: usize, counters: Counters, time: u64, known: Known) {
        let batch = self.batch();
        let Some(device_row) = self.usages.get(row).map(|usage| usage.device) else { return };
        self.take_makeup(device_row);
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
        if time >= self.started {
            device.history.observe(time, device.used.dram, device.used.l1);
        }
        if known != Known::Followed {
            self.reach_back(row, device_row, &old);
        }
    }

    /// Peaks of the time that was not followed: at least what the process itself reached in the window, at
    /// most what all of them can have reached together.
    fn reach_back(&mut self, row: usize, device: usize, old: &Counters) {
        let (clock, window, now) = (&self.clock, self.window, self.now);
        let Some(usage) = self.usages.get(row) else { return };
        let Some(process) = self.processes.get(usage.process) else { return };
        let Some(device) = self.devices.get_mut(device) else { return };
        let in_window = |ticks: u64| {
            let time = clock.to_ns(process.clock, ticks);
            (ticks != 0 && time >= window.begin()).then_some(time)
        };
        let share =
            Share { identity: process.stats.identity, pid: process.stats.pid, counters: &usage.counters };
        device.raise_to_own_peaks(&share, in_window);
        let (usages, rows) = (&self.usages, device.usages.clone());
        device.widen(|| counters_of(usages, &rows), now);
        // The process may have reset its own peaks in between.
        widen_by_other_own(device, old, &usage.counters);
    }
}

/// If a process's own peaks were higher before than they are now, it reset them while it was not
/// followed; the higher ones bound what was used before that.
fn widen_by_other_own(device: &mut Device, old: &Counters, new: &Counters) {
    if old.dram_peak_bytes > new.dram_peak_bytes || old.l1_peak_bytes > new.l1_peak_bytes {
        let dram = device.peaks.dram.to_peak().high;
        device.peaks.dram.widen(dram.saturating_add(old.dram_peak_bytes.saturating_sub(new.dram_peak_bytes)));
        let l1 = device.peaks.l1.to_peak().high;
        device.peaks.l1.widen(l1.saturating_add(old.l1_peak_bytes.saturating_sub(new.l1_peak_bytes)));
    }
}

/// Whether an event can make less be used than before.
#[inline]
fn may_lower(event: &Event) -> bool {
    let lowering = [EventKind::Free, EventKind::CbFree, EventKind::KernelUnload, EventKind::KernelDispatch];
    event.kind().is_some_and(|kind| lowering.contains(&kind))
}

/// Whether an event changes the bytes of its class.
#[inline]
fn moves_class(event: &Event) -> bool {
    use EventKind::{Alloc, CbAlloc, CbFree, Free, KernelLoad, KernelUnload};
    matches!(event.kind(), Some(Alloc | Free | CbAlloc | CbFree | KernelLoad | KernelUnload))
}
