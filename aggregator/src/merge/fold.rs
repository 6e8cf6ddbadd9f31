//! Folding events in order of time. Consecutive events of one process on one device are folded together, so that their
//! rows are looked up once.

use shm_layout::{Class, Event, EventKind, Implausible, MarkerPhase, NO_DEVICE};

use crate::merge::queue::Batch;
use crate::model::Model;
use crate::model::device::{Device, owes};
use crate::model::figures::{Live, Resident, Used};
use crate::model::quota::Usage;

/// Events older than this do not count towards the rate of the last second.
const RATE_NS: u64 = 1_000_000_000;

/// Why a segment is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FoldError {
    #[error(transparent)]
    Implausible(#[from] Implausible),
    #[error("event {position} names device {device} of {devices}")]
    Device { position: u64, device: u8, devices: usize },
}

/// Whether a class is what remains of its memory after the parts that the history tells apart.
const IS_WHOLE: [bool; Class::COUNT] = {
    let mut whole = [false; Class::COUNT];
    whole[Class::Dram as usize] = true;
    whole[Class::L1 as usize] = true;
    whole
};

/// The events of a process that were folded.
#[derive(Default)]
struct Tally {
    events: u64,
    /// Those of the last second.
    recent: u64,
    /// Time and position of the last one.
    last: (u64, u64),
}

/// Why folding on one device stopped.
enum End {
    /// The next event is on another device, or there is none.
    Over,
    /// Something about all processes has to be noted before the next event.
    Owing,
    /// The next event is not the next in time.
    OutOfOrder,
}

/// Folds the next events of a process, which has registered so many devices. An error says why the segment is broken;
/// the event that it names has changed nothing.
pub(crate) fn fold_events(
    model: &mut Model,
    process: usize,
    devices: usize,
    batch: &mut Batch<'_>,
) -> Result<(), FoldError> {
    let mut tally = Tally::default();
    let result = fold_by_device(model, process, devices, batch, &mut tally);
    if tally.events > 0 {
        let generation = model.mark_changed();
        model.totals.events += tally.events;
        if let Some(owner) = model.processes.change(generation, process) {
            (owner.stats.last_event, owner.stats.position) = tally.last;
            owner.rate.add(tally.recent);
        }
    }
    result
}

fn fold_by_device(
    model: &mut Model,
    process: usize,
    devices: usize,
    batch: &mut Batch<'_>,
    tally: &mut Tally,
) -> Result<(), FoldError> {
    while let Some((_, &Event { device, stamp: position, .. })) = batch.event() {
        if device != NO_DEVICE && usize::from(device) >= devices {
            return Err(FoldError::Device { position, device, devices });
        }
        let end = match UsageFold::new(model, process, device) {
            Some(mut usage) => usage.fold(device, batch, tally)?,
            None => skip_device(model, process, device, batch, tally),
        };
        match end {
            End::Over => {}
            End::Owing => model.settle_debts_for(process, device),
            End::OutOfOrder => fold_out_of_order(model, process, device, batch, tally)?,
        }
    }
    Ok(())
}

/// Folds one event that is not the next in time.
#[cold]
fn fold_out_of_order(
    model: &mut Model,
    process: usize,
    device: u8,
    batch: &mut Batch<'_>,
    tally: &mut Tally,
) -> Result<(), FoldError> {
    let Some(((time, event), row)) = batch.event_on(device).zip(model.usage_of(process, device)) else {
        return Ok(());
    };
    let is_recent = time >= recent_from(model.now);
    model.fold_out_of_order(process, row, event, time, is_recent)?;
    let recent = u64::from(is_recent);
    if let Some(device) = model.usages.get(row).and_then(|usage| model.devices.get_mut(usage.device)) {
        device.events += 1;
        device.event_rate.add(recent);
    }
    tally.events += 1;
    tally.recent += recent;
    tally.last = (time, event.stamp);
    batch.pass();
    Ok(())
}

/// Counts events that concern no device, or one that has no row. A step that ends is noted on the devices of its process.
fn skip_device(
    model: &mut Model,
    process: usize,
    device: u8,
    batch: &mut Batch<'_>,
    tally: &mut Tally,
) -> End {
    let recent_from = recent_from(model.now);
    while let Some((time, event)) = batch.event_on(device) {
        if event.kind() == Some(EventKind::Marker) && event.class == MarkerPhase::End as u8 {
            model.note_step(process);
        }
        tally.events += 1;
        tally.recent += u64::from(time >= recent_from);
        tally.last = (time, event.stamp);
        batch.pass();
    }
    End::Over
}

