//! A mutex that detects when it has been forked, and costs a thread that uses it alone next to nothing.
//!
//! Its lock ([`crate::bias`]) lies on a page that the kernel wipes in a forked child (MADV_WIPEONFORK). A child that
//! finds it wiped knows that everything behind the lock belongs to its parent: possibly in the middle of a change, and
//! with a mapping that the child does not have. It creates a new value of its own and forgets the old one without
//! touching it. If it cannot, it has no value from then on.

use std::cell::UnsafeCell;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_utils::Backoff;
use rustix::thread::futex::{self, Timespec};

use crate::bias::{BIASED, Cell, ENDED, FREE, Hold, NO_VALUE, Platform, State, WIPED};
use crate::thread::{allow_heavy_fences, heavy_fence, light_fence, this_thread};
use crate::wipe::{WipePage, Wipeable};

/// The longest sleep before a waiter checks again, see [`crate::bias::Hold`].
const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
/// A store is seen by all cores within microseconds.
const STORES_ARE_SEEN: Duration = Duration::from_millis(10);
/// The threads that may have a bias, one after the other. Others find an ordinary lock.
const SEATS: usize = 128;

/// The real lock.
pub(crate) struct Linux;

type Lock = State<Linux, SEATS>;

// SAFETY: it is atomic integers throughout.
unsafe impl<const SEATS: usize> Wipeable for State<Linux, SEATS> {}

macro_rules! cells {
    ($($atomic:ident of $integer:ident),*) => {$(
        impl Cell<$integer> for $atomic {
            #[inline(always)]
            fn load(&self) -> $integer {
                $atomic::load(self, Ordering::Relaxed)
            }
            #[inline(always)]
            fn load_acquire(&self) -> $integer {
                $atomic::load(self, Ordering::Acquire)
            }
            #[inline(always)]
            fn store(&self, value: $integer) {
                $atomic::store(self, value, Ordering::Relaxed);
            }
            #[inline(always)]
            fn store_release(&self, value: $integer) {
                $atomic::store(self, value, Ordering::Release);
            }
        }
    )*};
}

cells!(AtomicU32 of u32, AtomicU64 of u64);

impl Platform for Linux {
    type U32 = AtomicU32;
    type U64 = AtomicU64;
    type Patience = Backoff;

    #[inline]
    fn replace(word: &AtomicU32, from: u32, to: u32) -> bool {
        word.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn count(sleepers: &AtomicU32, change: i32) {
        sleepers.fetch_add(change.cast_unsigned(), Ordering::SeqCst);
    }

    #[inline(always)]
    fn light_fence() {
        light_fence();
    }

    fn heavy_fence() -> bool {
        heavy_fence()
    }

    /// Not by std's sleep, which panics in a sandbox that refuses the call, and is a place where `tt-smi detach` takes a
    /// thread for one that holds no lock.
    fn wait_for_stores() {
        let (begun, nobody_wakes) = (Instant::now(), AtomicU32::new(0));
        while begun.elapsed() < STORES_ARE_SEEN {
            Linux::sleep(&nobody_wakes, 0);
        }
    }

    /// An emit holds the lock for tens of nanoseconds: spin, then yield, before going to sleep.
    fn pause(backoff: &mut Backoff) -> bool {
        backoff.snooze();
        !backoff.is_completed()
    }

    fn sleep(word: &AtomicU32, value: u32) {
        // Any error (a signal, a changed word, the timeout) means: check again.
        let _ = futex::wait(word, futex::Flags::PRIVATE, value, Some(&NAP));
    }

    fn wake(word: &AtomicU32) {
        let _ = futex::wake(word, futex::Flags::PRIVATE, 1);
    }
}

/// A mutex that notices that it was forked, and costs a thread that uses it alone next to nothing.
///
/// A forked child finds it without a value: whatever was behind the lock is its parent's. The next use makes a value of its
/// own, or there is none from then on.
///
/// ```
/// let counter = tt_shm_os::ForkMutex::new(1)?;
/// assert_eq!(counter.with(|| Some(0), |count| *count + 1), Some(2));
/// counter.end();
/// assert_eq!(counter.with(|| Some(0), |count| *count), None);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct ForkMutex<T> {
    lock: WipePage<Lock>,
    /// Boxed: a child must be able to replace the value by one store, without moving a torn one.
    value: UnsafeCell<ManuallyDrop<Box<T>>>,
    /// Not on the page: what has ended has ended in a child, too.
    ended: AtomicBool,
}

