//! Allocations that have something in common, added up.

use std::collections::HashMap;
use std::fmt;

use clap::ValueEnum;
use tt_shm_reader::Class;

use super::allocations::Item;
use super::histogram::{bounds, bucket};
use crate::escape::Foreign;
use crate::output::units::bytes_short;

/// What allocations may have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GroupBy {
    /// What the process calls them.
    Name,
    /// Their class.
    Class,
    /// About how large they are: by powers of two.
    Size,
    /// Their process.
    Pid,
}

impl GroupBy {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            GroupBy::Name => "name",
            GroupBy::Class => "class",
            GroupBy::Size => "size",
            GroupBy::Pid => "pid",
        }
    }
}

/// What the allocations of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Common {
    /// Their name, or that they have none.
    Name(Option<Foreign>),
    /// Their class.
    Class(Class),
    /// The bin of their size.
    Size(u32),
    /// Their process.
    Pid(u32),
}

impl Common {
    fn of(item: &Item, by: GroupBy) -> Common {
        match by {
            GroupBy::Name => Common::Name(item.name.clone()),
            GroupBy::Class => Common::Class(item.class),
            GroupBy::Size => Common::Size(bucket(item.size)),
            GroupBy::Pid => Common::Pid(item.pid),
        }
    }

    /// The query that asks for these and no others.
    pub fn query(&self) -> String {
        match self {
            Common::Name(name) => name_query(name.as_ref()),
            Common::Class(class) => format!("class={}", class.name()),
            Common::Size(bucket) => size_query(*bucket),
            Common::Pid(pid) => format!("pid={pid}"),
        }
    }
}

/// Of a name. What has none does not contain even nothing.
pub(super) fn name_query(name: Option<&Foreign>) -> String {
    name.map_or_else(|| "name!~\"\"".to_owned(), |name| format!("name={}", quoted(name)))
}

/// Of sizes in a bin.
pub(super) fn size_query(bucket: u32) -> String {
    let (low, high) = bounds(bucket);
    if low == high { format!("size={low}") } else { format!("size={low}-{high}") }
}

/// As a query reads it back.
pub(super) fn quoted(text: &Foreign) -> String {
    format!("\"{}\"", text.raw().replace('\\', "\\\\").replace('"', "\\\""))
}

impl fmt::Display for Common {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Common::Name(Some(name)) => name.fmt(f),
            Common::Name(None) => f.write_str("(no name)"),
            Common::Class(class) => f.write_str(class.name()),
            Common::Size(bucket) => f.write_str(&size_text(*bucket)),
            Common::Pid(pid) => write!(f, "pid {pid}"),
        }
    }
}

/// A bin for people: `64 KiB - 128 KiB`.
pub fn size_text(bucket: u32) -> String {
    match bounds(bucket) {
        (low, high) if low == high => bytes_short(low),
        (low, high) => format!("{} - {}", bytes_short(low), bytes_short(high.saturating_add(1))),
    }
}

/// Allocations that have something in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What that is.
    pub common: Common,
    /// How many there are.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of the largest.
    pub largest: u64,
    /// Age of the oldest.
    pub oldest_ns: u64,
    /// Age of the newest.
    pub newest_ns: u64,
}

/// The groups of some allocations, in no order.
pub fn group<'a>(items: impl IntoIterator<Item = &'a Item>, by: GroupBy) -> Vec<Group> {
    let mut groups: HashMap<Common, Group> = HashMap::new();
    for item in items {
        let common = Common::of(item, by);
        match groups.get_mut(&common) {
            Some(group) => group.add(item),
            None => {
                groups.insert(common.clone(), Group::of(common, item));
            }
        }
    }
    groups.into_values().collect()
}

impl Group {
    fn of(common: Common, item: &Item) -> Group {
        Group {
            common,
            count: 1,
            bytes: item.size,
            largest: item.size,
            oldest_ns: item.age_ns,
            newest_ns: item.age_ns,
        }
    }

    fn add(&mut self, item: &Item) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(item.size);
        self.largest = self.largest.max(item.size);
        self.oldest_ns = self.oldest_ns.max(item.age_ns);
        self.newest_ns = self.newest_ns.min(item.age_ns);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::query::{ALLOCATION_FIELDS, Query};

    pub(crate) fn item(id: u64, name: Option<&str>, size: u64) -> Item {
        Item {
            device: 0,
            pid: 42,
            class: if size < 1000 { Class::L1 } else { Class::Dram },
            id,
            program: None,
            size,
            address: None,
            bank_bytes: None,
            cores: None,
            core_type: None,
            globally_allocated: false,
            name: name.map(Foreign::from),
            site: None,
            age_ns: id,
        }
    }

    #[test]
    fn a_group_counts_what_its_query_finds() {
        let odd = "a \"b\\\" c,d\u{1b}[2J";
        let names = [Some("weights"), Some(odd), None, Some("weights"), Some(""), Some("Weights")];
        let items: Vec<Item> =
            names.into_iter().zip(0_u64..).map(|(name, id)| item(id, name, id * 700)).collect();
        for by in [GroupBy::Name, GroupBy::Class, GroupBy::Size, GroupBy::Pid] {
            let groups = group(&items, by);
            assert_eq!(groups.iter().map(|group| group.count).sum::<u64>(), 6, "{by:?}");
            for group in groups {
                let query: Query = group.common.query().parse().unwrap();
                query.check(ALLOCATION_FIELDS).unwrap();
                let found: Vec<&Item> = items.iter().filter(|item| query.matches(*item)).collect();
                assert_eq!(found.len() as u64, group.count, "{query}");
                assert_eq!(found.iter().map(|item| item.size).sum::<u64>(), group.bytes);
                assert_eq!(found.iter().map(|item| item.size).max(), Some(group.largest));
                assert_eq!(found.iter().map(|item| item.age_ns).max(), Some(group.oldest_ns));
                assert_eq!(found.iter().map(|item| item.age_ns).min(), Some(group.newest_ns));
            }
        }
    }

    #[test]
    fn groups_are_called_by_what_they_have_in_common() {
        assert_eq!(Common::Name(None).to_string(), "(no name)");
        assert_eq!(Common::Name(Some("a\u{1b}".into())).to_string(), "a\\u{1b}");
        assert_eq!(Common::Size(bucket(70_000)).to_string(), "64 KiB - 128 KiB");
        assert_eq!(Common::Size(0).to_string(), "0 B");
    }
}
