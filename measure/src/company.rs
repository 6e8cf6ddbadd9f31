//! A workload beside which another thread does the same.

use crate::workload::{Probe, Untimed, Workload};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

/// The other thread sleeps.
const IDLE: u32 = 0;
/// It works.
const BUSY: u32 = 1;
/// It is to go to sleep.
const PAUSING: u32 = 2;
/// It is to end.
const ENDING: u32 = 3;

/// A workload and a companion: while this one runs, a thread of its own repeats the other.
#[derive(Debug)]
pub struct Accompanied<W> {
    /// What is measured.
    pub own: W,
    state: Arc<AtomicU32>,
    companion: Option<JoinHandle<()>>,
}

impl<W: Workload> Accompanied<W> {
    /// Starts the companion, which waits for the first step.
    pub fn new(own: W, mut other: impl Workload + Send + 'static) -> Accompanied<W> {
        let state = Arc::new(AtomicU32::new(IDLE));
        let told = state.clone();
        let work = move || {
            loop {
                match told.load(Ordering::Relaxed) {
                    BUSY => other.step(&mut Untimed),
                    ENDING => return,
                    state => {
                        let paused = state == PAUSING
                            && told
                                .compare_exchange(PAUSING, IDLE, Ordering::Release, Ordering::Relaxed)
                                .is_ok();
                        if paused || state == IDLE {
                            std::thread::park();
                        }
                    }
                }
            }
        };
        Accompanied { own, state, companion: Some(std::thread::spawn(work)) }
    }

    /// Lets the companion work, if it does not.
    #[inline(always)]
    fn accompany(&self) {
        if self.state.load(Ordering::Relaxed) != BUSY {
            self.tell(BUSY);
        }
    }

    #[cold]
    fn tell(&self, state: u32) {
        self.state.store(state, Ordering::Relaxed);
        self.companion.iter().for_each(|companion| companion.thread().unpark());
    }
}

impl<W: Workload> Workload for Accompanied<W> {
    fn events(&self) -> u64 {
        self.own.events()
    }

    #[inline(always)]
    fn step<P: Probe>(&mut self, probe: &mut P) {
        self.accompany();
        self.own.step(probe);
    }

    fn footprint(&self) -> u64 {
        self.own.footprint()
    }

    /// Waits until the companion sleeps: the cases that come next are to run alone.
    fn settle(&mut self) {
        if self.state.load(Ordering::Relaxed) == BUSY {
            self.tell(PAUSING);
        }
        // Acquire: pairs with the Release of the companion.
        while self.state.load(Ordering::Acquire) != IDLE {
            std::thread::yield_now();
        }
        self.own.settle();
    }
}

impl<W> Drop for Accompanied<W> {
    fn drop(&mut self) {
        self.state.store(ENDING, Ordering::Relaxed);
        if let Some(companion) = self.companion.take() {
            companion.thread().unpark();
            // It panicked if a call of its own failed; then the check of the sums fails as well.
            let _ = companion.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Single;
    use std::time::{Duration, Instant};

    #[test]
    fn the_companion_works_only_while_the_other_does() {
        let count = Arc::new(AtomicU32::new(0));
        let counted = count.clone();
        let other = Single(move || _ = counted.fetch_add(1, Ordering::Relaxed));
        let mut pair = Accompanied::new(Single(|| ()), other);
        assert_eq!(count.load(Ordering::Relaxed), 0);
        for _ in 0..3 {
            let (before, begun) = (count.load(Ordering::Relaxed), Instant::now());
            while count.load(Ordering::Relaxed) == before {
                pair.step(&mut Untimed);
                assert!(begun.elapsed() < Duration::from_secs(10), "the companion does nothing");
            }
            pair.settle();
            let paused = count.load(Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(5));
            assert_eq!(count.load(Ordering::Relaxed), paused);
        }
    }
}
