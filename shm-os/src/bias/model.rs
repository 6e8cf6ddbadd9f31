//! The lock under loom: the interleavings of an owner, an evictor, and one that only tries, with up to three preemptions, and both halves of the
//! fence as the full fences that they stand for together. That membarrier makes them so is the kernel's word; see docs/soundness.md.

use super::{Cell, Platform, State};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The lock of the model, with or without the two halves of the fence, and with leaving by a release store or not.
struct Model<const LIGHT: bool, const HEAVY: bool, const RELEASE: bool>;

macro_rules! cells {
    ($($atomic:ident of $integer:ident),*) => {$(
        impl Cell<$integer> for $atomic {
            fn load(&self) -> $integer {
                $atomic::load(self, Ordering::Relaxed)
            }
            fn load_acquire(&self) -> $integer {
                $atomic::load(self, Ordering::Acquire)
            }
            fn store(&self, value: $integer) {
                $atomic::store(self, value, Ordering::Relaxed);
            }
            fn store_release(&self, value: $integer) {
                $atomic::store(self, value, Ordering::Release);
            }
        }
    )*};
}

cells!(AtomicU32 of u32, AtomicU64 of u64);

/// As above, and released by a relaxed store if it is to be broken.
struct Word<const RELEASE: bool>(AtomicU32);

impl<const RELEASE: bool> Cell<u32> for Word<RELEASE> {
    fn load(&self) -> u32 {
        Cell::load(&self.0)
    }
    fn load_acquire(&self) -> u32 {
        self.0.load_acquire()
    }
    fn store(&self, value: u32) {
        Cell::store(&self.0, value);
    }
    fn store_release(&self, value: u32) {
        if RELEASE { self.0.store_release(value) } else { Cell::store(&self.0, value) }
    }
}

impl<const LIGHT: bool, const HEAVY: bool, const RELEASE: bool> Platform for Model<LIGHT, HEAVY, RELEASE> {
    type U32 = Word<RELEASE>;
    type U64 = AtomicU64;
    type Patience = ();
    // So that the evictor gets the bias while the first owner still tries.
    const FIRST_STREAK: u32 = 1;
    const LONGEST_STREAK: u32 = 1;

    fn replace(word: &Word<RELEASE>, from: u32, to: u32) -> bool {
        word.0.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
    fn count(_: &Word<RELEASE>, _: i32) {}
    fn light_fence() {
        if LIGHT {
            fence(Ordering::SeqCst);
        }
    }
    fn heavy_fence() -> bool {
        if HEAVY {
            fence(Ordering::SeqCst);
        }
        true
    }
    fn wait_for_stores() {}
    fn pause((): &mut ()) -> bool {
        loom::thread::yield_now();
        true
    }
    fn sleep(_: &Word<RELEASE>, _: u32) {}
    fn wake(_: &Word<RELEASE>) {}
}

/// A lock and what it guards. loom complains if two threads use that at the same time, or one does not see what
/// another did.
struct Guarded<P: Platform> {
    state: State<P, 4>,
    value: UnsafeCell<u32>,
}

// SAFETY: loom runs one thread at a time, and its cell reports who is there when another is.
unsafe impl<P: Platform> Sync for Guarded<P> {}
// SAFETY: as above.
unsafe impl<P: Platform> Send for Guarded<P> {}

impl<const LIGHT: bool, const HEAVY: bool, const RELEASE: bool> Guarded<Model<LIGHT, HEAVY, RELEASE>> {
    fn new() -> Arc<Self> {
        let state = State::new(|| Word(AtomicU32::new(0)), || AtomicU64::new(0));
        state.set(super::FREE);
        state.allow_bias(true);
        Arc::new(Guarded { state, value: UnsafeCell::new(0) })
    }

    fn add(&self, thread: u64) {
        let (found, hold) = self.state.enter(thread);
        assert!(found == super::FREE && hold.is_some());
        self.add_inside();
    }

    /// Returns how often it added: once, or not at all if the lock was busy.
    fn try_add(&self, thread: u64) -> u32 {
        match self.state.try_enter(thread) {
            Ok(_hold) => {
                self.add_inside();
                1
            }
            Err(state) => {
                assert_eq!(state, super::HELD);
                0
            }
        }
    }

    fn add_inside(&self) {
        // SAFETY: the lock is held; if that is not so, loom says it.
        self.value.with_mut(|value| unsafe { *value += 1 });
    }
}

/// Thread 1 has the bias and uses it, thread 2 takes it away, and perhaps gets it.
fn check<const LIGHT: bool, const HEAVY: bool, const RELEASE: bool>() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let lock = Guarded::<Model<LIGHT, HEAVY, RELEASE>>::new();
        lock.add(1);
        let (owner, evictor) = (lock.clone(), lock.clone());
        let owner = loom::thread::spawn(move || (0..2).for_each(|_| owner.add(1)));
        let evictor = loom::thread::spawn(move || (0..2).for_each(|_| evictor.add(2)));
        owner.join().unwrap();
        evictor.join().unwrap();
        // SAFETY: both have ended.
        let sum = lock.value.with(|value| unsafe { *value });
        assert_eq!(sum, 5, "lost");
    });
}

/// Thread 1 has the bias and uses it. Two others try to enter: 3, which then takes the bias away as anybody does, and 4, if
/// there is `another`. Only one of a check may wait for long: loom does not end while two let each other run.
fn check_trying<const LIGHT: bool, const HEAVY: bool, const RELEASE: bool>(another: bool) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(if another { 2 } else { 3 });
    model.check(move || {
        let lock = Guarded::<Model<LIGHT, HEAVY, RELEASE>>::new();
        lock.add(1);
        let [owner, trier] = [0; 2].map(|_| lock.clone());
        let owner = loom::thread::spawn(move || (0..2).for_each(|_| owner.add(1)));
        let trier = loom::thread::spawn(move || {
            let added = trier.try_add(3);
            if another {
                return added;
            }
            trier.add(3);
            added + 1
        });
        let mut added = if another { lock.try_add(4) } else { 0 };
        owner.join().unwrap();
        added += trier.join().unwrap();
        // SAFETY: both have ended.
        let sum = lock.value.with(|value| unsafe { *value });
        assert_eq!(sum, 3 + added, "lost");
        assert_eq!(lock.try_add(5), 1, "busy though nobody is inside");
    });
}

/// The complaint must be that of the check or of loom's cell, not one about the model.
fn fails(check: fn()) {
    let panic = catch_unwind(AssertUnwindSafe(check)).expect_err("a broken lock passed its check");
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string())).unwrap_or_default();
    assert!(["lost", "Causality violation"].iter().any(|why| text.contains(why)), "{text}");
}

#[test]
fn owner_and_evictor_are_never_inside_together() {
    check::<true, true, true>();
}

#[test]
fn without_the_owners_half_of_the_fence_both_are_inside() {
    fails(check::<false, true, true>);
}

#[test]
fn without_the_evictors_half_of_the_fence_both_are_inside() {
    fails(check::<true, false, true>);
}

#[test]
fn without_release_the_next_does_not_see_what_was_done() {
    fails(check::<true, true, false>);
}

#[test]
fn one_that_tries_is_never_inside_with_another() {
    check_trying::<true, true, true>(false);
}

#[test]
fn two_that_try_are_never_inside_with_another() {
    check_trying::<true, true, true>(true);
}

#[test]
fn one_that_tries_needs_both_halves_of_the_fence_and_the_release() {
    fails(|| check_trying::<false, true, true>(true));
    fails(|| check_trying::<true, false, true>(true));
    fails(|| check_trying::<true, true, false>(true));
}
