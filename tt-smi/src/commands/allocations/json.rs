//! Live allocations as JSON.

use serde::Serialize;
use tt_shm_reader::Class;

use super::Shown;
use crate::lists::allocations::{Item, Listing};
use crate::lists::extents::Overlaps;
use crate::lists::groups::{Group, GroupKey};
use crate::model::{Clock, word};
use crate::output::json::Envelope;
#[cfg(test)]
use crate::schema;

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ListingJson<'a> {
    #[serde(flatten)]
    envelope: Envelope,
    /// Whether the list is complete and of one moment.
    exact: bool,
    /// Live allocations that had no room in a list; totals of devices have them.
    unlisted: u64,
    /// Of all that match, by device and class.
    subtotals: Vec<SubtotalJson>,
    /// Addresses that are claimed more than once, by device and memory: by two processes, by two allocators, by program
    /// memory and a buffer, or by two buffers of one allocator. Of all that match.
    overlaps: Vec<Overlaps>,
    /// How many there are of each size, smallest first; `None` without --histogram.
    histogram: Option<Vec<SizeJson>>,
    /// Most bytes first; `None` without --group.
    groups: Option<Vec<&'a Group>>,
    /// In the order asked for, at most --top; `None` with --group.
    allocations: Option<Vec<&'a Item>>,
    /// What could not be read or is in doubt; with file, owner, reason and what to do. Many alike are one.
    errors: &'a [String],
}

/// A class on a device.
///
/// The subtotals of a listing are a map; in JSON they are a list.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SubtotalJson {
    /// Index of the device.
    device: usize,
    /// Memory class.
    #[serde(serialize_with = "word")]
    #[cfg_attr(test, schemars(schema_with = "schema::words::<Class>"))]
    class: Class,
    /// Bytes.
    live_bytes: u64,
    /// Allocations.
    live_count: u64,
}

/// A bucket.
///
/// Not a [`Group`]: the key of a bucket is a number.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SizeJson {
    /// The bucket has sizes from this power of two to below the next; 0: without bytes of its own.
    from_bytes: u64,
    /// Allocations.
    live_count: u64,
    /// Bytes.
    live_bytes: u64,
}

impl<'a> ListingJson<'a> {
    pub(super) fn new(listing: &'a Listing, shown: &'a Shown, namespace: &str) -> ListingJson<'a> {
        let subtotals = listing.subtotals.iter().map(|(&(device, class), &(live_bytes, live_count))| {
            SubtotalJson { device, class, live_bytes, live_count }
        });
        let groups = shown.groups.as_ref();
        ListingJson {
            envelope: Envelope::new(Clock::now(), &crate::model::host(), namespace),
            exact: listing.is_exact(),
            unlisted: listing.unlisted,
            subtotals: subtotals.collect(),
            overlaps: Overlaps::all(listing, shown.is_part),
            histogram: shown.sizes.as_ref().map(|sizes| sizes.iter().map(SizeJson::new).collect()),
            groups: groups.map(|groups| groups.iter().take(shown.most).collect()),
            allocations: groups.is_none().then(|| listing.items.iter().take(shown.most).collect()),
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
