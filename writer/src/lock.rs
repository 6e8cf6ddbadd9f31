//! A mutex that detects when it has been forked.
//!
//! Its word lies on a page that the kernel wipes in a forked child (MADV_WIPEONFORK). A child that finds it
//! wiped knows that everything behind the lock belongs to its parent: possibly in the middle of a change, and
//! with a mapping that the child does not have. It creates a new value of its own and forgets the old one
//! without touching it. If it cannot, it has no value from then on.

use crossbeam_utils::Backoff;
use rustix::thread::futex::{self, Timespec};
use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU32, Ordering};
use tt_shm_os::WipePage;

/// The page was wiped: this process is a child that has not used the lock yet.
const WIPED: u32 = 0;
const FREE: u32 = 1;
const HELD: u32 = 2;
/// This process is a child that could not create a value of its own.
const NO_STATE: u32 = 3;
/// The value was dropped, for good.
const ENDED: u32 = 4;

/// The longest sleep before a waiter checks again, see [`Unlock`].
const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// See the [module documentation](self).
pub(crate) struct ForkMutex<T> {
    page: WipePage,
    /// Boxed: a child must be able to replace the value by one store, without moving a torn one.
    value: UnsafeCell<ManuallyDrop<Box<T>>>,
}

// SAFETY: the value is reached only through with() and get_mut(), which give one thread at a time
// access to it; so sharing the mutex needs no more than sending the value between threads.
unsafe impl<T: Send> Sync for ForkMutex<T> {}

impl<T> ForkMutex<T> {
    pub(crate) fn new(value: T) -> std::io::Result<ForkMutex<T>> {
        let page = WipePage::new()?;
        page.words()[0].store(FREE, Ordering::Relaxed);
        Ok(ForkMutex { page, value: UnsafeCell::new(ManuallyDrop::new(Box::new(value))) })
    }

    #[inline]
    fn word(&self) -> &AtomicU32 {
        &self.page.words()[0]
    }

    #[inline]
    fn sleepers(&self) -> &AtomicU32 {
        &self.page.words()[1]
    }

    /// Whether this process is a forked child that has not used the lock yet.
    pub(crate) fn is_wiped(&self) -> bool {
        self.word().load(Ordering::Relaxed) == WIPED
    }

    /// Runs `work` on the value. In a forked child, runs it on a new value made by `remake`, if it can be
    /// made.
    #[inline]
    pub(crate) fn with<R>(
        &self,
        remake: impl FnOnce() -> Option<T>,
        work: impl FnOnce(&mut T) -> R,
    ) -> Option<R> {
        let word = self.word();
        // Acquire: pairs with the release in Unlock::drop().
        let free = word.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok();
        let found = if free { FREE } else { self.lock_slowly() };
        if matches!(found, NO_STATE | ENDED) {
            return None;
        }
        let mut unlock = Unlock { word, sleepers: self.sleepers(), to: FREE };
        if found == WIPED {
            // If `remake` panics, the value is still the parent's.
            unlock.to = WIPED;
            let Some(new) = boxed(remake) else {
                unlock.to = NO_STATE;
                return None;
            };
            // SAFETY: we hold the lock, so nobody else uses the cell; the old box is overwritten, not
            // dropped, because its contents are the parent's.
            unsafe { self.value.get().write(new) };
            unlock.to = FREE;
        }
        // SAFETY: we hold the lock until `unlock` is dropped.
        let value = unsafe { &mut *self.value.get() };
        Some(work(value))
    }

    /// Drops the value, for good. A forked child that has none of its own never gets one.
    pub(crate) fn end(&self) {
        let found = self.lock_slowly();
        if matches!(found, NO_STATE | ENDED) {
            return;
        }
        let _unlock = Unlock { word: self.word(), sleepers: self.sleepers(), to: ENDED };
        if found == FREE {
            // SAFETY: we hold the lock, so nobody else uses the cell, and nobody ever will: the word becomes ENDED.
            let value = unsafe { &mut *self.value.get() };
            // SAFETY: as above; it is not dropped again, since the word is not FREE.
            unsafe { ManuallyDrop::drop(value) };
        }
    }

    /// Whether the value was dropped by [`ForkMutex::end`].
    pub(crate) fn has_ended(&self) -> bool {
        self.word().load(Ordering::Relaxed) == ENDED
    }

