//! `tt-smi programs`: which programs run when, on which devices.

mod json;

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use tt_shm_reader::{Kernel, Program, Row, RowKind, Segment, kernel_sharing};

use crate::cli::ProgramsArgs;
use crate::directory::Directory;
use crate::escape::{escape, fit};
use crate::model::ranges;
use crate::output::columns::{Align, Columns};
use crate::output::json::write as write_json;
use crate::output::paint::Paint;
use crate::output::units::{UNKNOWN, age, bytes};
use crate::segments::lost;
use crate::select::select;
use crate::settings::Settings;
use json::ListingJson;

/// Runs it.
pub(crate) fn run(args: &ProgramsArgs, settings: &Settings) -> anyhow::Result<()> {
    let (segments, directory) = super::look(settings)?;
    let devices = select(&args.device, &directory)?;
    let mut listing = Listing::default();
    for segment in segments.of(&args.pid) {
        listing.add(segment, &directory, &devices);
    }
    listing.finish();
    let mut out = super::stdout();
    if args.json {
        write_json(&mut out, &ListingJson::new(&listing, settings.namespace.as_str()))?;
    } else {
        write(&mut out, &listing, settings.paint)?;
    }
    out.flush()?;
    listing.errors.iter().for_each(|error| eprintln!("tt-smi: {error}"));
    Ok(())
}

/// A program of a process.
struct Entry {
    pid: u32,
    program: Program,
    devices: Vec<usize>,
    last_dispatch_ns: Option<u64>,
}

impl Entry {
    fn cells(&self) -> Vec<String> {
        let Entry { pid, program, devices, last_dispatch_ns } = self;
        vec![
            pid.to_string(),
            format!("{:#x}", program.id),
            fit(&program.name.as_deref().map_or_else(|| UNKNOWN.to_owned(), escape), 28),
            types(program),
            ranges(devices.iter().copied()),
            binaries(program),
            bytes(program.devices.first().map_or(0, |device| device.cb_bytes)),
            program.dispatches.to_string(),
            program.cache_hits.to_string(),
            program.cache_misses.to_string(),
            last_dispatch_ns.map_or_else(|| UNKNOWN.to_owned(), age),
            (if program.late { "late: loaded before tracking began" } else { "" }).to_owned(),
        ]
    }
}

/// Kernel bytes of a device, told apart by the hash of the binary.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Sharing {
    device: usize,
    kernel_loaded_bytes: u64,
    kernel_unique_bytes: u64,
    kernel_shared_bytes: u64,
    kernel_unhashed_bytes: u64,
}

#[derive(Default)]
struct Listing {
    entries: Vec<Entry>,
    /// Kernel rows of all processes, with the index of the device in place of the process's own.
    kernels: BTreeMap<usize, Vec<Row>>,
    sharing: Vec<Sharing>,
    errors: Vec<String>,
}

impl Listing {
    fn add(&mut self, segment: &Segment, directory: &Directory, wanted: &[usize]) {
        let index: Vec<Option<usize>> =
            segment.devices().iter().map(|entry| directory.index_of(entry.chip_id)).collect();
        let index = |device: u8| index.get(usize::from(device)).copied().flatten();
        let list = segment.live_list();
        let pid = crate::segments::shown_pid(segment);
        self.errors.extend(lost(segment));
        if !list.exact {
            self.errors.push(format!("pid {pid}: too busy to be read exactly; its list may lack programs"));
        }
        let clock = segment.calibration();
        for program in segment.programs_of(&list.rows) {
            let mut devices: Vec<usize> = program.device_indices().filter_map(index).collect();
            devices.sort_unstable();
            if devices.iter().any(|device| wanted.contains(device)) {
                let ago = |ticks| clock.second.monotonic_ns.saturating_sub(clock.to_monotonic_ns(ticks));
                let last_dispatch_ns = program.last_dispatch.map(ago);
                self.entries.push(Entry { pid, program, devices, last_dispatch_ns });
            }
        }
        for row in list.rows.into_iter().filter(|row| row.kind() == Some(RowKind::Kernel)) {
            if let Some(device) = index(row.device).filter(|device| wanted.contains(device)) {
                self.kernels.entry(device).or_default().push(Row { device: 0, ..row });
            }
        }
    }

    /// Most recently dispatched first; unique and shared bytes over all processes.
    fn finish(&mut self) {
        self.entries
            .sort_by_key(|entry| (entry.last_dispatch_ns.unwrap_or(u64::MAX), entry.pid, entry.program.id));
        for (device, rows) in &self.kernels {
            self.sharing.extend(kernel_sharing(rows).first().map(|sharing| Sharing {
                device: *device,
                kernel_loaded_bytes: sharing.loaded,
                kernel_unique_bytes: sharing.unique,
                kernel_shared_bytes: sharing.shared,
                kernel_unhashed_bytes: sharing.unhashed,
            }));
        }
    }
}

fn write(out: &mut dyn Write, listing: &Listing, paint: Paint) -> io::Result<()> {
    use Align::{Left, Right};
    if listing.entries.is_empty() {
        return writeln!(out, "No program is loaded.");
    }
    let mut columns = Columns::new(&[
        ("PID", Right),
        ("ID", Right),
        ("NAME", Left),
        ("TYPE", Left),
        ("DEV", Left),
        ("BINARY x CORES", Right),
        ("CB", Right),
        ("DISPATCHES", Right),
        ("HITS", Right),
        ("MISSES", Right),
        ("LAST", Right),
        ("REMARKS", Left),
    ]);
    listing.entries.iter().for_each(|entry| columns.push(entry.cells()));
    columns.write(out, paint)?;
    writeln!(
        out,
        "{}",
        paint.dim("BINARY x CORES and CB are per device; dispatches are of all devices together.")
    )?;
    write_sharing(out, &listing.sharing)
}

/// Which of the kernel bytes are copies of a binary that is loaded anyway.
fn write_sharing(out: &mut dyn Write, devices: &[Sharing]) -> io::Result<()> {
    for sharing in devices {
        let unhashed = match sharing.kernel_unhashed_bytes {
            0 => String::new(),
            unhashed => format!(", {} without a hash", bytes(unhashed)),
        };
        writeln!(
            out,
            "Device {}: {} of kernels loaded: {} unique, {} copies{unhashed}",
            sharing.device,
            bytes(sharing.kernel_loaded_bytes),
            bytes(sharing.kernel_unique_bytes),
            bytes(sharing.kernel_shared_bytes),
        )?;
    }
    Ok(())
}

fn types(program: &Program) -> String {
    let labels: Vec<&str> = program.kernel_types.iter().map(|kernel| kernel.label()).collect();
    if labels.is_empty() { UNKNOWN.to_owned() } else { labels.join("+") }
}

/// The kernels on the first of its devices: `57344 x 16`.
fn binaries(program: &Program) -> String {
    let kernels = program.devices.first().map_or(&[][..], |device| &device.kernels);
    let one = |kernel: &Kernel| match kernel.binary_bytes() {
        Some(binary) => format!("{binary} x {}", kernel.cores),
        None => bytes(kernel.bytes),
    };
    match kernels {
        [] => UNKNOWN.to_owned(),
        [kernel] => one(kernel),
        [first, rest @ ..] => format!("{} +{}", one(first), rest.len()),
    }
}
