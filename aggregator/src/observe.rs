//! An observer of the merge: sees the events of all processes in the order in which they are folded.

use std::fmt;

use shm_layout::{Counters, Event};
use tt_shm_reader::Segment;

use crate::merge::queue::{Batch, Item};

/// Sees what an aggregator folds: [`crate::Config::observer`].
///
/// Everything about one process comes in the order in which it happened. Something about another process may come late:
/// then its time is before one that was already given.
pub trait Observe: fmt::Debug + Send {
    /// Events of a process, with their times in nanoseconds of CLOCK_MONOTONIC. Called before they are folded, which may
    /// still find that one of them is impossible: then [`Observe::broke`] follows.
    fn events(&mut self, segment: &Segment, events: &mut dyn Iterator<Item = (u64, &Event)>);

    /// The counters of a process at a time, by device index. Events before them were missed, or happened before it was
    /// followed.
    fn counters(&mut self, segment: &Segment, time: u64, devices: &[Counters]);

    /// A process ended. It held its memory until this time; if it was killed, that is when it was noticed.
    fn ended(&mut self, segment: &Segment, time: u64);

    /// A process is no longer followed, because what it reports is impossible.
    fn broke(&mut self, segment: &Segment);
}

/// Shows an observer what is about to be folded. Kept out of line: usually there is no observer.
#[cold]
pub(crate) fn observe_batch(observer: &mut dyn Observe, segment: &Segment, batch: &Batch<'_>) {
    let event = |item: &Item| matches!(item, Item::Event(_));
    for part in batch.due().chunk_by(|(_, one), (_, next)| event(one) && event(next)) {
        match part {
            [(time, Item::FullRead(read))] => observer.counters(segment, *time, &read.devices),
            _ => {
                let mut events = part.iter().filter_map(|(time, item)| match item {
                    Item::Event(event) => Some((*time, event)),
                    Item::FullRead(_) => None,
                });
                observer.events(segment, &mut events);
            }
        }
    }
}