    /// Waits for the lock. Returns the state that it was found in; it is held now, unless that is
    /// [`NO_STATE`] or [`ENDED`].
    #[cold]
    fn lock_slowly(&self) -> u32 {
        let word = self.word();
        let take = |from| word.compare_exchange(from, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok();
        // An emit holds the lock for tens of nanoseconds: spin, then yield, before going to sleep.
        let backoff = Backoff::new();
        let look = || match word.load(Ordering::Relaxed) {
            found @ (NO_STATE | ENDED) => Some(found),
            found @ (FREE | WIPED) if take(found) => Some(found),
            _ => None,
        };
        while !backoff.is_completed() {
            match look() {
                Some(found) => return found,
                None => backoff.snooze(),
            }
        }
        self.sleepers().fetch_add(1, Ordering::SeqCst);
        let found = loop {
            match look() {
                Some(found) => break found,
                // Any error (a signal, a changed word, the timeout) means: check again.
                None => _ = futex::wait(word, futex::Flags::PRIVATE, HELD, Some(&NAP)),
            }
        };
        self.sleepers().fetch_sub(1, Ordering::Relaxed);
        found
    }

    /// The value of a mutex to which there is no other reference. In a forked child, a new one made by
    /// `remake`, if it can be made.
    #[inline]
    pub(crate) fn get_mut(&mut self, remake: impl FnOnce() -> Option<T>) -> Option<&mut T> {
        if self.word().load(Ordering::Relaxed) != FREE {
            self.remake(remake)?;
        }
        Some(self.value.get_mut())
    }

    #[cold]
    fn remake(&mut self, remake: impl FnOnce() -> Option<T>) -> Option<()> {
        if self.has_ended() {
            return None;
        }
        let Some(new) = self.is_wiped().then(|| boxed(remake)).flatten() else {
            self.word().store(NO_STATE, Ordering::Relaxed);
            return None;
        };
        *self.value.get_mut() = new;
        self.word().store(FREE, Ordering::Relaxed);
        Some(())
    }
}

/// Kept out of line so that the hot path's stack frame needs no room for a value.
#[cold]
#[inline(never)]
fn boxed<T>(make: impl FnOnce() -> Option<T>) -> Option<ManuallyDrop<Box<T>>> {
    make().map(Box::new).map(ManuallyDrop::new)
}

impl<T> Drop for ForkMutex<T> {
    fn drop(&mut self) {
        // Otherwise it is the parent's.
        if self.word().load(Ordering::Relaxed) == FREE {
            // SAFETY: the value is this process's own and is not used again.
            unsafe { ManuallyDrop::drop(self.value.get_mut()) };
        }
    }
}

/// Releases the lock by a plain store. An exchange would tell for certain whether somebody sleeps, but it
/// waits until every store of the emit has left the core, which costs as much as the emit. So a sleeper that
/// came at the wrong moment may be overlooked; it wakes by itself after a [`NAP`].
struct Unlock<'a> {
    word: &'a AtomicU32,
    sleepers: &'a AtomicU32,
    /// The new value of the word.
    to: u32,
}

impl Drop for Unlock<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the acquire of the next holder.
        self.word.store(self.to, Ordering::Release);
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            // It is fine if nobody is asleep.
            let _ = futex::wake(self.word, futex::Flags::PRIVATE, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

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
    fn threads_exclude_each_other() {
        let lock = Arc::new(ForkMutex::new((0u64, 0u64)).unwrap());
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let lock = lock.clone();
                std::thread::spawn(move || {
                    for _ in 0..50_000 {
                        lock.with(
                            || unreachable!(),
                            |(a, b)| {
                                *a += 1;
                                *b += *a % 2;
                            },
                        );
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(lock.with(|| unreachable!(), |value| *value), Some((200_000, 100_000)));
    }

    #[test]
    fn a_panic_releases_the_lock() {
        let lock = ForkMutex::new(1).unwrap();
        let work = || lock.with(|| unreachable!(), |_| panic!("on purpose"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err());
        assert_eq!(lock.with(|| unreachable!(), |value| *value), Some(1));
    }

    /// Otherwise the next call would use what belongs to the parent.
    #[test]
    fn a_value_that_could_not_be_remade_is_tried_again() {
        let lock = ForkMutex::new(1).unwrap();
        lock.word().store(WIPED, Ordering::Relaxed);
        let work = || lock.with(|| panic!("on purpose"), |_| ());
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err());
        assert!(lock.is_wiped());
        assert_eq!(lock.with(|| Some(2), |value| *value), Some(2));
    }

    #[test]
    fn without_a_value_of_its_own_a_child_has_none_for_good() {
        for exclusive in [false, true] {
            let mut lock = ForkMutex::new(1).unwrap();
            lock.word().store(WIPED, Ordering::Relaxed);
            let found =
                if exclusive { lock.get_mut(|| None).copied() } else { lock.with(|| None, |value| *value) };
            assert_eq!(found, None);
            assert_eq!(lock.with(|| unreachable!(), |value| *value), None);
            assert_eq!(lock.get_mut(|| unreachable!()), None);
        }
    }
}
