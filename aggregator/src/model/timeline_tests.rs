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

/// What was read and is no more than what was followed leaves the time of the peak.
#[test]
fn what_is_no_new_peak_leaves_its_time() {
    let mut watched = Watched::new();
    watched.change(10, 0, 40);
    watched.timeline.find(&sums(40));
    assert_eq!(watched.peak(), (40, 40, 10));
    watched.timeline.attest(0, 40, 10, 1, true);
    assert_eq!(watched.peak(), (40, 40, 10));
}

/// What was read is what there is from then on; when it came is not known.
#[test]
fn what_was_read_is_a_change_at_an_unknown_time() {
    let mut watched = Watched::new();
    watched.change(10, 0, 40);
    watched.timeline.advance_to(50);
    watched.timeline.find(&sums(60));
    assert_eq!((watched.peak(), watched.timeline.latest()), ((60, 60, 0), 50));
    assert!(watched.timeline.is_late(49) && !watched.timeline.is_late(50));
    watched.timeline.advance_to(20);
    assert_eq!(watched.timeline.latest(), 50, "it is no step back");
}

/// Whoever learns of a new peak notes who holds it: once for each, and in the whole window.
#[test]
fn a_new_peak_of_the_window_is_noticed_once() {
    let mut timeline = Timeline::new(1, 1);
    timeline.advance(10);
    assert!(timeline.raise(0, 30, 1) && timeline.take_rose());
    assert!(!timeline.raise(0, 30, 1) && !timeline.take_rose());
    timeline.cut(20, &sums(0));
    // In another slice of the same window.
    timeline.advance(25);
    assert!(!timeline.raise(0, 20, 1) && !timeline.raise(0, 30, 1) && !timeline.take_rose());
    assert!(timeline.raise(0, 31, 1) && timeline.take_rose());
    // Of what was doubted, only this much is certain.
    timeline.doubt(Span { from: 5, to: 25 }, &Doubt::up_to(fill(10)));
    assert!(timeline.raise(0, 22, 1) && timeline.take_rose());
}

/// The time of a peak tells when it was first reached, or nothing.
#[test]
fn what_a_process_had_by_itself_may_have_been_there_before() {
    for (value, peak) in [(120, (120, 130, 65)), (130, (130, 130, 0)), (140, (140, 140, 65))] {
        let mut watched = Watched::new();
        watched.change(10, 0, 100);
        watched.timeline.doubt(Span { from: 5, to: 50 }, &Doubt { less: fill(0), more: fill(30) });
        watched.timeline.attest(0, value, 65, 1, true);
        assert_eq!(watched.peak(), peak);
    }
    let mut watched = Watched::new();
    watched.timeline.doubt(Span { from: 5, to: 70 }, &Doubt::ANYTHING_MORE);
    watched.timeline.attest(0, 120, 65, 1, true);
    assert_eq!(watched.peak(), (120, UNKNOWN, 65));
    watched.timeline.cap(&fill(120));
    assert_eq!(watched.peak(), (120, 120, 65), "nobody else had anything");
}

/// Each slice is raised only by what was reached in it.
#[test]
fn what_a_process_had_by_itself_concerns_its_slice() {
    let mut watched = Watched::new();
    watched.change(10, 0, 100);
    watched.timeline.cut(50, &sums(100));
    watched.timeline.attest(0, 120, 65, 1, true);
    watched.timeline.attest(0, 30, 20, 1, true);
    let lows = |timeline: &Timeline| (timeline.closed[0].ranges[0].low, timeline.open.ranges[0].low);
    assert_eq!(lows(&watched.timeline), (100, 120));
    watched.timeline.cap(&fill(100));
    assert_eq!((watched.timeline.closed[0].ranges[0].high, watched.peak()), (100, (120, 120, 65)));
}

/// Whether a doubt lowers what is certain depends on when that was reached; if that is not known, it does.
#[test]
fn a_doubt_lowers_what_was_reached_in_its_span() {
    let less = Doubt::up_to(fill(60));
    let mut watched = Watched::new();
    watched.change(10, 0, 100);
    watched.change(20, 100, 0);
    watched.timeline.doubt(Span { from: 11, to: 15 }, &less);
    assert_eq!(watched.peak(), (100, 100, 10));
    watched.timeline.doubt(Span { from: 10, to: 15 }, &less);
    assert_eq!(watched.peak(), (40, 100, 0));
    watched.timeline.doubt(Span { from: 11, to: 15 }, &Doubt::up_to(fill(30)));
    assert_eq!(watched.peak(), (10, 100, 0));
}

/// The end of a slice is in the next one.
#[test]
fn a_doubt_leaves_the_slices_beside_it() {
    let more = Doubt { less: fill(0), more: fill(7) };
    let doubted = |from, to| {
        let mut watched = Watched::new();
        watched.change(10, 0, 100);
        watched.timeline.cut(50, &sums(100));
        watched.timeline.cut(80, &sums(100));
        watched.change(90, 100, 100);
        watched.timeline.doubt(Span { from, to }, &more);
        watched.timeline.note_others(Span { from, to });
        let slices = watched.timeline.slices_mut();
        slices.map(|(slice, _)| (slice.ranges[0].high - 100, slice.others)).collect::<Vec<_>>()
    };
    assert_eq!(doubted(50, 79), [(0, false), (7, true), (0, false)]);
    assert_eq!(doubted(49, 79), [(7, true), (7, true), (0, false)]);
    assert_eq!(doubted(50, 80), [(0, false), (7, true), (7, true)]);
    assert_eq!(doubted(85, 85), [(0, false), (0, false), (7, true)]);
}

