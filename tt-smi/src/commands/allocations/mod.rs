//! `tt-smi allocations`: what is live, per device and class, then one by one.

mod json;

use std::collections::BTreeMap;
use std::io::{self, Write};

use tt_shm_reader::{Allocation, Class, CoreType, RowKind, Segment, UNKNOWN as NO_ADDRESS, flags};

use crate::cli::{AllocationsArgs, SortBy};
use crate::directory::Directory;
use crate::escape::{Foreign, fit};
use crate::output::columns::{Align, Columns};
use crate::output::json::write as write_json;
use crate::output::paint::Paint;
use crate::output::units::{UNKNOWN, age, bytes, plural};
use crate::segments::lost;
use crate::select::select;
use crate::settings::Settings;
use json::ListingJson;

/// Runs it.
pub(crate) fn run(args: &AllocationsArgs, settings: &Settings) -> anyhow::Result<()> {
    let (segments, directory) = super::look(settings)?;
    let devices = select(&args.device, &directory)?;
    let mut listing = Listing::default();
    for segment in segments.of(&args.pid) {
        listing.add(segment, &directory, |item| {
            devices.contains(&item.device)
                && (args.class.is_empty() || args.class.iter().any(|filter| filter.matches(item.class)))
        });
    }
    listing.sort(args.sort);
    let shown = args.top.unwrap_or(usize::MAX).min(listing.items.len());
    let mut out = super::stdout();
    if args.json {
        write_json(&mut out, &ListingJson::new(&listing, shown, settings.namespace.as_str()))?;
    } else {
        write(&mut out, &listing, shown, settings.paint)?;
    }
    out.flush()?;
    listing.doubts.iter().for_each(|doubt| eprintln!("tt-smi: {doubt}"));
    Ok(())
}

/// Something live.
#[derive(Debug)]
struct Item {
    device: usize,
    pid: u32,
    class: Class,
    id: u64,
    program: Option<u64>,
    size: u64,
    address: Option<u64>,
    cores: Option<u32>,
    core_type: Option<CoreType>,
    globally_allocated: bool,
    name: Option<Foreign>,
    site: Option<Foreign>,
    age_ns: u64,
}

/// What is live, and what is in doubt about it.
#[derive(Debug, Default)]
struct Listing {
    items: Vec<Item>,
    /// By device and class: bytes and number.
    subtotals: BTreeMap<(usize, Class), (u64, u64)>,
    doubts: Vec<String>,
    /// Processes whose list is not that of one moment.
    inexact: u64,
    unlisted: u64,
}

impl Listing {
    fn add(&mut self, segment: &Segment, directory: &Directory, wanted: impl Fn(&Item) -> bool) {
        let indices: Vec<Option<usize>> =
            segment.devices().iter().map(|entry| directory.index_of(entry.chip_id)).collect();
        let list = segment.allocations();
        let pid = crate::segments::shown_pid(segment);
        self.doubts.extend(lost(segment));
        if !list.exact {
            self.inexact += 1;
            self.doubts.push(format!(
                "pid {pid}: allocates faster than its list can be read; the list is not exact ({} missed)",
                plural(list.missed, "event")
            ));
        }
        if list.unlisted > 0 {
            self.unlisted += list.unlisted;
            let unlisted = plural(list.unlisted, "live allocation");
            self.doubts.push(format!("pid {pid}: {unlisted} not listed: it had no room; totals are exact"));
        }
        for allocation in list.list {
            let Some(item) = Item::new(allocation, pid, &indices).filter(&wanted) else { continue };
            let (bytes, count) = self.subtotals.entry((item.device, item.class)).or_default();
            *bytes = bytes.saturating_add(item.size);
            *count += 1;
            self.items.push(item);
        }
    }

    fn sort(&mut self, by: SortBy) {
        match by {
            SortBy::Size => {
                self.items.sort_by_key(|item| (std::cmp::Reverse(item.size), item.device, item.pid))
            }
            SortBy::Age => {
                self.items.sort_by_key(|item| (std::cmp::Reverse(item.age_ns), item.device, item.pid))
            }
        }
    }
}

impl Item {
    /// `None` for a row of a later version, or of a device that is not listed.
    fn new(allocation: Allocation, pid: u32, indices: &[Option<usize>]) -> Option<Item> {
        let Allocation { row, name, site, age_ns } = allocation;
        let is_kernel = row.kind()? == RowKind::Kernel;
        let class = row.class()?;
        Some(Item {
            device: *indices.get(usize::from(row.device))?.as_ref()?,
            pid,
            class,
            id: row.id,
            program: row.program(),
            size: row.size,
            // A kernel's row has the hash of its binary there.
            address: Some(row.address).filter(|address| !is_kernel && *address != NO_ADDRESS),
            cores: Some(row.cores).filter(|cores| *cores != 0),
            core_type: in_cores(class).then(|| row.core_type()),
            globally_allocated: row.flags & flags::GLOBAL != 0,
            name: name.map(Foreign::from),
            site: site.map(Foreign::from),
            age_ns,
        })
    }

    /// Its name, and why it has no bytes if that is so.
    fn label(&self) -> String {
        let inside = if self.globally_allocated { " (inside an L1 buffer)" } else { "" };
        let name = self.name.as_ref().map_or_else(|| UNKNOWN.to_owned(), |name| fit(name, 40));
        format!("{name}{inside}")
    }
}

/// Whether what is in this class lies in the L1 of cores.
fn in_cores(class: Class) -> bool {
    !matches!(class, Class::Dram | Class::Trace | Class::SystemMemory)
}

fn write(out: &mut dyn Write, listing: &Listing, shown: usize, paint: Paint) -> io::Result<()> {
    if listing.items.is_empty() {
        return writeln!(out, "Nothing is live.");
    }
    write_subtotals(out, listing, paint)?;
    writeln!(out)?;
    write_items(out, &listing.items[..shown], paint)?;
    match listing.items.len() - shown {
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

/// One by one; where they were made stands in a column of its own if a process records that.
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
            item.pid.to_string(),
            item.class.name().to_owned(),
            format!("{:#x}", item.id),
            bytes(item.size),
            item.cores.map_or_else(|| UNKNOWN.to_owned(), |cores| cores.to_string()),
            age(item.age_ns),
            item.label(),
        ];
        cells
            .extend(sites.then(|| item.site.as_ref().map_or_else(|| UNKNOWN.to_owned(), Foreign::to_string)));
        columns.push(cells);
    }
    columns.write(out, paint)
}
