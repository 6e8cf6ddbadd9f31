//! Groups of live allocations.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;

use clap::ValueEnum;
use serde::{Serialize, Serializer};
use tt_shm_reader::Class;

use super::allocations::Item;
use crate::escape::Foreign;
use crate::model::millis;
use crate::units::bytes_short;

/// What to group by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GroupBy {
    /// What the process calls them.
    Name,
    /// Their memory class.
    Class,
    /// Their size, rounded down to a power of two.
    Size,
    /// Their process.
    Pid,
}

/// What the members of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKey {
    /// Their name; `None` if they have none.
    Name(Option<Foreign>),
    Class(Class),
    /// Their size, down to a power of two; 0 for those without bytes of their own.
    Size(u64),
    Pid(u32),
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Group {
    /// What they have in common: name, class, pid, or for sizes the power of two that none is below; `None`: they have
    /// no name.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub key: GroupKey,
    /// Number of members.
    #[serde(rename = "live_count")]
    pub count: u64,
    /// Bytes.
    #[serde(rename = "live_bytes")]
    pub bytes: u64,
    /// The largest.
    #[serde(rename = "largest_bytes")]
    pub largest: u64,
    /// Age of the oldest; in JSON, in milliseconds.
    #[serde(rename = "oldest_age_ms", serialize_with = "millis")]
    pub oldest_ns: u64,
    /// How long the newest has been live.
    #[serde(skip)]
    pub newest_ns: u64,
}

/// The groups, most bytes first.
pub fn groups<'a>(items: impl IntoIterator<Item = &'a Item>, by: GroupBy) -> Vec<Group> {
    let mut groups = collect(items, by);
    groups.sort_by_key(|group| Reverse(group.bytes));
    groups
}

/// A histogram of sizes, smallest first, with the empty bins in between.
pub fn histogram<'a>(items: impl IntoIterator<Item = &'a Item>) -> Vec<Group> {
    // Not `collect`: the screen counts a hundred thousand each second, and an array index needs no hash.
    let mut found = [const { None::<Group> }; u64::BITS as usize + 1];
    for item in items {
        let place = item.size.checked_ilog2().map_or(0, |power| power as usize + 1);
        found[place].get_or_insert_with(|| Group::before(GroupKey::Size(power(item.size)), item)).add(item);
    }
    let mut buckets: Vec<Group> = Vec::new();
    for group in found.into_iter().flatten() {
        while let Some(empty) = buckets.last().and_then(|last| gap(&last.key, &group.key)) {
            buckets.push(Group::empty(empty));
        }
        buckets.push(group);
    }
    buckets
}

/// The empty bin after `last`, if there is one before the next. There is none between no bytes and some.
fn gap(last: &GroupKey, next: &GroupKey) -> Option<GroupKey> {
    match (last, next) {
        (GroupKey::Size(last), GroupKey::Size(next)) if *last > 0 && last * 2 < *next => {
            Some(GroupKey::Size(last * 2))
        }
        _ => None,
    }
}

/// A size, rounded down to a power of two.
pub(super) fn power(size: u64) -> u64 {
    size.checked_ilog2().map_or(0, |power| 1 << power)
}

/// The groups, by key.
fn collect<'a>(items: impl IntoIterator<Item = &'a Item>, by: GroupBy) -> Vec<Group> {
    let mut groups: HashMap<GroupKey, Group> = HashMap::new();
    for item in items {
        let key = GroupKey::of(item, by);
        match groups.get_mut(&key) {
            Some(group) => group.add(item),
            None => {
                let mut group = Group::before(key.clone(), item);
                group.add(item);
                groups.insert(key, group);
            }
        }
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    groups.sort_by(|a, b| a.key.cmp(&b.key));
    groups
}

impl Group {
    fn empty(key: GroupKey) -> Group {
        Group { key, count: 0, bytes: 0, largest: 0, oldest_ns: 0, newest_ns: 0 }
    }

    /// An empty group for its first member.
    fn before(key: GroupKey, first: &Item) -> Group {
        Group { newest_ns: first.age_ns, ..Group::empty(key) }
    }

    fn add(&mut self, item: &Item) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(item.size);
        self.largest = self.largest.max(item.size);
        self.oldest_ns = self.oldest_ns.max(item.age_ns);
        self.newest_ns = self.newest_ns.min(item.age_ns);
    }
}

impl GroupKey {
    fn of(item: &Item, by: GroupBy) -> GroupKey {
        match by {
            GroupBy::Name => GroupKey::Name(item.name.clone()),
            GroupBy::Class => GroupKey::Class(item.class),
            GroupBy::Size => GroupKey::Size(power(item.size)),
            GroupBy::Pid => GroupKey::Pid(item.pid),
        }
    }

    /// The query that matches exactly these.
    pub fn query(&self) -> String {
        match self {
            // An allocation without a name does not even contain the empty string.
            GroupKey::Name(None) => "name!~\"\"".to_owned(),
            GroupKey::Name(Some(name)) => format!("name={}", quoted(name)),
            GroupKey::Class(class) => format!("class={}", class.name()),
            GroupKey::Size(0) => "size=0".to_owned(),
            GroupKey::Size(from) => format!("size={from}-{}", from + (from - 1)),
            GroupKey::Pid(pid) => format!("pid={pid}"),
        }
    }
}

impl Serialize for GroupKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            GroupKey::Name(name) => name.serialize(serializer),
            GroupKey::Class(class) => serializer.serialize_str(class.name()),
            GroupKey::Size(from) => serializer.collect_str(from),
            GroupKey::Pid(pid) => serializer.collect_str(pid),
        }
    }
}

/// Quoted, so that a query reads it back.
pub(super) fn quoted(text: &Foreign) -> String {
    format!("\"{}\"", text.raw().replace('\\', "\\\\").replace('"', "\\\""))
}

/// `64 KiB - 128 KiB`.
impl fmt::Display for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupKey::Name(Some(name)) => name.fmt(f),
            GroupKey::Name(None) => f.write_str("(no name)"),
            GroupKey::Class(class) => f.write_str(class.name()),
            GroupKey::Size(0) => f.write_str("0 B"),
            GroupKey::Size(from) => match from.checked_mul(2) {
                Some(to) => write!(f, "{} - {}", bytes_short(*from), bytes_short(to)),
                None => write!(f, "from {}", bytes_short(*from)),
            },
            GroupKey::Pid(pid) => write!(f, "pid {pid}"),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
