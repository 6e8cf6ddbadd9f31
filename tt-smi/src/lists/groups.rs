//! Live allocations that have something in common.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tt_shm_reader::Class;

use super::allocations::Item;
use crate::cli::GroupBy;
use crate::escape::Foreign;

/// What the members of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Their name; `None`: they have none.
    Name(Option<Foreign>),
    /// Their class.
    Class(Class),
    /// Their size, down to a power of two; 0 for those without bytes of their own.
    Size(u64),
    /// Their process.
    Pid(u32),
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What they have in common.
    pub key: Key,
    /// How many they are.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The largest.
    pub largest: u64,
    /// How long the oldest has been live.
    pub oldest_ns: u64,
}

/// The groups, most bytes first.
pub fn groups(items: &[Item], by: GroupBy) -> Vec<Group> {
    let mut groups = collect(items, by);
    groups.sort_by_key(|group| Reverse(group.bytes));
    groups
}

/// How many there are of each size, smallest first; also of the sizes between that nothing has.
pub fn histogram(items: &[Item]) -> Vec<Group> {
    let mut buckets: Vec<Group> = Vec::new();
    for group in collect(items, GroupBy::Size) {
        while let Some(empty) = buckets.last().and_then(|last| gap(&last.key, &group.key)) {
            buckets.push(Group { key: empty, count: 0, bytes: 0, largest: 0, oldest_ns: 0 });
        }
        buckets.push(group);
    }
    buckets
}

/// The next size, if it is not the one that follows anyway. Nothing lies between no bytes and some.
fn gap(last: &Key, next: &Key) -> Option<Key> {
    match (last, next) {
        (Key::Size(last), Key::Size(next)) if *last > 0 && last * 2 < *next => Some(Key::Size(last * 2)),
        _ => None,
    }
}

/// The groups, by key.
fn collect(items: &[Item], by: GroupBy) -> Vec<Group> {
    let mut groups: BTreeMap<Key, Group> = BTreeMap::new();
    for item in items {
        let key = match by {
            GroupBy::Name => Key::Name(item.name.clone()),
            GroupBy::Class => Key::Class(item.class),
            GroupBy::Size => Key::Size(item.size.checked_ilog2().map_or(0, |power| 1 << power)),
            GroupBy::Pid => Key::Pid(item.pid),
        };
        let new = || Group { key: key.clone(), count: 0, bytes: 0, largest: 0, oldest_ns: 0 };
        let group = groups.entry(key.clone()).or_insert_with(new);
        group.count += 1;
        group.bytes = group.bytes.saturating_add(item.size);
        group.largest = group.largest.max(item.size);
        group.oldest_ns = group.oldest_ns.max(item.age_ns);
    }
    groups.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(name: Option<&str>, size: u64, age_ns: u64) -> Item {
        Item {
            device: 0,
            pid: 1,
            class: Class::Dram,
            id: 0,
            program: None,
            size,
            address: None,
            cores: None,
            core_type: None,
            globally_allocated: false,
            name: name.map(Foreign::from),
            site: None,
            age_ns,
        }
    }

    #[test]
    fn groups_sum_up_and_the_heaviest_is_first() {
        let items = [item(Some("a"), 10, 5), item(None, 100, 1), item(Some("a"), 30, 9)];
        let found = groups(&items, GroupBy::Name);
        let (none, a) = (Key::Name(None), Key::Name(Some("a".into())));
        assert_eq!(found[0], Group { key: none, count: 1, bytes: 100, largest: 100, oldest_ns: 1 });
        assert_eq!(found[1], Group { key: a, count: 2, bytes: 40, largest: 30, oldest_ns: 9 });
        assert_eq!(groups(&items, GroupBy::Class)[0].count, 3);
    }

    #[test]
    fn a_histogram_has_no_holes() {
        let items = [item(None, 0, 0), item(None, 1023, 0), item(None, 4096, 0), item(None, 4097, 0)];
        let found: Vec<_> = histogram(&items).into_iter().map(|group| (group.key, group.count)).collect();
        let expected = [(0, 1), (512, 1), (1024, 0), (2048, 0), (4096, 2)];
        assert_eq!(found, expected.map(|(size, count)| (Key::Size(size), count)));
        let largest = histogram(&[item(None, 1, 0), item(None, u64::MAX, 0)]);
        assert_eq!(largest.len(), 64);
    }
}
