//! Live allocations as JSON.

use serde::Serialize;
use tt_shm_reader::Class;

use super::Shown;
use crate::escape::Foreign;
use crate::lists::allocations::{Item, Listing};
use crate::lists::extents::Overlaps;
use crate::lists::groups::{Group, GroupKey};
use crate::model::{Clock, core_type_name};
use crate::output::json::Envelope;

#[derive(Serialize)]
pub(super) struct ListingJson<'a> {
    #[serde(flatten)]
    envelope: Envelope,
    exact: bool,
    unlisted: u64,
    subtotals: Vec<SubtotalJson>,
    overlaps: Vec<Overlaps>,
    /// The size histogram; `null` unless requested.
    histogram: Option<Vec<SizeJson>>,
    /// `null` unless requested.
    groups: Option<Vec<GroupJson>>,
    /// `null` if groups are listed instead.
    allocations: Option<Vec<ItemJson<'a>>>,
    errors: &'a [String],
}

#[derive(Serialize)]
struct SubtotalJson {
    device: usize,
    class: &'static str,
    live_bytes: u64,
    live_count: u64,
}

#[derive(Serialize)]
struct ItemJson<'a> {
    device: usize,
    pid: u32,
    /// Whether /proc does not confirm the pid.
    claimed: bool,
    class: &'static str,
    id: u64,
    program: Option<u64>,
    size_bytes: u64,
    address: Option<u64>,
    cores: Option<u32>,
    core_type: Option<&'static str>,
    /// A circular buffer inside an L1 buffer, without bytes of its own.
    globally_allocated: bool,
    name: Option<&'a Foreign>,
    site: Option<&'a Foreign>,
    age_ms: u64,
}

#[derive(Serialize)]
struct SizeJson {
    from_bytes: u64,
    live_count: u64,
    live_bytes: u64,
}

#[derive(Serialize)]
struct GroupJson {
    /// Name, class, pid, or the lower bound of the size bin; `null` for allocations without a name.
    key: Option<String>,
    live_count: u64,
    live_bytes: u64,
    largest_bytes: u64,
    oldest_age_ms: u64,
}

impl<'a> ListingJson<'a> {
    pub(super) fn new(listing: &'a Listing, shown: &Shown, namespace: &str) -> ListingJson<'a> {
        let subtotal =
            |((device, class), (live_bytes, live_count)): (&(usize, Class), &(u64, u64))| SubtotalJson {
                device: *device,
                class: class.name(),
                live_bytes: *live_bytes,
                live_count: *live_count,
            };
        ListingJson {
            envelope: Envelope::new(Clock::now(), &crate::model::host(), namespace),
            exact: listing.is_exact(),
            unlisted: listing.unlisted,
            subtotals: listing.subtotals.iter().map(subtotal).collect(),
            overlaps: Overlaps::all(listing, shown.is_part),
            histogram: shown.sizes.as_ref().map(|sizes| sizes.iter().map(SizeJson::new).collect()),
            groups: shown
                .groups
                .as_ref()
                .map(|all| all.iter().take(shown.most).map(GroupJson::new).collect()),
            allocations: shown
                .groups
                .is_none()
                .then(|| listing.items.iter().take(shown.most).map(ItemJson::new).collect()),
            errors: &listing.doubts,
        }
    }
}

impl SizeJson {
    fn new(group: &Group) -> SizeJson {
        let from_bytes = if let GroupKey::Size(from) = group.key { from } else { 0 };
        SizeJson { from_bytes, live_count: group.count, live_bytes: group.bytes }
    }
}

impl GroupJson {
    fn new(group: &Group) -> GroupJson {
        let key = match &group.key {
            GroupKey::Name(name) => name.as_ref().map(|name| name.raw().to_owned()),
            GroupKey::Class(class) => Some(class.name().to_owned()),
            GroupKey::Size(from) => Some(from.to_string()),
            GroupKey::Pid(pid) => Some(pid.to_string()),
        };
        GroupJson {
            key,
            live_count: group.count,
            live_bytes: group.bytes,
            largest_bytes: group.largest,
            oldest_age_ms: group.oldest_ns / 1_000_000,
        }
    }
}

impl<'a> ItemJson<'a> {
    fn new(item: &'a Item) -> ItemJson<'a> {
        ItemJson {
            device: item.device,
            pid: item.pid,
            claimed: item.claimed,
            class: item.class.name(),
            id: item.id,
            program: item.program,
            size_bytes: item.size,
            address: item.address,
            cores: item.cores,
            core_type: item.core_type.map(core_type_name),
            globally_allocated: item.globally_allocated,
            name: item.name.as_ref(),
            site: item.site.as_ref(),
            age_ms: item.age_ns / 1_000_000,
        }
    }
}