// SAFETY: the value is reached only through with(), try_with(), end(), get_mut() and drop(), which give one thread at a time
// access to it; so sharing the mutex needs no more than sending the value between threads.
unsafe impl<T: Send> Sync for ForkMutex<T> {}

impl<T> ForkMutex<T> {
    /// A mutex with a value. The first of a process takes some milliseconds if it has several threads. Fails if the kernel has no
    /// page that forks wipe.
    pub fn new(value: T) -> io::Result<ForkMutex<T>> {
        let lock: WipePage<Lock> = WipePage::new()?;
        lock.get().set(FREE);
        lock.get().allow_bias(allow_heavy_fences());
        let value = UnsafeCell::new(ManuallyDrop::new(Box::new(value)));
        Ok(ForkMutex { lock, value, ended: AtomicBool::new(false) })
    }

    /// Runs `work` on the value. In a forked child, runs it on a new value made by `remake`, if it can be
    /// made. `None` if there is no value.
    #[inline]
    pub fn with<R>(&self, remake: impl FnOnce() -> Option<T>, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.lock(remake).map(|mut value| work(&mut value))
    }

    /// The same for whoever wants to hold the lock for some statements.
    #[inline]
    pub fn lock(&self, remake: impl FnOnce() -> Option<T>) -> Option<ForkGuard<'_, T>> {
        let (found, hold) = self.lock.get().enter(this_thread());
        let mut hold = hold?;
        if found == WIPED {
            let Some(new) = self.remade(remake) else {
                hold.to = NO_VALUE;
                return None;
            };
            self.lock.get().allow_bias(allow_heavy_fences());
            // SAFETY: we hold the lock, so nobody else uses the cell; the old box is overwritten, not
            // dropped, because its contents are the parent's.
            unsafe { self.value.get().write(new) };
            // Not before: had `remake` panicked, the value would still be the parent's.
            hold.to = FREE;
        }
        // SAFETY: we hold the lock until `hold` is dropped, which is when the guard is.
        let value = unsafe { &mut *self.value.get() };
        Some(ForkGuard { value, _hold: hold })
    }

    /// Runs `work` on the value if nobody else is using it, without ever waiting; for signal handlers, too. If the handler
    /// interrupted its own thread in [`ForkMutex::with`], the mutex is busy.
    ///
    /// A forked child that has not made its value yet finds it busy as well, and nothing is changed: making one is more
    /// than a signal handler may do.
    pub fn try_with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Result<R, TryWithError> {
        let hold = self.lock.get().try_enter(this_thread()).map_err(|state| match state {
            NO_VALUE | ENDED => TryWithError::NoValue,
            WIPED if self.has_ended() => TryWithError::NoValue,
            _ => TryWithError::Busy,
        })?;
        // SAFETY: we hold the lock until `hold` is dropped, which is when the guard is.
        let value = unsafe { &mut *self.value.get() };
        Ok(work(&mut ForkGuard { value, _hold: hold }))
    }

    /// Drops the value, for good. A forked child that has none of its own never gets one.
    pub fn end(&self) {
        let (found, hold) = self.lock.get().enter_shared(this_thread());
        let Some(mut hold) = hold else { return };
        hold.to = ENDED;
        self.ended.store(true, Ordering::Relaxed);
        if found == FREE {
            // SAFETY: we hold the lock, so nobody else uses the cell, and nobody ever will: it will be ENDED.
            let value = unsafe { &mut *self.value.get() };
            // SAFETY: as above; it is not dropped again, since the lock is not FREE.
            unsafe { ManuallyDrop::drop(value) };
        }
    }

    /// Whether the value was dropped by [`ForkMutex::end`].
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// The value of a forked child, if it is to have one and it can be made. Kept out of line so that the hot path's
    /// stack frame needs no room for a value.
    #[cold]
    #[inline(never)]
    fn remade(&self, remake: impl FnOnce() -> Option<T>) -> Option<ManuallyDrop<Box<T>>> {
        if self.has_ended() { None } else { remake().map(Box::new).map(ManuallyDrop::new) }
    }

    /// The value of a mutex to which there is no other reference. In a forked child, a new one made by
    /// `remake`, if it can be made.
    #[inline]
    pub fn get_mut(&mut self, remake: impl FnOnce() -> Option<T>) -> Option<&mut T> {
        if self.lock.get().now() != FREE {
            self.prepare(remake)?;
        }
        Some(self.value.get_mut())
    }

    /// Sees to it that there is a value, and that the lock is free.
    #[cold]
    fn prepare(&mut self, remake: impl FnOnce() -> Option<T>) -> Option<()> {
        let lock = self.lock.get();
        let state = match lock.now() {
            WIPED => match self.remade(remake) {
                Some(new) => {
                    lock.allow_bias(allow_heavy_fences());
                    // Without dropping the old one: it is the parent's.
                    *self.value.get_mut() = new;
                    FREE
                }
                None => NO_VALUE,
            },
            NO_VALUE => NO_VALUE,
            ENDED => ENDED,
            // Biased: nobody else has a reference, so nobody is inside.
            _ => FREE,
        };
        lock.set(state);
        (state == FREE).then_some(())
    }
}

