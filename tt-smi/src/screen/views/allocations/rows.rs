//! The rows of the three lists: live allocations, folded over the devices of a mesh, groups of them, and leak suspects.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::lists::allocations::{Item, Listing};
use crate::lists::fold::devices_text;
use crate::lists::groups::{Group, GroupBy, GroupKey, groups};
use crate::lists::suspects::{Place, Suspect};
use crate::model::Word;
use crate::screen::theme::Part;
use crate::screen::widgets::list::{Column, List};
use crate::screen::widgets::text::{hex, or_unknown};
use crate::segments::pid_text;
use crate::units::{UNKNOWN, age, bytes, percent};

/// A line of the list: an allocation, and the same on the other devices of a mesh, if the list is folded.
#[derive(Clone, Debug)]
pub(crate) struct ItemRow {
    listing: Arc<Listing>,
    /// Where they are in the listing: a call on a mesh is recorded on its devices one after the other, so what it
    /// allocated stands together.
    first: u32,
    count: u32,
}

impl ItemRow {
    /// The allocation, on the first of its devices.
    pub(crate) fn item(&self) -> &Item {
        &self.listing.items[self.first as usize]
    }

    /// The same on each of its devices.
    pub(crate) fn items(&self) -> &[Item] {
        &self.listing.items[self.first as usize..][..self.count as usize]
    }

    /// `2`, `0-3 x4`.
    pub(crate) fn devices(&self) -> String {
        match self.items() {
            [item] => item.device.to_string(),
            items => devices_text(items.iter().map(|item| item.device).collect()),
        }
    }

    /// Bytes on all of its devices.
    pub(crate) fn total(&self) -> u64 {
        self.item().size.saturating_mul(self.count.into())
    }

    /// Takes in the next allocation, if it is the same on one more device.
    fn take(&mut self, place: u32) -> bool {
        let next = &self.listing.items[place as usize];
        let is_more = self.first + self.count == place
            && self.item().is_same_on_other_device(next)
            && self.items().iter().all(|known| known.device != next.device);
        self.count += u32::from(is_more);
        is_more
    }
}

/// The lines of the wanted allocations. What a filter leaves out is no part of a line, so sums over lines are sums over
/// what is wanted.
pub(crate) fn item_rows(
    listing: &Arc<Listing>,
    is_folded: bool,
    mut wanted: impl FnMut(&Item) -> bool,
) -> Vec<ItemRow> {
    let mut rows: Vec<ItemRow> = Vec::new();
    for (place, _) in (0..).zip(&listing.items).filter(|(_, item)| wanted(item)) {
        let is_taken = is_folded && rows.last_mut().is_some_and(|row| row.take(place));
        if !is_taken {
            rows.push(ItemRow { listing: listing.clone(), first: place, count: 1 });
        }
    }
    rows
}

/// Live allocations. With little room: size, class and name.
const ITEM_COLUMNS: &[Column<ItemRow>] = &[
    Column::number("SIZE/DEV", 10, 0, |row| bytes(row.item().size), |row| Some(row.item().size)),
    Column::words(
        "CLASS",
        12,
        2,
        |row: &ItemRow| row.item().class.name().to_owned(),
        |row: &ItemRow| Some(row.item().class.name()),
    )
    .colored(|row| Part::Of(row.item().class)),
    Column::ids("DEV", 8, 3, ItemRow::devices, |row| Some(row.item().device as u64)),
    Column::ids(
        "PID",
        7,
        4,
        |row| pid_text(row.item().pid, row.item().claimed),
        |row| Some(row.item().pid.into()),
    ),
    Column::number("AGE", 6, 5, |row| age(row.item().age_ns), |row| Some(row.item().age_ns)),
    Column::ids("ADDRESS", 12, 6, |row| or_unknown(row.item().address, hex), |row| row.item().address),
    Column::number("TOTAL", 10, 7, |row| bytes(row.total()), |row| Some(row.total())),
    Column::number(
        "CORES",
        5,
        8,
        |row| or_unknown(row.item().cores, |cores| cores.to_string()),
        |row| row.item().cores.map(u64::from),
    ),
    Column::new("CORE", 8, 11, |row| row.item().core_type.map_or(UNKNOWN, Word::word).to_owned()),
    Column::ids("PROGRAM", 10, 9, |row| or_unknown(row.item().program, hex), |row| row.item().program),
    Column::ids("ID", 18, 12, |row| hex(row.item().id), |row| Some(row.item().id)),
    Column::words("NAME", 0, 1, label, |row| row.item().name.as_ref().map(|name| name.raw())),
    Column::words("SITE", 30, 10, site, |row| row.item().site.as_ref().map(|site| site.raw())),
];

