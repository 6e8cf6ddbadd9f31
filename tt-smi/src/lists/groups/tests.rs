//! Groups, sizes, and the queries that ask for them.

use super::*;
use crate::query::{ALLOCATION_FIELDS, Query};

pub(crate) fn item(name: Option<&str>, size: u64, age_ns: u64) -> Item {
    Item {
        device: 0,
        entry: 0,
        identity: 42,
        pid: 42,
        claimed: false,
        class: Class::Dram,
        id: 0,
        program: None,
        size,
        address: None,
        bank_bytes: None,
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
    let (none, a) = (GroupKey::Name(None), GroupKey::Name(Some("a".into())));
    assert_eq!(found[0], Group { key: none, count: 1, bytes: 100, largest: 100, oldest_ns: 1, newest_ns: 1 });
    assert_eq!(found[1], Group { key: a, count: 2, bytes: 40, largest: 30, oldest_ns: 9, newest_ns: 5 });
    assert_eq!(groups(&items, GroupBy::Class)[0].count, 3);
}

#[test]
fn a_histogram_has_no_holes() {
    let items = [item(None, 0, 0), item(None, 1023, 0), item(None, 4096, 0), item(None, 4097, 0)];
    let found: Vec<_> = histogram(&items).into_iter().map(|group| (group.key, group.count)).collect();
    let expected = [(0, 1), (512, 1), (1024, 0), (2048, 0), (4096, 2)];
    assert_eq!(found, expected.map(|(size, count)| (GroupKey::Size(size), count)));
    let largest = histogram(&[item(None, 1, 0), item(None, u64::MAX, 0)]);
    assert_eq!(largest.len(), 64);
}

#[test]
fn a_group_counts_what_its_query_finds() {
    let odd = "a \"b\\\" c,d\u{1b}[2J";
    let names = [Some("weights"), Some(odd), None, Some("weights"), Some(""), Some("Weights")];
    let sizes = [0, 1, 700, 1024, 2047, u64::MAX];
    let items: Vec<Item> =
        names.into_iter().zip(sizes).zip(0..).map(|((name, size), age)| item(name, size, age)).collect();
    for by in [GroupBy::Name, GroupBy::Class, GroupBy::Size, GroupBy::Pid] {
        let groups = groups(&items, by);
        assert_eq!(groups.iter().map(|group| group.count).sum::<u64>(), 6, "{by:?}");
        for group in groups {
            let query: Query = group.key.query().parse().unwrap();
            query.check(ALLOCATION_FIELDS).unwrap();
            let found: Vec<&Item> = items.iter().filter(|item| query.matches(*item)).collect();
            assert_eq!(found.len() as u64, group.count, "{query}");
            assert_eq!(found.iter().map(|item| item.age_ns).min(), Some(group.newest_ns));
        }
    }
}

#[test]
fn groups_are_called_by_what_they_have_in_common() {
    assert_eq!(GroupKey::Name(None).to_string(), "(no name)");
    assert_eq!(GroupKey::Name(Some("a\u{1b}".into())).to_string(), "a\\u{1b}");
    assert_eq!(GroupKey::Size(power(70_000)).to_string(), "64 KiB - 128 KiB");
    assert_eq!(GroupKey::Size(0).to_string(), "0 B");
}
