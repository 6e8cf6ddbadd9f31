//! Folding what waits in a follower's queue: events, counters that were read in full, and counters of a process that can
//! be counted again.

use crate::merge::catch_up::ReadReason;
use crate::merge::fold::{FoldError, fold_events};
use crate::merge::queue::{Batch, FullRead, Item};
use crate::model::Model;
use crate::segments::follower::Follower;

/// Folds a batch of a follower's queue; the error says why the segment is broken.
pub(crate) fn fold_batch(
    model: &mut Model,
    follower: &Follower,
    batch: &mut Batch<'_>,
) -> Result<(), FoldError> {
    loop {
        fold_to_recount(model, follower, batch)?;
        fold_events(model, follower.process, follower.devices, batch)?;
        let Some((time, read)) = batch.full_read() else { return Ok(()) };
        fold_full_read(model, follower, time, read);
        batch.pass();
    }
}

/// Folds the events up to the position of a pending recount, and then counts the process again.
fn fold_to_recount(model: &mut Model, follower: &Follower, batch: &mut Batch<'_>) -> Result<(), FoldError> {
    let process = follower.process;
    let Some(position) = model.recounts.get(&process).map(|recount| recount.position) else { return Ok(()) };
    while let Some((time, event)) = batch.event() {
        if event.stamp > position {
            model.count_again(process, time);
            break;
        }
        // One at a time: the next may be the first that is not in those counters.
        let one = [(time, Item::Event(*event))];
        fold_events(model, process, follower.devices, &mut Batch::new(&one, time))?;
        batch.pass();
    }
    Ok(())
}

fn fold_full_read(model: &mut Model, follower: &Follower, time: u64, read: &FullRead) {
    let generation = model.mark_changed();
    // Saturating: a hostile head may jump by any amount.
    model.totals.missed = model.totals.missed.saturating_add(read.missed);
    let last = read.devices.iter().map(|counters| counters.time).max().unwrap_or(0);
    let last = model.clock.to_ns(follower.clock, last);
    let Some(process) = model.processes.get(follower.process) else { return };
    let (stats, read_at) = (process.stats, process.read_at);
    // What the process held is not known since its last folded event, or since it was last read.
    let since = match read.reason {
        // Not since it was read: an event that was committed after that may have happened before it.
        ReadReason::Again if follower.clock.is_some() => stats.last_event,
        ReadReason::Again => read_at,
        ReadReason::First => model.unfollowed_since(stats.identity, stats.started),
    };
    let Some(process) = model.processes.change(generation, follower.process) else { return };
    process.stats.missed = process.stats.missed.saturating_add(read.missed);
    process.stats.position = read.position;
    process.read_at = time;
    process.stats.last_event = last.min(time);
    let usages = process.usages.clone();
    model.doubt_failures(follower.process, since);
    for (usage, counters) in usages.into_iter().zip(&read.devices) {
        if let Some(usage) = usage {
            model.fold_counters(usage, *counters, time, since);
        }
    }
    // A pending recount was read earlier; these counters serve as well.
    if model.recounts.remove(&follower.process).is_some() {
        let words = follower.segment.words();
        for (device, counters) in read.devices.iter().enumerate() {
            if let Some(entry) = words.device(device) {
                model.count_pair((follower.process, device), &entry, *counters, time);
            }
        }
    }
}
