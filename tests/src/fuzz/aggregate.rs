//! An aggregator that follows a segment which changes under it in any way.

use std::cell::RefCell;
use std::time::Duration;

use shm_layout::control::{STATE, state};
use tt_shm_aggregator::{Aggregator, Config};

use super::patch::{Patched, Step, steps};
use super::segment::blocks;
use crate::hostile::Forged;
use crate::space::Space;

/// Polls within which a closed segment is gone. Each may sleep for a millisecond.
const MAX_POLLS: usize = 5000;

thread_local! {
    static AGGREGATOR: RefCell<(Aggregator, Space)> = {
        let space = Space::new();
        let config = Config { merge_window: Duration::ZERO, ..Config::new(space.namespace().clone()) };
        RefCell::new((Aggregator::new(config).expect("/dev/shm is there"), space))
    };
}

/// See [`super::BODIES`].
pub(super) fn run(data: &[u8]) {
    AGGREGATOR.with_borrow_mut(|(aggregator, space)| {
        let forged = Forged::honest(space);
        poll_until(aggregator, |aggregator| aggregator.segments() == 1);
        let blocks = blocks(&forged);
        let mut patched = Patched::default();
        for step in steps(data) {
            match step {
                Step::Store { block, word, value } => patched.store(&blocks, block, word, value),
                Step::Look => {
                    aggregator.poll();
                    std::hint::black_box(aggregator.snapshot());
                }
            }
        }
        // A latch that never comes to rest is waited for, two seconds long: honest again, it is gone at once.
        drop(patched);
        forged.set(STATE, state::CLOSED);
        drop(forged);
        poll_until(aggregator, |aggregator| aggregator.segments() == 0);
        assert_nothing_is_left(aggregator);
    });
}

fn poll_until(aggregator: &mut Aggregator, done: impl Fn(&Aggregator) -> bool) {
    for poll in 0..MAX_POLLS {
        if done(aggregator) {
            return;
        }
        if poll > 100 {
            std::thread::sleep(Duration::from_millis(1));
        }
        aggregator.poll();
    }
    panic!("{} segments after {MAX_POLLS} polls", aggregator.segments());
}

/// Whatever a process claimed leaves all sums with it.
fn assert_nothing_is_left(aggregator: &Aggregator) {
    for (_, device) in aggregator.snapshot().devices {
        assert_eq!((device.dram_used_bytes, device.l1_used_bytes, device.eth_used_bytes), (0, 0, 0));
        assert!(device.classes.iter().all(|class| (class.live_bytes, class.live_count) == (0, 0)));
    }
}