/// Live allocations, largest first.
pub(crate) fn item_list() -> List<ItemRow> {
    List::new(ITEM_COLUMNS, 0, |row| number(row.item()))
}

fn label(row: &ItemRow) -> String {
    let inside = if row.item().globally_allocated { " (inside an L1 buffer)" } else { "" };
    match &row.item().name {
        Some(name) => format!("{name}{inside}"),
        None => format!("{UNKNOWN}{inside}"),
    }
}

fn site(row: &ItemRow) -> String {
    or_unknown(row.item().site.as_ref(), |site| site.to_string())
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
    Column::number("OVER", 9, 4, Suspect::over, |suspect| Some(suspect.for_ns)),
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

fn what(suspect: &Suspect) -> String {
    let called = suspect.called(usize::MAX);
    match &suspect.origin.place {
        Place::Site(_) => called,
        Place::Like(_, size) => format!("{called}, {}", GroupKey::Size(*size)),
    }
}

/// A key that identifies a row.
fn hash(key: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tt_shm_reader::Class;

    fn on(device: usize, id: u64, size: u64) -> Item {
        Item {
            device,
            entry: device as u8,
            identity: 1,
            pid: 1,
            claimed: false,
            class: Class::Dram,
            id,
            program: None,
            size,
            address: Some(id),
            bank_bytes: None,
            cores: None,
            core_type: None,
            globally_allocated: false,
            name: Some("weights".into()),
            site: None,
            age_ns: 100 - device as u64,
        }
    }

    fn folded(items: &[Item], wanted: fn(&Item) -> bool) -> Vec<(String, u64)> {
        let listing = Arc::new(Listing { items: items.to_vec(), ..Listing::default() });
        item_rows(&listing, true, wanted).iter().map(|row| (row.devices(), row.total())).collect()
    }

    #[test]
    fn the_devices_of_a_mesh_are_one_line_and_a_difference_breaks_it() {
        let line = |devices: &str, total| (devices.to_owned(), total);
        let mesh: Vec<Item> = (0..4).map(|device| on(device, 7, 10)).collect();
        assert_eq!(folded(&mesh, |_| true), [line("0-3 x4", 40)]);
        let mut odd = mesh.clone();
        odd[2].size = 11;
        assert_eq!(folded(&odd, |_| true), [line("0-1 x2", 20), line("2", 11), line("3", 10)]);
        let twice: Vec<Item> = mesh.iter().chain(&mesh).cloned().collect();
        assert_eq!(
            folded(&twice, |_| true),
            [line("0-3 x4", 40), line("0-3 x4", 40)],
            "never a device twice"
        );
        let names = [on(0, 7, 10), Item { name: None, ..on(1, 7, 10) }];
        assert_eq!(folded(&names, |_| true).len(), 2);
    }

    #[test]
    fn what_a_filter_leaves_out_is_in_no_sum() {
        let mesh: Vec<Item> = (0..4).map(|device| on(device, 7, 10)).collect();
        assert_eq!(folded(&mesh, |item| item.device > 1), [("2-3 x2".to_owned(), 20)]);
    }
}
