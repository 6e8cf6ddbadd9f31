//! A late start: this library came when the allocator was in use already.
//!
//! What it holds then is listed. A call that another thread had begun before the hooks were in place is not seen, and may
//! end after that: what it allocated is not reported, and what it freed is reported as live. So for a while it is kept what
//! is reported as live. Whatever is freed and is not among it, and whatever is allocated and is among it, tells of a call
//! that was missed; so does the allocator's list. All of these are reported as soon as they are found. Until nothing was
//! found for [`QUIET`], and the allocator's list and sums are those that were reported, no figure is called exact.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tt_shm_writer::Record;

use super::Accounts;
use crate::calls::{Calls, Place};
use crate::metal::{Allocator, Buffer, KINDS};

/// A call takes some microseconds, under the allocator's lock, and more if its thread has to wait for a processor.
const QUIET: Duration = Duration::from_secs(1);

/// A late start, until it is settled.
pub(super) struct Late {
    /// Whether it is not settled. Changed only by who has `reported`; others may look before they lock.
    is_on: AtomicBool,
    reported: Mutex<Reported>,
}

/// What is reported as live.
struct Reported {
    ids: HashSet<u64>,
    /// When it began, or when a call was last found that had been missed.
    quiet_since: Instant,
}

/// What the allocator lists and what was reported, where they differ.
#[derive(Debug, PartialEq)]
struct Missed<B> {
    allocated: Vec<(u64, B)>,
    freed: Vec<u64>,
}

impl Late {
    pub(super) fn new() -> Late {
        let reported = Reported { ids: HashSet::new(), quiet_since: Instant::now() };
        Late { is_on: AtomicBool::new(true), reported: Mutex::new(reported) }
    }

    fn lock(&self) -> Option<MutexGuard<'_, Reported>> {
        // Relaxed: it is looked at again under the lock.
        if !self.is_on.load(Ordering::Relaxed) {
            return None;
        }
        let reported = self.reported.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        self.is_on.load(Ordering::Relaxed).then_some(reported)
    }

    /// Something is about to be reported as allocated. Whether it is live already: then its free was missed.
    #[inline]
    pub(super) fn is_allocated_again(&self, id: u64) -> bool {
        self.lock().is_some_and(|mut reported| !reported.ids.insert(id) && reported.found())
    }

    /// Something is about to be reported as freed. Whether it is not live: then its allocation was missed.
    #[inline]
    pub(super) fn is_freed_unseen(&self, id: u64) -> bool {
        self.lock().is_some_and(|mut reported| !reported.ids.remove(&id) && reported.found())
    }

    /// It is settled, or there is nothing left to settle. Whether it was not before.
    pub(super) fn end(&self) -> bool {
        let Some(mut reported) = self.lock() else { return false };
        reported.ids = HashSet::new();
        self.is_on.store(false, Ordering::Relaxed);
        true
    }
}

impl Reported {
    /// A call was missed.
    fn found(&mut self) -> bool {
        self.quiet_since = Instant::now();
        true
    }

    fn is_quiet(&self) -> bool {
        self.quiet_since.elapsed() >= QUIET
    }

    /// What was missed, if this is what there is. It is known from now on.
    fn differs_from<B: Copy>(&mut self, listed: &HashMap<u64, B>) -> Missed<B> {
        let freed: Vec<u64> = self.ids.iter().copied().filter(|id| !listed.contains_key(id)).collect();
        let is_new = |(id, _): &(&u64, &B)| !self.ids.contains(id);
        let allocated: Vec<(u64, B)> =
            listed.iter().filter(is_new).map(|(id, buffer)| (*id, *buffer)).collect();
        freed.iter().for_each(|id| _ = self.ids.remove(id));
        self.ids.extend(allocated.iter().map(|(id, _)| *id));
        Missed { allocated, freed }
    }
}

impl<B> Missed<B> {
    fn is_nothing(&self) -> bool {
        self.allocated.is_empty() && self.freed.is_empty()
    }
}

/// How a look at the allocator ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// The sums are those of the allocator, and nothing had been missed for long enough.
    Settled,
    /// The sums are not those of the allocator, though its list is what was reported.
    Different,
    /// It is too early to tell.
    Early,
}

impl Accounts {
    /// Whether it came late, and that is not settled.
    pub(crate) fn is_late(&self) -> bool {
        self.late.as_ref().is_some_and(|late| late.is_on.load(Ordering::Relaxed))
    }

