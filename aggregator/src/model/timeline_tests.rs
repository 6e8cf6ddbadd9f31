//! Peaks of a timeline against the truth.

use super::*;
use fastrand::Rng;

fn sums(value: u64) -> Sums {
    let mut sums = Sums::ZERO;
    (sums.bytes[0], sums.counts[0]) = (value, value);
    sums
}

fn fill(value: u64) -> [u64; FIGURES] {
    [value; FIGURES]
}

/// A timeline with the sum of one figure, as a device has it.
struct Watched {
    timeline: Timeline,
    sum: u64,
}

impl Watched {
    fn new() -> Watched {
        Watched { timeline: Timeline::new(1, 1), sum: 0 }
    }

    /// A share changes, in order or not.
    fn change(&mut self, time: u64, old: u64, new: u64) {
        self.sum = self.sum - old + new;
        if self.timeline.is_in_order(time) {
            self.timeline.advance(time);
        } else {
            self.timeline.shift(time, &sums(old), &sums(new), &sums(self.sum));
        }
        self.timeline.raise_all(&sums(self.sum));
    }

    fn peak(&self) -> (u64, u64, u64) {
        let Peak { low, high, time, .. } = self.timeline.peak(0);
        (low, high, time)
    }
}

#[test]
fn events_in_order_are_exact() {
    let mut watched = Watched::new();
    watched.change(10, 0, 10);
    watched.change(20, 10, 30);
    watched.change(30, 30, 5);
    watched.timeline.close_due_slice(10 + 2 * SLICE_NS, &sums(5));
    watched.change(20 + 2 * SLICE_NS, 5, 30);
    assert_eq!(watched.peak(), (30, 30, 20), "the first time counts");
    assert_eq!(watched.timeline.peak(0).count, 30);
}

/// Every slice after a late allocation was more by its bytes; only in its own slice is there a doubt.
#[test]
fn a_late_change_shifts_what_came_after_it() {
    let mut watched = Watched::new();
    watched.change(10, 0, 100);
    watched.change(20, 100, 0);
    watched.timeline.cut(50, &sums(0));
    watched.change(60, 0, 70);
    watched.change(50, 0, 50);
    assert_eq!(watched.peak(), (120, 120, 60));
    // Where it falls, nobody knows how much there was at that time.
    watched.change(40, 0, 50);
    assert_eq!(watched.peak(), (170, 170, 60));
    let mut watched = Watched::new();
    watched.change(10, 0, 100);
    watched.change(30, 100, 0);
    watched.change(20, 0, 50);
    assert_eq!(watched.peak(), (100, 150, 10));
}

#[test]
fn a_late_free_lowers_what_is_certain_after_it() {
    let mut watched = Watched::new();
    watched.change(10, 0, 40);
    watched.change(30, 0, 60);
    watched.change(20, 40, 0);
    assert_eq!(watched.peak().0, 60);
    assert_eq!(watched.peak().1, 100);
    watched.timeline.cut(50, &sums(60));
    watched.timeline.restart(60, &sums(60));
    // From before the window: it never counted in it.
    watched.change(55, 60, 0);
    assert_eq!(watched.peak(), (0, 0, 60));
}

/// A tick after the last change does not make the next event late.
#[test]
fn nothing_changed_after_it() {
    let mut watched = Watched::new();
    watched.change(10, 0, 40);
    watched.timeline.close_due_slice(2 * SLICE_NS, &sums(40));
    watched.change(SLICE_NS, 0, 5);
    assert_eq!(watched.peak(), (45, 45, SLICE_NS));
}

#[test]
fn a_doubt_concerns_its_span_only() {
    let mut watched = Watched::new();
    watched.change(10, 0, 100);
    watched.timeline.cut(50, &sums(100));
    watched.change(60, 100, 140);
    watched.timeline.doubt(Span { from: 55, to: 70 }, &Doubt { less: fill(60), more: fill(7) });
    assert_eq!(watched.peak(), (100, 147, 10));
    watched.timeline.attest(0, 120, 65, 1, true);
    assert_eq!(watched.peak(), (120, 147, 65));
    watched.timeline.doubt(Span { from: 65, to: 70 }, &Doubt::ANYTHING_MORE);
    assert_eq!(watched.peak().1, UNKNOWN);
    watched.timeline.restart(80, &sums(140));
    assert_eq!(watched.peak(), (140, 140, 80));
}