/// A process on a device, with its rows looked up.
struct UsageFold<'a> {
    usage: &'a mut Usage,
    device: &'a mut Device,
    /// What the process uses.
    used: Used,
    /// How much of it is resident.
    resident: Resident,
    pid: u64,
    recent_from: u64,
    history_since: u64,
}

impl<'a> UsageFold<'a> {
    /// Looks up a process on a device; `None` if it has no row there.
    #[inline]
    fn new(model: &'a mut Model, process: usize, device: u8) -> Option<UsageFold<'a>> {
        let (row, generation) = (model.usage_of(process, device)?, model.mark_changed());
        let pid = model.processes.get(process).map_or(0, |process| process.stats.pid);
        let usage = model.usages.change(generation, row)?;
        let device = model.devices.change(generation, usage.device)?;
        let (used, resident) = (Used::of(&usage.counters), Resident::of(&usage.counters));
        Some(UsageFold {
            usage,
            device,
            used,
            resident,
            pid,
            recent_from: recent_from(model.now),
            history_since: model.history_since,
        })
    }

    /// Folds events until one is on another device, or something needs all processes of this device.
    #[inline]
    fn fold(&mut self, device: u8, batch: &mut Batch<'_>, tally: &mut Tally) -> Result<End, Implausible> {
        let (mut events, mut recent) = (0, 0);
        let end = loop {
            let Some((time, event)) = batch.event_on(device) else { break Ok(End::Over) };
            if self.device.owes != 0 && (may_lower(event) || self.device.owes(owes::FAILURE)) {
                break Ok(End::Owing);
            }
            if !self.device.peaks.is_in_order(time) {
                break Ok(End::OutOfOrder);
            }
            if let Err(why) = self.fold_one(event, time) {
                break Err(why);
            }
            batch.pass();
            events += 1;
            recent += u64::from(time >= self.recent_from);
            tally.last = (time, event.stamp);
        };
        self.device.events += events;
        self.device.event_rate.add(recent);
        tally.events += events;
        tally.recent += recent;
        end
    }

    #[inline(always)]
    fn fold_one(&mut self, event: &Event, time: u64) -> Result<(), Implausible> {
        let UsageFold { usage, device, resident, .. } = self;
        let class = moved_class(event);
        let old_class = class.map(|class| Live::of(&usage.counters, class));
        usage.counters.apply(event)?;
        device.peaks.advance(time);
        if let Some((class, old)) = class.zip(old_class) {
            device.exchange_class(class, old, Live::of(&usage.counters, class));
            if Class::ALL[class].is_program_memory() {
                exchange_resident(resident, usage, device);
            }
        }
        let runs = matches!(event.kind(), Some(EventKind::KernelDispatch | EventKind::ProgramEnd));
        if runs {
            exchange_resident(resident, usage, device);
        }
        let used = Used::of(&usage.counters);
        device.exchange_used(self.used, used);
        self.used = used;
        let has_parts = runs || class.is_some_and(|class| !IS_WHOLE[class]);
        device.observe_event(self.history_since, time, has_parts);
        device.note(event, usage.process, self.pid, time, time >= self.recent_from);
        Ok(())
    }
}

/// Updates how much of a process is resident, after an event that can change it. Kept out of line: most events change
/// nothing there.
#[cold]
fn exchange_resident(resident: &mut Resident, usage: &Usage, device: &mut Device) {
    let new = Resident::of(&usage.counters);
    device.exchange_resident(std::mem::replace(resident, new), new);
}

/// The first moment of the last second.
fn recent_from(now: u64) -> u64 {
    now.saturating_add(1).saturating_sub(RATE_NS)
}

/// Whether an event can lower what is used.
#[inline]
fn may_lower(event: &Event) -> bool {
    use EventKind::{CbFree, Free, KernelDispatch, KernelUnload, ProgramEnd};
    matches!(event.kind(), Some(Free | CbFree | KernelUnload | KernelDispatch | ProgramEnd))
}

/// The class whose bytes an event changes.
#[inline]
fn moved_class(event: &Event) -> Option<usize> {
    use EventKind::{Alloc, CbAlloc, CbFree, Free, KernelLoad, KernelUnload};
    let moves = matches!(event.kind(), Some(Alloc | Free | CbAlloc | CbFree | KernelLoad | KernelUnload));
    event.class().filter(|_| moves).map(|class| class as usize)
}
