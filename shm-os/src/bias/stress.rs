//! The real lock, with the real fence, between real threads that take the bias from each other all the time; and the same
//! without the fence, which has to go wrong, or it would prove nothing.

use super::{BIASED, FREE, HELD, Hold, Platform, State};
use crate::mutex::Linux;
use crate::thread::{allow_heavy_fences, this_thread};
use crossbeam_utils::Backoff;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How a fence is done: by the kernel, not at all, or refused.
const REAL: u8 = 0;
const MISSING: u8 = 1;
const REFUSED: u8 = 2;

/// The real lock, except that a thread gets the bias back soon.
struct Hasty<const FENCE: u8>;

impl<const FENCE: u8> Platform for Hasty<FENCE> {
    type U32 = AtomicU32;
    type U64 = AtomicU64;
    type Patience = Backoff;
    const FIRST_STREAK: u32 = 2;
    const LONGEST_STREAK: u32 = 2;

    fn replace(word: &AtomicU32, from: u32, to: u32) -> bool {
        Linux::replace(word, from, to)
    }
    fn count(sleepers: &AtomicU32, change: i32) {
        Linux::count(sleepers, change);
    }
    #[inline(always)]
    fn light_fence() {
        Linux::light_fence();
    }
    fn heavy_fence() -> bool {
        match FENCE {
            REAL => Linux::heavy_fence(),
            MISSING => true,
            _ => false,
        }
    }
    fn wait_for_stores() {
        Linux::wait_for_stores();
    }
    fn pause(backoff: &mut Backoff) -> bool {
        Linux::pause(backoff)
    }
    fn sleep(word: &AtomicU32, value: u32) {
        Linux::sleep(word, value);
    }
    fn wake(word: &AtomicU32) {
        Linux::wake(word);
    }
}

/// A lock and a sum that is right only if threads exclude each other.
struct Counter<const FENCE: u8> {
    state: State<Hasty<FENCE>, 16>,
    sum: UnsafeCell<u64>,
    /// Somebody is inside. Not atomic exchanges, which would be fences.
    inside: AtomicBool,
    overlaps: AtomicU32,
}

// SAFETY: the sum is accessed volatile, by one thread at a time if the lock is right; that it is, is what is tested.
unsafe impl<const FENCE: u8> Sync for Counter<FENCE> {}

impl<const FENCE: u8> Counter<FENCE> {
    fn new() -> Counter<FENCE> {
        let state = State::new(|| AtomicU32::new(0), || AtomicU64::new(0));
        state.set(FREE);
        state.allow_bias(true);
        Counter {
            state,
            sum: UnsafeCell::new(0),
            inside: AtomicBool::new(false),
            overlaps: AtomicU32::new(0),
        }
    }

    fn add(&self) {
        let (_, hold) = self.state.enter(this_thread());
        self.add_inside(hold);
    }

    /// Adds unless the lock is busy, and returns whether it did.
    fn try_add(&self) -> bool {
        let hold = self.state.try_enter(this_thread()).ok();
        let is_in = hold.is_some();
        if is_in {
            self.add_inside(hold);
        }
        is_in
    }

    fn add_inside(&self, hold: Option<Hold<'_, Hasty<FENCE>>>) {
        if self.inside.load(Ordering::Relaxed) {
            self.overlaps.fetch_add(1, Ordering::Relaxed);
        }
        self.inside.store(true, Ordering::Relaxed);
        // SAFETY: of this object.
        let sum = unsafe { self.sum.get().read_volatile() };
        // SAFETY: as above.
        unsafe { self.sum.get().write_volatile(sum + 1) };
        self.inside.store(false, Ordering::Relaxed);
        drop(hold);
    }
}

/// Adds in bursts of random length, with stores to memory of its own in between, which keep the next ones waiting in the
/// core. Now and then it only tries. Returns how often it added.
fn work<const FENCE: u8>(counter: &Counter<FENCE>, seed: u64, until: &dyn Fn() -> bool) -> u64 {
    let mut random = fastrand::Rng::with_seed(seed);
    let far: Vec<AtomicU64> = (0..1 << 16).map(|_| AtomicU64::new(0)).collect();
    let mut added = 0;
    while !until() {
        for _ in 0..random.u64(1..40) {
            far[random.usize(..far.len())].store(added, Ordering::Relaxed);
            if random.u8(..8) == 0 {
                added += u64::from(counter.try_add());
            } else {
                counter.add();
                added += 1;
            }
        }
        if random.u8(..4) == 0 {
            std::thread::yield_now();
        }
    }
    added
}

/// Returns how often threads were inside together, and by how much the sum is wrong.
fn stress<const FENCE: u8>(threads: u64, time: Duration) -> (u32, u64) {
    let counter = Counter::<FENCE>::new();
    let begun = Instant::now();
    let until = || begun.elapsed() > time || counter.overlaps.load(Ordering::Relaxed) > 0;
    let added: u64 = std::thread::scope(|scope| {
        let start = |seed| {
            let (counter, until) = (&counter, &until);
            scope.spawn(move || work(counter, seed, until))
        };
        let threads: Vec<_> = (0..threads).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let sum = counter.sum.into_inner();
    (counter.overlaps.into_inner(), added - sum.min(added))
}

#[test]
fn eight_threads_that_take_the_bias_from_each_other_lose_nothing() {
    if !allow_heavy_fences() {
        eprintln!("not tested: this kernel or sandbox refuses membarrier");
        return;
    }
    assert_eq!(stress::<REAL>(8, Duration::from_secs(3)), (0, 0));
}

/// The check above would find it: without the fence two threads are inside together.
#[test]
fn without_the_fence_they_do() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        eprintln!("not tested: one core alone never sees its stores late");
        return;
    }
    let (overlaps, lost) = stress::<MISSING>(2, Duration::from_secs(60));
    assert!(overlaps > 0 || lost > 0, "no overlap in a minute");
}

/// Somebody is inside by its bias when the fence is refused.
#[test]
fn a_fence_that_is_refused_lets_nobody_in_and_ends_the_bias() {
    let counter = Counter::<REFUSED>::new();
    let (_, hold) = counter.state.enter(this_thread());
    drop(hold);
    let (_, hold) = counter.state.enter(this_thread());
    assert!(counter.state.now() & BIASED != 0);
    let is_in = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            counter.add();
            is_in.store(true, Ordering::Relaxed);
        });
        std::thread::sleep(Duration::from_millis(50));
        assert!(!is_in.load(Ordering::Relaxed));
        drop(hold);
    });
    assert!(is_in.load(Ordering::Relaxed));
    (0..10).for_each(|_| counter.add());
    assert_eq!(counter.state.now(), FREE);
}

/// Without the fence nobody can tell whether the owner is inside: who only tries leaves it its bias, though it is idle.
#[test]
fn one_that_tries_is_refused_with_the_fence() {
    let counter = Counter::<REFUSED>::new();
    (0..2).for_each(|_| counter.add());
    let biased = counter.state.now();
    assert!(biased & BIASED != 0);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            assert!(matches!(counter.state.try_enter(this_thread()), Err(HELD)));
            assert_eq!(counter.state.now(), biased);
            // Whoever can wait takes it, and nobody gets a bias any more.
            (0..10).for_each(|_| counter.add());
        });
    });
    assert_eq!(counter.state.now(), FREE);
    assert!(counter.try_add());
}