/// As long as nothing is merged of the time that several doubts are about, they add up.
#[test]
fn doubts_of_what_is_merged_later_add_up() {
    let more = |more| Doubt { less: fill(0), more: fill(more) };
    let mut watched = Watched::new();
    watched.change(10, 0, 100);
    watched.timeline.doubt(Span { from: 15, to: 50 }, &more(30));
    watched.timeline.doubt(Span { from: 15, to: 40 }, &more(7));
    // This one is about what is merged already.
    watched.timeline.doubt(Span { from: 5, to: 10 }, &more(50));
    watched.change(20, 100, 200);
    assert_eq!(watched.peak(), (200, 237, 20));
    watched.change(50, 200, 300);
    assert_eq!(watched.peak(), (300, 300, 50), "not at its end");
    watched.timeline.doubt(Span { from: 55, to: 90 }, &more(5));
    watched.change(60, 300, 400);
    assert_eq!(watched.peak(), (400, 405, 60), "the others are over");
}

#[test]
fn a_change_at_the_end_of_a_doubt_has_nothing_beside_it() {
    let mut watched = Watched::new();
    watched.change(10, 0, 100);
    watched.timeline.doubt(Span { from: 5, to: 50 }, &Doubt { less: fill(0), more: fill(30) });
    watched.timeline.cut(60, &sums(100));
    watched.change(50, 100, 150);
    assert_eq!(watched.peak(), (150, 150, 50));
}

/// What is certain of the time before somebody followed was derived from counters.
#[test]
fn before_it_was_followed_only_a_late_removal_changes_what_is_certain() {
    let shifted = |since, old, new, latest| {
        let mut timeline = Timeline::new(10, 100);
        timeline.advance(latest);
        timeline.attest(0, 30, 50, 30, true);
        timeline.shift(since, &sums(old), &sums(new), &sums(25));
        let Peak { low, count, .. } = timeline.peak(0);
        (low, count)
    };
    // Nothing is merged after it.
    assert_eq!(shifted(40, 20, 0, 40), (30, 30));
    assert_eq!(shifted(5, 20, 0, 0), (30, 30), "before the window");
    // Something is: it was merged with what was gone by then.
    assert_eq!(shifted(40, 20, 0, 60), (10, 10));
    assert_eq!(shifted(5, 20, 0, 60), (10, 10));
    assert_eq!(shifted(40, 0, 20, 60), (30, 30));
    assert_eq!(shifted(5, 0, 20, 60), (30, 30));
    assert_eq!(shifted(55, 20, 0, 60), (30, 30), "after it");
}

#[test]
fn a_slice_ends_when_it_is_old_enough_and_something_changed() {
    let closed = |timeline: &Timeline| timeline.closed.len();
    let mut watched = Watched::new();
    watched.timeline.close_due_slice(1 + SLICE_NS, &sums(0));
    assert_eq!(closed(&watched.timeline), 0, "nothing changed");
    watched.change(1, 0, 10);
    watched.timeline.close_due_slice(1 + SLICE_NS, &sums(10));
    assert_eq!(closed(&watched.timeline), 0, "nothing changed since it began");
    watched.change(2, 10, 20);
    watched.timeline.close_due_slice(SLICE_NS, &sums(20));
    assert_eq!(closed(&watched.timeline), 0, "it is too young");
    watched.timeline.close_due_slice(1 + SLICE_NS, &sums(20));
    assert_eq!((closed(&watched.timeline), watched.timeline.open.since), (1, 1 + SLICE_NS));
    // Before it is followed, there is one slice.
    let mut timeline = Timeline::new(1, 5 * SLICE_NS);
    timeline.advance(SLICE_NS);
    timeline.close_due_slice(3 * SLICE_NS, &sums(0));
    assert_eq!(closed(&timeline), 0);
    timeline.close_due_slice(5 * SLICE_NS, &sums(0));
    assert_eq!((closed(&timeline), timeline.open.since), (1, 5 * SLICE_NS));
}

/// When each closed slice began, after the timeline was cut at these times.
fn cut_at(times: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut timeline = Timeline::new(0, 0);
    for time in times {
        timeline.cut(time, &sums(time));
        assert!(timeline.closed.len() <= MAX_CLOSED);
    }
    timeline.closed.iter().map(|slice| slice.since).collect()
}

#[test]
fn the_older_the_slices_the_longer_they_are() {
    assert_eq!(cut_at(1..=24), (0..24).collect::<Vec<_>>(), "as many as are kept");
    let starts = cut_at(1..=1000);
    let coarse = [0, 955, 963, 967, 971, 975, 979, 981, 983];
    assert_eq!(starts, coarse.into_iter().chain(985..1000).collect::<Vec<_>>());
}

/// If no slices are short, those that are the oldest are joined.
#[test]
fn of_slices_that_are_all_long_the_oldest_are_joined() {
    // Each is half as long as the one before.
    let halved = |count: u32| (1..=count).map(|cut| (1 << 30) - (1 << (30 - cut)));
    let kept: Vec<u64> = std::iter::once(0).chain(halved(25).skip(2).take(23)).collect();
    assert_eq!(cut_at(halved(26)), kept);
}

/// A process that is gone may have held memory in a part of a slice.
#[test]
fn slices_that_are_joined_had_the_others_of_both() {
    let slice = |others| Slice { others, ..Slice::new(0, 0, &Sums::ZERO) };
    for (earlier, later) in [(false, false), (false, true), (true, false), (true, true)] {
        assert_eq!(slice(earlier).join(&slice(later)).others, earlier | later);
    }
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