/// Why [`ForkMutex::try_with`] did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryWithError {
    /// Somebody is using the value, or this is a forked child that has not made its own yet.
    Busy,
    /// There is no value, and there will be none.
    NoValue,
}

/// Access to the value of a [`ForkMutex`] until it is dropped.
pub struct ForkGuard<'a, T> {
    value: &'a mut T,
    _hold: Hold<'a, Linux>,
}

impl<T> Deref for ForkGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> DerefMut for ForkGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.value
    }
}

impl<T> Drop for ForkMutex<T> {
    fn drop(&mut self) {
        let state = self.lock.get().now();
        // Otherwise it is the parent's, or gone.
        if state == FREE || state & BIASED != 0 {
            // SAFETY: the value is this process's own and is not used again.
            unsafe { ManuallyDrop::drop(self.value.get_mut()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bias::HELD;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    fn is_biased<T>(lock: &ForkMutex<T>) -> bool {
        lock.lock.get().now() & BIASED != 0
    }

    /// Whether the first thread that uses it has the bias, as it must where there are heavy fences.
    fn is_biased_at_first<T>(lock: &ForkMutex<T>) -> bool {
        lock.with(|| None, |_| ()).is_some() && is_biased(lock) == allow_heavy_fences()
    }

    fn used<T: Copy>(lock: &ForkMutex<T>) -> Option<T> {
        lock.with(|| unreachable!(), |value| *value)
    }

    #[test]
    fn a_value_that_has_ended_is_dropped_once_and_never_used_again() {
        let value = Arc::new(());
        let lock = ForkMutex::new(value.clone()).unwrap();
        assert!(lock.with(|| None, |_| ()).is_some());
        std::thread::scope(|threads| (0..4).for_each(|_| _ = threads.spawn(|| lock.end())));
        assert_eq!((Arc::strong_count(&value), lock.has_ended()), (1, true));
        assert!(lock.with(|| Some(value.clone()), |_| ()).is_none());
        drop(lock);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn the_thread_with_the_bias_ends_it_as_any_other() {
        let value = Arc::new(());
        let lock = ForkMutex::new(value.clone()).unwrap();
        assert!(is_biased_at_first(&lock));
        lock.end();
        assert_eq!((Arc::strong_count(&value), lock.has_ended()), (1, true));
    }

    #[test]
    fn a_biased_value_is_dropped_with_its_mutex() {
        let value = Arc::new(());
        let lock = ForkMutex::new(value.clone()).unwrap();
        assert!(is_biased_at_first(&lock));
        drop(lock);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn threads_exclude_each_other() {
        let lock = Arc::new(ForkMutex::new((0u64, 0u64)).unwrap());
        let work = |(a, b): &mut (u64, u64)| {
            *a += 1;
            *b += *a % 2;
        };
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let lock = lock.clone();
                std::thread::spawn(move || (0..50_000).for_each(|_| _ = lock.with(|| unreachable!(), work)))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(used(&lock), Some((200_000, 100_000)));
    }

    #[test]
    fn the_first_thread_has_the_bias_and_another_takes_it_away() {
        let lock = ForkMutex::new(1).unwrap();
        if !allow_heavy_fences() {
            assert!(used(&lock).is_some() && !is_biased(&lock));
            return;
        }
        assert!(used(&lock).is_some() && is_biased(&lock));
        std::thread::scope(|threads| {
            threads.spawn(|| {
                assert_eq!(used(&lock), Some(1));
                assert!(!is_biased(&lock), "once is not enough");
                // As often as it takes, and once more than the first time, which began the row.
                (0..1 << 10).for_each(|_| assert_eq!(used(&lock), Some(1)));
                assert!(is_biased(&lock));
            });
        });
        assert_eq!(used(&lock), Some(1));
        assert!(!is_biased(&lock));
    }

    #[test]
    fn without_heavy_fences_nobody_gets_a_bias() {
        let lock = ForkMutex::new(1).unwrap();
        lock.lock.get().allow_bias(false);
        (0..10_000).for_each(|_| _ = used(&lock));
        assert!(!is_biased(&lock));
    }

    #[test]
    fn threads_come_and_go_beyond_the_seats_that_there_are() {
        let lock = ForkMutex::new(0u64).unwrap();
        // At the same time, so that their numbers differ.
        std::thread::scope(|threads| {
            for _ in 0..2 * SEATS {
                threads
                    .spawn(|| (0..2_000).for_each(|_| _ = lock.with(|| unreachable!(), |value| *value += 1)));
            }
        });
        assert_eq!(used(&lock), Some(2 * SEATS as u64 * 2_000));
    }

    #[test]
    fn a_panic_releases_the_lock() {
        let lock = ForkMutex::new(1).unwrap();
        for _ in 0..2 {
            let work = || lock.with(|| unreachable!(), |_| panic!("on purpose"));
            assert!(catch_unwind(AssertUnwindSafe(work)).is_err());
            assert_eq!(used(&lock), Some(1));
        }
    }

    #[test]
    fn an_exclusive_owner_finds_a_biased_lock_free() {
        let mut lock = ForkMutex::new(1).unwrap();
        used(&lock);
        assert_eq!(lock.get_mut(|| unreachable!()), Some(&mut 1));
        assert_eq!(lock.lock.get().now(), FREE);
    }

    /// What a signal handler finds that interrupted its own thread inside.
    #[test]
    fn a_thread_that_is_inside_finds_it_busy() {
        let lock = ForkMutex::new(1).unwrap();
        let nested = || lock.with(|| unreachable!(), |_| lock.try_with(|value| *value));
        for allowed in [allow_heavy_fences(), false] {
            // The first to enter gets the bias, if there is one.
            lock.lock.get().set(FREE);
            lock.lock.get().allow_bias(allowed);
            for _ in 0..3 {
                assert_eq!(nested(), Some(Err(TryWithError::Busy)));
                assert_eq!(is_biased(&lock), allowed);
                assert_eq!(lock.try_with(|value| *value), Ok(1));
                let twice = lock.try_with(|_| lock.try_with(|value| *value));
                assert_eq!(twice, Ok(Err(TryWithError::Busy)));
            }
        }
    }

    #[test]
    fn one_that_tries_takes_the_bias_of_a_thread_that_is_not_inside() {
        let lock = ForkMutex::new(1).unwrap();
        assert!(is_biased_at_first(&lock));
        std::thread::scope(|threads| {
            let tries = threads.spawn(|| lock.try_with(|value| *value += 1));
            assert_eq!(tries.join().unwrap(), Ok(()));
        });
        assert_eq!(lock.lock.get().now(), FREE);
        assert_eq!(used(&lock), Some(2));
    }

    #[test]
    fn one_that_tries_leaves_a_thread_that_is_inside_its_bias() {
        let lock = ForkMutex::new(1).unwrap();
        assert!(is_biased_at_first(&lock));
        let busy = || std::thread::scope(|threads| threads.spawn(|| lock.try_with(|_| ())).join().unwrap());
        let found = lock.with(
            || unreachable!(),
            |value| {
                *value += 1;
                (0..3).map(|_| busy()).collect::<Vec<_>>()
            },
        );
        assert_eq!(found, Some(vec![Err(TryWithError::Busy); 3]));
        assert_eq!(is_biased(&lock), allow_heavy_fences());
        assert_eq!((busy(), used(&lock)), (Ok(()), Some(2)));
    }

    /// The one that waits finds the lock held for a moment by the one that tries, and goes on sleeping or is woken.
    #[test]
    fn one_that_waits_gets_it_whatever_others_try() {
        let lock = ForkMutex::new(0).unwrap();
        assert!(is_biased_at_first(&lock));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let _ = lock.try_with(|_| ());
                }
            });
            let waits = threads.spawn(|| lock.with(|| unreachable!(), |value| *value += 1));
            while !waits.is_finished() {
                lock.with(|| unreachable!(), |_| std::thread::yield_now());
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!(used(&lock), Some(1));
    }

    #[test]
    fn trying_changes_nothing_where_there_is_no_value() {
        let lock = ForkMutex::new(1).unwrap();
        for (state, error) in [
            (WIPED, TryWithError::Busy),
            (HELD, TryWithError::Busy),
            (NO_VALUE, TryWithError::NoValue),
            (ENDED, TryWithError::NoValue),
        ] {
            lock.lock.get().set(state);
            assert_eq!((lock.try_with(|_| ()), lock.lock.get().now()), (Err(error), state));
        }
        // A child of a process in which it ended.
        lock.lock.get().set(FREE);
        lock.end();
        lock.lock.get().set(WIPED);
        assert_eq!(lock.try_with(|_| ()), Err(TryWithError::NoValue));
    }

    /// Otherwise the next call would use what belongs to the parent.
    #[test]
    fn a_value_that_could_not_be_remade_is_tried_again() {
        let lock = ForkMutex::new(1).unwrap();
        lock.lock.get().set(WIPED);
        let work = || lock.with(|| panic!("on purpose"), |_| ());
        assert!(catch_unwind(AssertUnwindSafe(work)).is_err());
        assert_eq!(lock.lock.get().now(), WIPED);
        assert_eq!(lock.with(|| Some(2), |value| *value), Some(2));
    }

    #[test]
    fn without_a_value_of_its_own_a_child_has_none_for_good() {
        for exclusive in [false, true] {
            let mut lock = ForkMutex::new(1).unwrap();
            lock.lock.get().set(WIPED);
            let found =
                if exclusive { lock.get_mut(|| None).copied() } else { lock.with(|| None, |value| *value) };
            assert_eq!(found, None);
            assert_eq!(used(&lock), None);
            assert_eq!(lock.get_mut(|| unreachable!()), None);
        }
    }
}
