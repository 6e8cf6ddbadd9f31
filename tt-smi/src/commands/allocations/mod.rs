//! `tt-smi allocations`: live allocations, summed up per device and class, then one by one.

pub(crate) mod json;

use std::io::{self, Write};

use crate::cli::{AllocationsArgs, SortBy};
use crate::escape::fit;
use crate::lists::allocations::{Item, Listing};
use crate::lists::groups::{Group, GroupKey, groups, histogram};
use crate::output::columns::{Align, Columns};
use crate::output::json::write as write_json;
use crate::output::paint::Paint;
use crate::segments::pid_text;
use crate::select::select;
use crate::settings::Settings;
use crate::units::{UNKNOWN, age, bytes, bytes_short, plural};
use json::ListingJson;

/// Widest call site in the table; JSON has it in full.
const SITE: usize = 120;

pub(crate) fn run(args: &AllocationsArgs, settings: &Settings) -> anyhow::Result<()> {
    let (segments, directory) = super::look(settings)?;
    let devices = select(&args.only.on.device, &directory)?;
    let mut listing = Listing::default();
    for segment in segments.of(&args.only.pid)? {
        listing.add(segment, &directory, |item| {
            devices.contains(&item.device)
                && (args.class.is_empty() || args.class.iter().any(|filter| filter.matches(item.class)))
                && args.query.matches(item)
        });
    }
    listing.lack(&segments.unread);
    listing.sort(args.sort);
    let shown = Shown {
        why: super::why_nothing_listed(&segments),
        is_part: !(args.only.is_all() && args.class.is_empty() && args.query.is_empty()),
        most: args.top.unwrap_or(usize::MAX),
        groups: args.group.map(|by| groups(&listing.items, by)),
        sizes: args.histogram.then(|| histogram(&listing.items)),
    };
    let mut out = super::stdout();
    if args.json {
        write_json(&mut out, &ListingJson::new(&listing, &shown, settings.namespace.as_str()))?;
    } else {
        write(&mut out, &listing, &shown, settings.paint)?;
    }
    out.flush()?;
    listing.doubts.iter().for_each(|doubt| eprintln!("tt-smi: {doubt}"));
    Ok(())
}

/// Prints everything that is live, or all kernels, largest first.
pub(crate) fn print_all(settings: &Settings, kernels_only: bool) -> anyhow::Result<()> {
    let (segments, directory) = super::look(settings)?;
    let mut listing = Listing::default();
    for segment in &segments.live {
        listing.add(segment, &directory, |item| !kernels_only || item.class.kernel_type().is_some());
    }
    listing.lack(&segments.unread);
    listing.sort(SortBy::Size);
    let why = super::why_nothing_listed(&segments);
    let shown = Shown { why, is_part: kernels_only, most: usize::MAX, groups: None, sizes: None };
    let mut out = super::stdout();
    write(&mut out, &listing, &shown, settings.paint)?;
    Ok(out.flush()?)
}

/// Which parts of a listing to print.
struct Shown {
    /// Why there is nothing at all, if so.
    why: &'static str,
    /// Whether a filter was given.
    is_part: bool,
    /// Most allocations or groups to print.
    most: usize,
    /// Groups to print instead of single allocations.
    groups: Option<Vec<Group>>,
    /// Size histogram.
    sizes: Option<Vec<Group>>,
}

fn write(out: &mut dyn Write, listing: &Listing, shown: &Shown, paint: Paint) -> io::Result<()> {
    if listing.items.is_empty() {
        return writeln!(
            out,
            "No {} allocations{}.",
            if shown.is_part { "matching" } else { "live" },
            shown.why
        );
    }
    write_subtotals(out, listing, paint)?;
    if let Some(sizes) = &shown.sizes {
        writeln!(out)?;
        write_histogram(out, sizes, paint)?;
    }
    writeln!(out)?;
    if let Some(found) = &shown.groups {
        return write_groups(out, found, shown.most, paint);
    }
    let most = shown.most.min(listing.items.len());
    write_items(out, &listing.items[..most], paint)?;
    match listing.items.len() - most {
        0 => Ok(()),
        more => writeln!(out, "{}", paint.dim(&format!("... and {more} more"))),
    }
}

