//! The calls of an allocator, on all threads: a comparison with its statistics counts only if no other call was on its
//! way, which may be in the allocator's sums and not yet in ours.
//!
//! Each thread counts its own calls in a place of its own, by plain stores: a locked instruction would wait for all stores
//! of the event before it. No fence is needed either. A call stores `begun`, then changes the allocator (under its mutex)
//! and what is reported (under the tracker's lock), then stores `ended`. A comparison looks at all places, reads both
//! sums under those locks, and looks again:
//!
//! - If it has read one effect of a call, the lock that this was done under makes its `begun` visible to the second look.
//! - To pass, the first look must have found the same `begun`, and an equal `ended`. `ended` is stored with Release and
//!   loaded with Acquire, so both effects came before both sums were read.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tt_shm_os::this_thread;

/// Threads that call one allocator. If there are more, it is not compared any more.
pub(crate) const PLACES: usize = 64;

/// Where the place of a thread is, or is looked for first.
#[inline]
pub(crate) fn place_of(thread: u64) -> usize {
    // Threads are megabytes apart, so these bits differ.
    ((thread ^ thread >> 20) as usize >> 10) % PLACES
}

/// The calls of an allocator.
pub(crate) struct Calls {
    places: [Place; PLACES],
    /// There was a thread without a place.
    is_crowded: AtomicBool,
}

/// The calls of a thread, on a cache line of its own. Written only by that thread, or a later one with the same number.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Place {
    /// 0 for nobody.
    thread: AtomicU64,
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Calls {
    pub(crate) fn new() -> Calls {
        Calls { places: std::array::from_fn(|_| Place::default()), is_crowded: AtomicBool::new(false) }
    }

    /// A call begins. `None` if there is no place for this thread.
    #[inline]
    pub(crate) fn begin(&self) -> Option<&Place> {
        let thread = this_thread();
        let first = place_of(thread);
        let place = &self.places[first];
        let place =
            if place.thread.load(Ordering::Relaxed) == thread { place } else { self.find(thread, first)? };
        place.begun.store(place.begun.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Some(place)
    }

    #[cold]
    fn find(&self, thread: u64, first: usize) -> Option<&Place> {
        for step in 0..PLACES {
            let place = &self.places[(first + step) % PLACES];
            let taken = place.thread.compare_exchange(0, thread, Ordering::Relaxed, Ordering::Relaxed);
            if taken.is_ok() || taken == Err(thread) {
                return Some(place);
            }
        }
        self.is_crowded.store(true, Ordering::Relaxed);
        None
    }

    /// What is compared in the middle of the only call that is on its way, that of `own`; `None` if there were others.
    pub(crate) fn alone<R>(&self, own: &Place, compare: impl FnOnce() -> Option<R>) -> Option<R> {
        let before = self.begun_by_others(own, |place, begun| {
            // Acquire: pairs with the Release in `end`.
            place.ended.load(Ordering::Acquire) == begun
        })?;
        let found = compare()?;
        let after = self.begun_by_others(own, |_, _| true)?;
        (before == after && own.is_alone()).then_some(found)
    }

    /// The number of calls of all others that have begun; `None` if one of them is not as expected.
    fn begun_by_others(&self, own: &Place, is_fine: impl Fn(&Place, u64) -> bool) -> Option<u64> {
        if self.is_crowded.load(Ordering::Relaxed) {
            return None;
        }
        let others = self.places.iter().filter(|place| !std::ptr::eq(*place, own));
        others
            .map(|place| {
                let begun = place.begun.load(Ordering::Relaxed);
                is_fine(place, begun).then_some(begun)
            })
            .sum()
    }
}

impl Place {
    /// Whether it is time for a comparison: these bits of the number of the thread's calls are 0.
    #[inline]
    pub(crate) fn is_due(&self, mask: u64) -> bool {
        (self.begun.load(Ordering::Relaxed) - 1) & mask == 0
    }

    /// Whether this thread is in one call, and not in one inside another.
    fn is_alone(&self) -> bool {
        self.begun.load(Ordering::Relaxed) - self.ended.load(Ordering::Relaxed) == 1
    }

    /// The call has ended.
    #[inline]
    pub(crate) fn end(&self) {
        // Release: pairs with the Acquire in `alone`.
        self.ended.store(self.ended.load(Ordering::Relaxed) + 1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn a_comparison_counts_if_no_other_call_is_on_its_way() {
        let calls = Calls::new();
        let own = calls.begin().unwrap();
        assert_eq!(calls.alone(own, || Some(1)), Some(1));
        let (inside, go) = (Barrier::new(2), Barrier::new(2));
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let place = calls.begin().unwrap();
                inside.wait();
                go.wait();
                place.end();
            });
            inside.wait();
            assert_eq!(calls.alone(own, || Some(2)), None);
            go.wait();
        });
        assert_eq!(calls.alone(own, || Some(3)), Some(3));
        let meanwhile = || {
            let call = || calls.begin().unwrap().end();
            std::thread::scope(|threads| _ = threads.spawn(call));
            Some(4)
        };
        assert_eq!(calls.alone(own, meanwhile), None);
        own.end();
    }

    #[test]
    fn a_call_inside_another_is_not_compared() {
        let calls = Calls::new();
        let outer = calls.begin().unwrap();
        let inner = calls.begin().unwrap();
        assert_eq!(calls.alone(inner, || Some(1)), None);
        inner.end();
        assert_eq!(calls.alone(outer, || Some(1)), Some(1));
        outer.end();
    }

    #[test]
    fn comparisons_are_due_at_the_first_call_and_at_every_so_many() {
        let calls = Calls::new();
        let due = |_| {
            let place = calls.begin().unwrap();
            place.end();
            place.is_due(3)
        };
        assert_eq!((0..6).map(due).collect::<Vec<_>>(), [true, false, false, false, true, false]);
    }

    #[test]
    fn with_more_threads_than_places_nothing_is_compared() {
        let calls = Calls::new();
        let all = Barrier::new(PLACES + 1);
        let without: usize = std::thread::scope(|threads| {
            let call = || {
                let place = calls.begin();
                all.wait();
                usize::from(place.is_none())
            };
            let threads: Vec<_> = (0..PLACES + 1).map(|_| threads.spawn(call)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(without, 1);
        assert_eq!(calls.alone(&calls.places[0], || Some(1)), None);
    }
}
