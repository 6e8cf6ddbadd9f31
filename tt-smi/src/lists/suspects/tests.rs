//! Who is suspected, and who is not.

use super::*;
use crate::lists::groups::tests::item;
use crate::query::{ALLOCATION_FIELDS, Query};

const SECOND: u64 = 1_000_000_000;

fn listing(names: &[(&str, u64)]) -> Listing {
    let of =
        |(name, count): &(&str, u64)| (0..*count).map(|id| item(Some(name), 4096, id)).collect::<Vec<_>>();
    Listing { items: names.iter().flat_map(of).collect(), ..Listing::default() }
}

/// Looks each `every` seconds at so many of one name.
fn looked(every: u64, counts: impl IntoIterator<Item = u64>) -> Suspects {
    let mut suspects = Suspects::default();
    for (place, count) in (0..).zip(counts) {
        suspects.look(&listing(&[("kv", count)]), &[], place * every * SECOND);
    }
    suspects
}

#[test]
fn what_only_rises_for_a_minute_is_suspected() {
    let suspects = looked(10, [10, 11, 12, 12, 13, 14, 16]);
    let found = suspects.suspects();
    assert_eq!(found.len(), 1);
    let Suspect { count, more, more_bytes, for_ns, .. } = found[0];
    assert_eq!((count, more, more_bytes, for_ns), (16, 6, 6 * 4096, 60 * SECOND));
    assert!(suspects.is_suspect(&item(Some("kv"), 5000, 3)), "of about the same size");
    assert!(!suspects.is_suspect(&item(Some("kv"), 50_000, 3)));
    let query: Query = found[0].origin.query().parse().unwrap();
    query.check(ALLOCATION_FIELDS).unwrap();
    assert!(query.matches(&item(Some("kv"), 4096, 3)));
}

#[test]
fn nobody_is_suspected_without_reason() {
    let cases: [(&str, Suspects); 6] = [
        ("too short", looked(1, 0..50)),
        ("too few rises", looked(10, [1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 5])),
        ("falls now and then", looked(10, [10, 11, 12, 13, 14, 13, 14, 15, 16, 17])),
        ("a pool", looked(2, (0..100).map(|n| 50 + n % 20))),
        ("steady", looked(10, [9; 50])),
        ("loaded once, long ago", looked(5, (0..20).chain([19; 14]))),
    ];
    for (what, suspects) in cases {
        assert_eq!(suspects.suspects(), [], "{what}");
    }
}

#[test]
fn a_slow_leak_stays_suspected_between_rises() {
    let suspects = looked(10, (0..170).map(|n| 5 + n / 24));
    assert_eq!(suspects.suspects().len(), 1, "one each four minutes");
}

#[test]
fn a_list_that_is_not_exact_is_no_evidence() {
    let mut suspects = looked(10, [10, 11, 12, 13, 14, 15, 16]);
    let inexact = Listing { inexact_pids: vec![42], ..listing(&[("kv", 3)]) };
    suspects.look(&inexact, &[], 70 * SECOND);
    assert_eq!(suspects.suspects().len(), 1, "neither for nor against it");
    suspects.look(&listing(&[]), &[], 80 * SECOND);
    assert_eq!(suspects.suspects(), [], "all of it was freed");
}

#[test]
fn who_looked_away_begins_anew_and_two_looks_at_once_are_one() {
    let mut suspects = looked(10, [10, 11, 12, 13, 14, 15, 16]);
    suspects.look(&listing(&[("kv", 1)]), &[], 60 * SECOND + 1);
    assert_eq!(suspects.suspects().len(), 1, "too soon to count");
    suspects.look(&listing(&[("kv", 17)]), &[], 200 * SECOND);
    assert_eq!(suspects.suspects(), []);
}

/// Looks each second; a step ended half a second ago each time. So many have outlived it, and so many are of the
/// step that goes on.
fn stepped(steps: impl IntoIterator<Item = (u64, u64, u64)>) -> Suspects {
    let mut suspects = Suspects::default();
    for (place, (ended, outlived, young)) in (0..).zip(steps) {
        let of = |count: u64, age_ns: u64| (0..count).map(move |_| item(Some("kv"), 4096, age_ns));
        let items = of(outlived, SECOND).chain(of(young, SECOND / 10)).collect();
        let end = steps::StepEnd { pid: 42, ended, age_ns: SECOND / 2 };
        suspects.look(&Listing { items, ..Listing::default() }, &[end], place * SECOND);
    }
    suspects
}

#[test]
fn what_outlives_ever_more_steps_is_suspected_before_a_minute_is_over() {
    // What a step needs for itself goes up and down.
    let suspects = stepped((0..=10).map(|step| (step * 7, 10 + step * 2, 90 * (step % 3))));
    let found = suspects.suspects();
    assert_eq!(found.len(), 1);
    let Suspect { more, more_bytes, steps, .. } = found[0];
    assert_eq!((more, more_bytes, steps), (20, 20 * 4096, Some(10)));
    assert!(suspects.is_suspect(&item(Some("kv"), 4096, 3)));
}

#[test]
fn nobody_is_suspected_over_steps_without_reason() {
    let cases: [(&str, Suspects); 6] = [
        ("too few steps", stepped((0..10).map(|step| (step, 10 + step, 0)))),
        ("too few rises", stepped((0..30).map(|step| (step, 10 + step / 8, 0)))),
        ("only within steps", stepped((0..40).map(|step| (step, 10, step)))),
        ("falls now and then", stepped((0..40).map(|step| (step, 10 + step % 9, 0)))),
        ("no step ends", stepped((0..40).map(|look| (3, 10 + look, 0)))),
        ("filled, and then no more", stepped((0..40).map(|step| (step, 10 + step.min(15), 0)))),
    ];
    for (what, suspects) in cases {
        assert_eq!(suspects.suspects(), [], "{what}");
    }
}

#[test]
fn looks_within_a_step_neither_help_nor_harm() {
    let look = |look: u64| if look.is_multiple_of(2) { (look, 10 + look, 0) } else { (look - 1, 3, 0) };
    assert_eq!(stepped((0..=20).map(look)).suspects().len(), 1);
}
