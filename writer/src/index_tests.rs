use super::*;
use crate::live::hash;
use proptest::prelude::*;
use std::collections::HashSet;

/// An index of numbers, each an item and its own key.
struct Numbers {
    index: Index,
    scope: u64,
    key: fn(u64) -> u64,
}

impl Numbers {
    fn new(scope: u64, key: fn(u64) -> u64) -> Numbers {
        Numbers { index: Index::new(0), scope, key }
    }

    fn hash(&self, number: u32) -> u64 {
        hash(self.scope, (self.key)(u64::from(number)))
    }

    fn find(&self, number: u32) -> Option<u32> {
        self.index.find(self.hash(number), |item| (item == number).then_some(item))
    }

    fn insert(&mut self, number: u32) -> Result<(), u32> {
        let (scope, key) = (self.scope, self.key);
        let hash_of = |item: u32| hash(scope, key(u64::from(item)));
        self.index.insert(hash_of(number), number, |item| (item == number).then_some(item), hash_of)
    }

    fn take(&mut self, number: u32) -> Option<u32> {
        self.index.take(self.hash(number), |item| (item == number).then_some(item))
    }

    fn load(&self) -> f64 {
        items(&self.index.lines).count() as f64 / (self.index.lines.len() * ENTRIES) as f64
    }

    fn displaced(&self) -> usize {
        self.index.lines.iter().map(|line| usize::from(line.tags.displaced)).sum()
    }
}

#[test]
fn half_a_million_items_are_found_and_taken() {
    let mut numbers = Numbers::new(1, |id| id * 4096);
    assert!((0..500_000).all(|number| numbers.insert(number).is_ok()));
    assert!((0..500_000).all(|number| numbers.find(number) == Some(number)));
    assert!((0..500_000).all(|number| numbers.insert(number) == Err(number)));
    assert!((0..500_000).all(|number| numbers.take(number) == Some(number)));
    assert!((0..500_000).all(|number| numbers.find(number).is_none()));
    assert_eq!((numbers.displaced(), numbers.index.overflow.len()), (0, 0));
}

/// Ids are counters, addresses, pointers or pairs of numbers: none of them makes pages that splitting
/// hardly parts, which would make the directory large, or lines that fill before the others.
#[test]
fn usual_ids_spread_evenly() {
    let patterns: [fn(u64) -> u64; 8] = [
        |i| i,
        |i| i << 6,
        |i| i << 12,
        |i| i << 21,
        |i| i << 32,
        |i| i << 47,
        |i| ((i % 128) << 56) | (i / 128),
        |i| u64::MAX - (i << 5),
    ];
    for (pattern, key) in patterns.into_iter().enumerate() {
        for device in [0, 1, 127] {
            let mut numbers = Numbers::new(device << 24 | 1, key);
            assert!((0..50_000).all(|number| numbers.insert(number).is_ok()));
            let (depth, load, displaced) =
                (u64::BITS - numbers.index.shift, numbers.load(), numbers.displaced());
            assert!(
                depth <= 13 && load > 0.3 && displaced < 2_000,
                "pattern {pattern}, device {device}: depth {depth}, load {load}, displaced {displaced}"
            );
        }
    }
}

/// Items come and go for long: no page is split for a line that was full for a moment.
#[test]
fn churn_does_not_make_it_grow() {
    let mut numbers = Numbers::new(1, |id| id);
    assert!((0..10_000).all(|number| numbers.insert(number).is_ok()));
    let pages = numbers.index.depths.len();
    for number in 10_000..400_000 {
        assert!(numbers.take(number - 10_000).is_some() && numbers.insert(number).is_ok());
    }
    assert!(
        numbers.index.depths.len() <= pages * 5 / 4,
        "{pages} pages became {}",
        numbers.index.depths.len()
    );
}

/// More items of one hash than a page holds.
#[test]
fn equal_hashes_are_told_apart() {
    let mut index = Index::new(0);
    for item in 0..300 {
        assert!(index.insert(7, item, |other| (other == item).then_some(other), |_| 7).is_ok());
    }
    assert!(!index.overflow.is_empty());
    for item in (0..300).rev() {
        assert_eq!(index.insert(7, item, |other| (other == item).then_some(other), |_| 7), Err(item));
        assert_eq!(index.take(7, |other| (other == item).then_some(other)), Some(item));
        assert_eq!(index.find(7, |other| (other == item).then_some(other)), None);
    }
    assert!(index.overflow.is_empty());
}

proptest! {
    #[test]
    fn it_is_a_set(ops in prop::collection::vec((any::<bool>(), 0u32..600), 0..3000)) {
        // Few lines, so that they overflow.
        let mut numbers = Numbers::new(1, |id| id);
        let mut model = HashSet::new();
        for (insert, number) in ops {
            if insert {
                prop_assert_eq!(numbers.insert(number).is_ok(), model.insert(number));
            } else {
                prop_assert_eq!(numbers.take(number).is_some(), model.remove(&number));
            }
        }
        prop_assert!((0..600).all(|number| numbers.find(number).is_some() == model.contains(&number)));
    }
}