fn write_subtotals(out: &mut dyn Write, listing: &Listing, paint: Paint) -> io::Result<()> {
    use Align::{Left, Right};
    let mut columns = Columns::new(&[("DEV", Right), ("CLASS", Left), ("BYTES", Right), ("COUNT", Right)]);
    for ((device, class), (total, count)) in &listing.subtotals {
        columns.push(vec![device.to_string(), class.name().to_owned(), bytes(*total), count.to_string()]);
    }
    columns.write(out, paint)
}

/// Single allocations; with a column for the call site if any process records it.
fn write_items(out: &mut dyn Write, items: &[Item], paint: Paint) -> io::Result<()> {
    use Align::{Left, Right};
    let mut heads = vec![
        ("DEV", Right),
        ("PID", Right),
        ("CLASS", Left),
        ("ID", Right),
        ("SIZE", Right),
        ("CORES", Right),
        ("AGE", Right),
        ("NAME", Left),
    ];
    let sites = items.iter().any(|item| item.site.is_some());
    heads.extend(sites.then_some(("CALL SITE", Left)));
    let mut columns = Columns::new(&heads);
    for item in items {
        let mut cells = vec![
            item.device.to_string(),
            pid_text(item.pid, item.claimed),
            item.class.name().to_owned(),
            format!("{:#x}", item.id),
            bytes(item.size),
            item.cores.map_or_else(|| UNKNOWN.to_owned(), |cores| cores.to_string()),
            age(item.age_ns),
            item.label(),
        ];
        cells.extend(
            sites.then(|| item.site.as_ref().map_or_else(|| UNKNOWN.to_owned(), |site| fit(site, SITE))),
        );
        columns.push(cells);
    }
    columns.write(out, paint)
}

/// Length of the longest bar.
const BAR_LENGTH: u64 = 30;

/// Writes at most `shown` groups.
fn write_groups(out: &mut dyn Write, groups: &[Group], shown: usize, paint: Paint) -> io::Result<()> {
    use Align::{Left, Right};
    let heads = [("GROUP", Left), ("COUNT", Right), ("BYTES", Right), ("LARGEST", Right), ("OLDEST", Right)];
    let mut columns = Columns::new(&heads);
    for group in groups.iter().take(shown) {
        columns.push(vec![
            group_name(&group.key),
            group.count.to_string(),
            bytes(group.bytes),
            bytes(group.largest),
            age(group.oldest_ns),
        ]);
    }
    columns.write(out, paint)?;
    match groups.len().saturating_sub(shown) {
        0 => Ok(()),
        more => {
            let text = format!("... and {}", plural(more as u64, "more group"));
            writeln!(out, "{}", paint.dim(&text))
        }
    }
}

/// Writes the size histogram.
fn write_histogram(out: &mut dyn Write, sizes: &[Group], paint: Paint) -> io::Result<()> {
    use Align::{Left, Right};
    let mut columns = Columns::new(&[("SIZE", Left), ("COUNT", Right), ("BYTES", Right), ("", Left)]);
    let most = sizes.iter().map(|size| size.count).max().unwrap_or(1).max(1);
    for size in sizes {
        // A bin that is not empty gets at least one mark.
        let length = (size.count * BAR_LENGTH).div_ceil(most);
        let bar = "#".repeat(length as usize);
        columns.push(vec![group_name(&size.key), size.count.to_string(), bytes(size.bytes), bar]);
    }
    columns.write(out, paint)
}

fn group_name(key: &GroupKey) -> String {
    match key {
        GroupKey::Name(name) => name.as_ref().map_or_else(|| UNKNOWN.to_owned(), |name| fit(name, 48)),
        GroupKey::Class(class) => class.name().to_owned(),
        GroupKey::Pid(pid) => format!("pid {pid}"),
        GroupKey::Size(0) => "no size of its own".to_owned(),
        GroupKey::Size(from) => match from.checked_mul(2) {
            Some(to) => format!("{} to {}", bytes_short(*from), bytes_short(to)),
            None => format!("from {}", bytes_short(*from)),
        },
    }
}
