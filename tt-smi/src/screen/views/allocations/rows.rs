//! The rows of the three lists: live allocations, groups of them, and leak suspects.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::lists::allocations::Item;
use crate::lists::groups::{Group, GroupBy, GroupKey, groups};
use crate::lists::suspects::{Place, Suspect};
use crate::model::Word;
use crate::screen::widgets::list::{Column, List};
use crate::screen::widgets::text::{hex, or_unknown};
use crate::segments::pid_text;
use crate::units::{UNKNOWN, age, bytes, percent, plural};

/// Live allocations. With little room: size, class and name.
const ITEM_COLUMNS: &[Column<Item>] = &[
    Column::number("SIZE", 10, 0, |item| bytes(item.size), |item| Some(item.size)),
    Column::words("CLASS", 12, 2, |item| item.class.name().to_owned(), |item| Some(item.class.name())),
    Column::ids("DEV", 4, 3, |item| item.device.to_string(), |item| Some(item.device as u64)),
    Column::ids("PID", 7, 4, |item| pid_text(item.pid, item.claimed), |item| Some(item.pid.into())),
    Column::number("AGE", 6, 5, |item| age(item.age_ns), |item| Some(item.age_ns)),
    Column::ids("ADDRESS", 12, 6, |item| or_unknown(item.address, hex), |item| item.address),
    Column::number(
        "CORES",
        5,
        7,
        |item| or_unknown(item.cores, |cores| cores.to_string()),
        |item| item.cores.map(u64::from),
    ),
    Column::new("CORE", 8, 10, |item| item.core_type.map_or(UNKNOWN, Word::word).to_owned()),
    Column::ids("PROGRAM", 10, 8, |item| or_unknown(item.program, hex), |item| item.program),
    Column::ids("ID", 18, 11, |item| hex(item.id), |item| Some(item.id)),
    Column::words("NAME", 0, 1, label, |item| item.name.as_ref().map(|name| name.raw())),
    Column::words("SITE", 30, 9, site, |item| item.site.as_ref().map(|site| site.raw())),
];

/// Live allocations, largest first.
pub(crate) fn item_list() -> List<Item> {
    List::new(ITEM_COLUMNS, 0, number)
}

fn label(item: &Item) -> String {
    let inside = if item.globally_allocated { " (inside an L1 buffer)" } else { "" };
    match &item.name {
        Some(name) => format!("{name}{inside}"),
        None => format!("{UNKNOWN}{inside}"),
    }
}

fn site(item: &Item) -> String {
    or_unknown(item.site.as_ref(), |site| site.to_string())
}

/// A key that identifies an allocation. A hash of process, device and id: a collision could only make the selection jump.
fn number(item: &Item) -> u64 {
    let whose = item.identity << 16 | (item.device as u64) << 8 | item.class as u64;
    item.id ^ whose.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A group, and the bytes of all groups.
#[derive(Debug)]
pub(super) struct GroupRow {
    pub group: Group,
    /// `None` if there are no bytes at all.
    all_bytes: Option<u64>,
    number: u64,
}

const GROUP_COLUMNS: &[Column<GroupRow>] = &[
    Column::number("BYTES", 10, 0, |row| bytes(row.group.bytes), |row| Some(row.group.bytes)),
    Column::number("SHARE", 5, 3, |row| percent(row.group.bytes, row.all_bytes), |row| Some(row.group.bytes)),
    Column::number("COUNT", 8, 2, |row| row.group.count.to_string(), |row| Some(row.group.count)),
    Column::number("MEAN", 10, 6, |row| bytes(mean(row)), |row| Some(mean(row))),
    Column::number("OLDEST", 7, 4, |row| age(row.group.oldest_ns), |row| Some(row.group.oldest_ns)),
    Column::ids("NEWEST", 7, 5, |row| age(row.group.newest_ns), |row| Some(row.group.newest_ns)),
    Column::new("GROUP", 0, 1, |row| row.group.key.to_string()),
];

fn mean(row: &GroupRow) -> u64 {
    row.group.bytes.checked_div(row.group.count).unwrap_or(0)
}

/// Groups, largest first.
pub(super) fn group_list() -> List<GroupRow> {
    List::new(GROUP_COLUMNS, 0, |row| row.number)
}

/// Groups of the allocations shown.
pub(super) fn group_rows<'a>(items: impl Iterator<Item = &'a Item>, by: GroupBy) -> Vec<GroupRow> {
    let groups = groups(items, by);
    let sum = groups.iter().fold(0, |sum: u64, group| sum.saturating_add(group.bytes));
    let all_bytes = Some(sum).filter(|sum| *sum > 0);
    let row = |group: Group| GroupRow { number: hash(&group.key), group, all_bytes };
    groups.into_iter().map(row).collect()
}

const LEAK_COLUMNS: &[Column<Suspect>] = &[
    Column::number(
        "+BYTES",
        10,
        0,
        |suspect| format!("+{}", bytes(suspect.more_bytes)),
        |suspect| Some(suspect.more_bytes),
    ),
    Column::number("+COUNT", 7, 2, |suspect| format!("+{}", suspect.more), |suspect| Some(suspect.more)),
    Column::number("OVER", 9, 4, over, |suspect| Some(suspect.for_ns)),
    Column::number("LIVE", 7, 6, |suspect| suspect.count.to_string(), |suspect| Some(suspect.count)),
    Column::number("BYTES", 10, 7, |suspect| bytes(suspect.bytes), |suspect| Some(suspect.bytes)),
    Column::ids(
        "PID",
        7,
        3,
        |suspect| suspect.origin.pid.to_string(),
        |suspect| Some(suspect.origin.pid.into()),
    ),
    Column::words(
        "CLASS",
        12,
        5,
        |suspect| suspect.origin.class.name().to_owned(),
        |suspect| Some(suspect.origin.class.name()),
    ),
    Column::new("WHAT", 0, 1, what),
];

/// Leak suspects, largest growth first.
pub(super) fn leak_list() -> List<Suspect> {
    List::new(LEAK_COLUMNS, 0, |suspect| hash(&suspect.origin))
}

/// A duration, or a number of steps.
fn over(suspect: &Suspect) -> String {
    suspect.steps.map_or_else(|| age(suspect.for_ns), |steps| plural(steps, "step"))
}

fn what(suspect: &Suspect) -> String {
    match &suspect.origin.place {
        Place::Site(site) => format!("at {site}"),
        Place::Like(Some(name), size) => format!("{name}, {}", GroupKey::Size(*size)),
        Place::Like(None, size) => format!("no name, {}", GroupKey::Size(*size)),
    }
}

/// A key that identifies a row.
fn hash(key: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}
