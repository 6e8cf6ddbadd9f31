//! `tt-smi programs`: loaded programs, their devices and their dispatches.

pub(crate) mod json;

use std::io::{self, Write};

use crate::cli::ProgramsArgs;
use crate::escape::{escape, fit};
use crate::lists::programs::{Entry, Listing, Sharing};
use crate::model::ranges;
use crate::output::columns::{Align, Columns};
use crate::output::json::write as write_json;
use crate::output::paint::Paint;
use crate::segments::pid_text;
use crate::select::select;
use crate::settings::Settings;
use crate::units::{UNKNOWN, age, bytes};
use json::ListingJson;

pub(crate) fn run(args: &ProgramsArgs, settings: &Settings) -> anyhow::Result<()> {
    let (segments, directory) = super::look(settings)?;
    let devices = select(&args.only.on.device, &directory)?;
    let mut listing = Listing::default();
    for segment in segments.of(&args.only.pid)? {
        listing.add(segment, &directory, &devices);
    }
    listing.lack(&segments.unread);
    listing.entries.retain(|entry| args.query.matches(entry));
    listing.finish();
    let mut out = super::stdout();
    if args.json {
        write_json(&mut out, &ListingJson::new(&listing, settings.namespace.as_str()))?;
    } else {
        let is_part = !(args.only.is_all() && args.query.is_empty());
        let why = super::why_nothing_listed(&segments);
        write(&mut out, &listing, (is_part, why), settings.paint)?;
    }
    out.flush()?;
    listing.errors.iter().for_each(|error| eprintln!("tt-smi: {error}"));
    Ok(())
}

fn write(
    out: &mut dyn Write,
    listing: &Listing,
    (is_part, why): (bool, &str),
    paint: Paint,
) -> io::Result<()> {
    use Align::{Left, Right};
    if listing.entries.is_empty() {
        return writeln!(out, "No {} programs{why}.", if is_part { "matching" } else { "loaded" });
    }
    let mut columns = Columns::new(&[
        ("PID", Right),
        ("ID", Right),
        ("NAME", Left),
        ("TYPE", Left),
        ("DEV", Left),
        ("BINARY x CORES", Right),
        ("CB ALLOC", Right),
        ("DISPATCHES", Right),
        ("HITS", Right),
        ("MISSES", Right),
        ("LAST", Right),
        ("REMARKS", Left),
    ]);
    listing.entries.iter().for_each(|entry| columns.push(cells(entry)));
    columns.write(out, paint)?;
    writeln!(
        out,
        "{}",
        paint.dim("BINARY x CORES and CB ALLOC are per device; dispatches are summed over all devices.")
    )?;
    write_sharing(out, &listing.sharing)
}

/// How many of the kernel bytes are copies of a binary that is loaded elsewhere on the device.
fn write_sharing(out: &mut dyn Write, devices: &[Sharing]) -> io::Result<()> {
    for sharing in devices {
        let unhashed = match sharing.kernel_unhashed_bytes {
            0 => String::new(),
            unhashed => format!(", {} without a hash", bytes(unhashed)),
        };
        writeln!(
            out,
            "Device {}: {} of kernels loaded, {} unique, {} copies{unhashed}",
            sharing.device,
            bytes(sharing.kernel_loaded_bytes),
            bytes(sharing.kernel_unique_bytes),
            bytes(sharing.kernel_shared_bytes),
        )?;
    }
    Ok(())
}

fn cells(entry: &Entry) -> Vec<String> {
    let Entry { pid, claimed, program, devices, last_dispatch_ns, .. } = entry;
    vec![
        pid_text(*pid, *claimed),
        format!("{:#x}", program.id),
        fit(&program.name.as_deref().map_or_else(|| UNKNOWN.to_owned(), escape), 28),
        entry.types(),
        ranges(devices.iter().copied()),
        entry.binaries(),
        bytes(program.devices.first().map_or(0, |device| device.cb_bytes)),
        program.dispatches.to_string(),
        program.cache_hits.to_string(),
        program.cache_misses.to_string(),
        last_dispatch_ns.map_or_else(|| UNKNOWN.to_owned(), age),
        (if program.late { "late: loaded before tracking began" } else { "" }).to_owned(),
    ]
}