/// What is merged after a doubt was learned of, and lies in its span, may have had that much beside it.
#[test]
fn a_doubt_reaches_beyond_what_was_merged() {
    let mut watched = Watched::new();
    watched.change(10, 0, 100);
    watched.timeline.doubt(Span { from: 5, to: 50 }, &Doubt { less: fill(0), more: fill(30) });
    assert_eq!(watched.peak(), (100, 130, 10));
    watched.change(20, 100, 150);
    assert_eq!(watched.peak(), (150, 180, 20));
    watched.timeline.cut(30, &sums(150));
    watched.change(35, 150, 160);
    watched.change(60, 160, 165);
    assert_eq!(watched.peak(), (165, 190, 60));
    watched.change(70, 165, 200);
    assert_eq!(watched.peak(), (200, 200, 70), "not after it");
    watched.timeline.doubt(Span { from: 65, to: 90 }, &Doubt { less: fill(0), more: fill(7) });
    watched.timeline.restart(80, &sums(200));
    assert_eq!(watched.peak(), (200, 207, 80), "a window that begins in it");
    watched.timeline.restart(90, &sums(200));
    assert_eq!(watched.peak(), (200, 200, 90));
}

#[test]
fn before_it_was_followed_nothing_is_bounded() {
    let mut timeline = Timeline::new(0, 100);
    timeline.advance(50);
    timeline.raise(0, 30, 1);
    assert_eq!((timeline.peak(0).low, timeline.peak(0).high), (30, UNKNOWN));
    assert!(!timeline.is_in_order(100));
    timeline.cross_boundary(100, &sums(30));
    assert!(timeline.is_in_order(100));
    timeline.restart(200, &sums(30));
    assert_eq!((timeline.peak(0).low, timeline.peak(0).high), (30, 30));
}

#[test]
fn an_unread_process_may_have_anything_while_it_is_there() {
    let mut watched = Watched::new();
    assert!(watched.timeline.set_unbounded(true) && !watched.timeline.set_unbounded(true));
    watched.timeline.cut(10, &sums(0));
    assert_eq!(watched.peak().1, UNKNOWN);
    assert!(watched.timeline.set_unbounded(false));
    watched.timeline.restart(20, &sums(0));
    assert_eq!(watched.peak().1, 0);
}

/// The largest true sum from `since` on and when it was reached first, given all changes of all shares: time,
/// share, new value.
fn truth(changes: &[(u64, usize, u64)], since: u64) -> (u64, u64) {
    let mut sorted: Vec<_> = changes.to_vec();
    sorted.sort_by_key(|(time, ..)| *time);
    let (before, within): (Vec<_>, Vec<_>) = sorted.into_iter().partition(|(time, ..)| *time < since);
    let mut shares = [0; 4];
    before.into_iter().for_each(|(_, share, value)| shares[share] = value);
    let mut most = (shares.iter().sum(), since);
    for (time, share, value) in within {
        shares[share] = value;
        if shares.iter().sum::<u64>() > most.0 {
            most = (shares.iter().sum(), time);
        }
    }
    most
}

/// Random changes of four shares, some of which are merged long after others that came later, with ticks and
/// windows in between: what is exact is true, a range holds the truth.
#[test]
fn late_changes_against_the_truth() {
    let mut random = Rng::with_seed(42);
    let (mut exact, mut timed, mut ranges) = (0, 0, 0);
    for _ in 0..300 {
        let mut watched = Watched::new();
        let (mut changes, mut waiting): (Vec<_>, Vec<(u64, usize, u64)>) = (Vec::new(), Vec::new());
        let (mut shares, mut merged, mut since) = ([0; 4], [0; 4], 1);
        for step in 1..80 {
            let time = step * SLICE_NS / 3;
            let share = random.usize(..4);
            shares[share] = random.u64(..100);
            // A share's own changes are never out of order.
            let late = random.u64(..6) == 0 || waiting.iter().any(|(_, other, _)| *other == share);
            if late {
                waiting.push((time, share, shares[share]));
            }
            let mut now = if late { Vec::new() } else { vec![(time, share, shares[share])] };
            if random.u64(..4) == 0 {
                now.append(&mut waiting);
            }
            for (time, share, value) in now {
                watched.change(time, merged[share], value);
                merged[share] = value;
                changes.push((time, share, value));
            }
            watched.timeline.close_due_slice(time, &sums(watched.sum));
            if random.u64(..20) == 0 {
                since = time + 1;
                watched.timeline.restart(since, &sums(watched.sum));
            }
            let (low, high, time) = watched.peak();
            let (truth, reached) = truth(&changes, since);
            assert!((low..=high).contains(&truth), "{low}..={high} does not hold {truth} at {step}");
            if low == high && time != 0 {
                assert_eq!(time, reached, "{truth} at {step}");
                timed += 1;
            }
            *(if low == high { &mut exact } else { &mut ranges }) += 1;
        }
    }
    assert!(exact > 10_000 && ranges > 1000 && timed > 10_000, "{exact} ({timed}) exact, {ranges} ranges");
}
