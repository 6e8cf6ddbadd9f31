//! Groups of allocations as rows.

use crate::lists::allocations::Item;
use crate::lists::groups::{Group, GroupBy, Key, groups};
use crate::output::units::{age, bytes, percent};
use crate::screen::widgets::list::{Column, List};

/// A group, and the bytes of all groups.
#[derive(Debug)]
pub(super) struct Row {
    pub group: Group,
    /// `None` if there are no bytes at all.
    all_bytes: Option<u64>,
    number: u64,
}

const COLUMNS: &[Column<Row>] = &[
    Column::number("BYTES", 10, 0, |row| bytes(row.group.bytes), |row| Some(row.group.bytes)),
    Column::number("SHARE", 5, 3, |row| percent(row.group.bytes, row.all_bytes), |row| Some(row.group.bytes)),
    Column::number("COUNT", 8, 2, |row| row.group.count.to_string(), |row| Some(row.group.count)),
    Column::number("MEAN", 10, 6, |row| bytes(mean(row)), |row| Some(mean(row))),
    Column::number("OLDEST", 7, 4, |row| age(row.group.oldest_ns), |row| Some(row.group.oldest_ns)),
    Column::ids("NEWEST", 7, 5, |row| age(row.group.newest_ns), |row| Some(row.group.newest_ns)),
    Column::new("GROUP", 0, 1, |row| row.group.key.to_string()),
];

fn mean(row: &Row) -> u64 {
    row.group.bytes.checked_div(row.group.count).unwrap_or(0)
}

/// Largest first.
pub(super) fn list() -> List<Row> {
    List::new(COLUMNS, 0, |row| row.number)
}

/// Groups of the allocations shown.
pub(super) fn rows<'a>(items: impl Iterator<Item = &'a Item>, by: GroupBy) -> Vec<Row> {
    let groups = groups(items, by);
    let sum = groups.iter().fold(0, |sum: u64, group| sum.saturating_add(group.bytes));
    let all_bytes = Some(sum).filter(|sum| *sum > 0);
    let row = |group: Group| Row { number: hash(&group.key), group, all_bytes };
    groups.into_iter().map(row).collect()
}

fn hash(key: &Key) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}