    /// Whether nothing was missed for long enough, so that it may be settled.
    pub(crate) fn may_settle(&self) -> bool {
        self.late.as_ref().and_then(Late::lock).is_some_and(|reported| reported.is_quiet())
    }

    /// Finds what was missed, and reports it. To be called in the middle of a call, that of `own`; `None` if another is on
    /// its way, which may be in the allocator's list and not reported yet, or the other way round.
    pub(crate) fn reconcile(&self, allocator: Allocator, calls: &Calls, own: &Place) -> Option<Look> {
        let mut reported = self.late.as_ref()?.lock()?;
        let look = || Some((allocator.buffers()?, KINDS.map(|kind| self.allocators_sum(allocator, kind))));
        let (listed, sums) = calls.alone(own, look)?;
        // From here on nothing that is reported changes: whoever reports something waits for `reported`.
        let listed = listed.into_iter().map(|buffer| (buffer.id(), buffer));
        // What is being allocated right now by a call that is missed has no address yet: it is left to a later look. (What
        // the hooks have reported a moment ago may be as incomplete, but is known.)
        let is_told = |(id, buffer): &(u64, Buffer)| reported.ids.contains(id) || buffer.is_allocated();
        let (listed, begun): (HashMap<_, _>, HashMap<_, _>) = listed.partition(is_told);
        let missed = reported.differs_from(&listed);
        if !missed.is_nothing() || !begun.is_empty() {
            reported.found();
        }
        if !missed.is_nothing() {
            self.report_missed(&missed);
        }
        let is_same = |(kind, sum): (_, Option<u64>)| sum.is_none() || sum == self.reported_sum(kind);
        Some(match KINDS.into_iter().zip(sums).all(is_same) {
            true if reported.is_quiet() => Look::Settled,
            false if reported.is_quiet() => Look::Different,
            _ => Look::Early,
        })
    }

    fn report_missed(&self, missed: &Missed<Buffer>) {
        for id in &missed.freed {
            let _ = self.tracker().free(&self.mesh, *id);
        }
        for (_, buffer) in &missed.allocated {
            self.allocated_unseen(*buffer);
        }
        self.forget_peaks();
    }

    /// What was used between a missed call and now is not known, and neither are the peaks.
    pub(super) fn forget_peaks(&self) {
        let _ = self.tracker().reset_peaks(&self.mesh);
    }

    /// Nothing is left to settle.
    pub(crate) fn settled(&self) {
        if self.late.as_ref().is_some_and(Late::end) {
            self.segment.settled();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missed(late: &Late, listed: &[u64]) -> Missed<()> {
        let listed = listed.iter().map(|id| (*id, ())).collect();
        let mut missed = late.lock().unwrap().differs_from(&listed);
        missed.allocated.sort();
        missed.freed.sort();
        missed
    }

    #[test]
    fn what_the_list_has_and_was_not_reported_was_missed_and_the_other_way_round() {
        let late = Late::new();
        assert!((1..=4).all(|id| !late.is_allocated_again(id)));
        assert_eq!(missed(&late, &[1, 2, 3, 4]), Missed { allocated: vec![], freed: vec![] });
        let expected = Missed { allocated: vec![(5, ()), (6, ())], freed: vec![2, 4] };
        assert_eq!(missed(&late, &[6, 1, 3, 5]), expected);
        assert!(missed(&late, &[1, 3, 5, 6]).is_nothing(), "it is known from then on");
    }

    #[test]
    fn later_calls_tell_what_was_missed() {
        let late = Late::new();
        assert!(!late.is_allocated_again(1));
        assert!(!late.is_freed_unseen(1));
        assert!(late.is_freed_unseen(1), "it was allocated again in between");
        assert!(!late.is_allocated_again(2));
        assert!(late.is_allocated_again(2), "it was freed in between");
        assert!(missed(&late, &[2]).is_nothing());
    }

    #[test]
    fn what_was_missed_makes_the_wait_begin_anew() {
        let late = Late::new();
        let age = || late.lock().unwrap().quiet_since = Instant::now() - QUIET;
        assert!(!late.lock().unwrap().is_quiet());
        age();
        assert!(!late.is_allocated_again(1));
        assert!(late.lock().unwrap().is_quiet());
        assert!(late.is_allocated_again(1));
        assert!(!late.lock().unwrap().is_quiet());
    }

    #[test]
    fn once_settled_nothing_is_kept() {
        let late = Late::new();
        assert!(!late.is_allocated_again(1));
        assert!(late.end());
        assert!(!late.end());
        assert!(!late.is_allocated_again(1) && !late.is_freed_unseen(7));
    }
}
