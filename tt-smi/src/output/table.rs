//! A snapshot for people.

use std::io::{self, Write};

use super::columns::{Align, Columns};
use super::detail;
use super::paint::Paint;
use crate::escape::fit;
use crate::model::{FIGURES, Figure, Memory, Model, Process};
use crate::units::{self, UNKNOWN, age, bytes, bytes_or_unknown, percent, plural};

/// What to write beside the devices.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parts {
    /// What each process has on each device.
    pub processes: bool,
    /// Every class of every device.
    pub detail: bool,
}

/// What is said where there is nothing to show: why, and what to do.
pub(crate) fn why_nothing(model: &Model) -> &'static str {
    match model.hidden {
        0 => "no process reports allocations here (run `tt-smi doctor` for advice)",
        _ => "what reports here is other users' (root sees all)",
    }
}

const BAR: usize = 6;

/// Writes a model.
pub fn write(out: &mut dyn Write, model: &Model, parts: Parts, paint: Paint) -> io::Result<()> {
    write_headline(out, model, paint)?;
    if model.devices.is_empty() {
        writeln!(out, "No device: {}.", why_nothing(model))?;
    } else {
        write_devices(out, model, paint)?;
    }
    if parts.detail {
        model.devices.iter().try_for_each(|device| detail::write(out, device, model, paint))?;
    }
    if !model.processes.is_empty() {
        writeln!(out)?;
        write_processes(out, model, paint)?;
    }
    if parts.processes {
        write_usages(out, model, paint)?;
    }
    write_problems(out, model, paint)
}

fn write_headline(out: &mut dyn Write, model: &Model, paint: Paint) -> io::Result<()> {
    let title = format!("tt-smi {}", env!("CARGO_PKG_VERSION"));
    let time = model.clock.timestamp();
    // Seconds are enough for people; JSON has the rest.
    let time = time.split('.').next().unwrap_or(&time).replace('T', " ");
    let devices = plural(model.devices.len() as u64, "device");
    let processes = plural(model.alive() as u64, "process");
    let about = format!("{}  {time} UTC  {devices}, {processes}  ({})", model.host, model.origin.describe());
    writeln!(out, "{}  {}", paint.bold(&title), paint.dim(&about))
}

fn write_devices(out: &mut dyn Write, model: &Model, paint: Paint) -> io::Result<()> {
    let kinds = model.devices.iter().map(|device| device.kind().chars().count());
    let kind = kinds.max().unwrap_or(0).clamp(5, 12);
    let heads = format!(
        "{:>3}  {:<kind$}  {:<12}  {:<29}  {:<29}  {:>4}  {:>6}",
        "DEV", "BOARD", "PCI", "DRAM", "L1", "PROC", "EV/S"
    );
    writeln!(out, "{}", paint.bold(heads.trim_end()))?;
    for device in &model.devices {
        let flags = device.flags().join(", ");
        let line = format!(
            "{:>3}  {:<kind$}  {:<12}  {}  {}  {:>4}  {:>6}  {}",
            device.index,
            fit(&device.kind(), kind),
            device.id.pci.as_deref().unwrap_or(UNKNOWN),
            gauge(&device.held.dram, paint),
            gauge(&device.held.l1, paint),
            device.processes,
            device.events_per_second.map_or_else(|| UNKNOWN.to_owned(), units::count),
            paint.warn(&flags),
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// `[##....]  4.1 / 12.0 GiB  34%`, 29 wide.
fn gauge(memory: &Memory, paint: Paint) -> String {
    let filled = match memory.total {
        Some(total) if total > 0 => {
            let filled = (memory.used as f64 * BAR as f64 / total as f64).round() as usize;
            // Something used is never an empty bar.
            filled.clamp(usize::from(memory.used > 0), BAR)
        }
        _ => 0,
    };
    let bar = paint.fullness(memory.used, memory.total, &"#".repeat(filled));
    let (share, percent) = (memory.used_share(), percent(memory.used, memory.total));
    format!("[{bar}{}] {share:>15} {percent:>4}", ".".repeat(BAR - filled))
}

fn write_processes(out: &mut dyn Write, model: &Model, paint: Paint) -> io::Result<()> {
    use Align::{Left, Right};
    let figures = [
        ("DRAM", Right),
        ("L1", Right),
        ("KERNELS", Right),
        ("EV/S", Right),
        ("AGE", Right),
        ("REMARKS", Left),
    ];
    let mut columns = Columns::new(&[&WHO[..], &figures].concat());
    for process in &model.processes {
        let figures = [
            bytes_or_unknown(process.total(|held| held.dram.used)),
            bytes_or_unknown(process.total(|held| held.l1.used)),
            bytes_or_unknown(process.total(|held| held.kernel_loaded.used)),
            process.events_per_second.map_or_else(|| UNKNOWN.to_owned(), units::count),
            age(process.age_ns),
            remarks(process, model),
        ];
        columns.push(who(process, "").into_iter().chain(figures).collect());
    }
    columns.write(out, paint)
}

/// Headings of [`who`].
pub(crate) const WHO: [(&str, Align); 5] = [
    ("PID", Align::Right),
    ("USER", Align::Left),
    ("NAME", Align::Left),
    ("STATE", Align::Left),
    ("DEV", Align::Left),
];

/// Who a process is; `indent` stands before its name.
pub(crate) fn who(process: &Process, indent: &str) -> [String; 5] {
    [
        process.pid_text(),
        fit(&process.owner(), 12),
        format!("{indent}{}", fit(&process.name, 24)),
        process.state_text().to_owned(),
        process.device_set(),
    ]
}

/// What is wrong with it; of one that ended, what it had held.
fn remarks(process: &Process, model: &Model) -> String {
    let reclaimed = model.reclaimed.iter().find(|reclaimed| reclaimed.pid == process.namespace_pid);
    let held = reclaimed.filter(|_| !process.is_alive()).map(|reclaimed| {
        let all = reclaimed.bytes.iter().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add);
        format!("held {}", bytes(all))
    });
    process.flags().into_iter().chain(held).collect::<Vec<_>>().join(", ")
}

/// Headings of [`held_cells`].
pub(crate) fn held_heads() -> impl Iterator<Item = (&'static str, Align)> {
    FIGURES.iter().filter_map(|figure| Some((figure.heading?, Align::Right)))
}

/// What is held of each figure that has a heading.
pub(crate) fn held_cells(used: impl Fn(&Figure) -> Option<u64>) -> impl Iterator<Item = String> {
    let shown = FIGURES.iter().filter(|figure| figure.heading.is_some());
    shown.map(move |figure| bytes_or_unknown(used(figure)))
}

fn write_usages(out: &mut dyn Write, model: &Model, paint: Paint) -> io::Result<()> {
    use Align::{Left, Right};
    let mut heads = vec![("PID", Right), ("NAME", Left), ("DEV", Right)];
    heads.extend(held_heads());
    heads.extend([("PEAK DRAM", Right), ("PEAK L1", Right)]);
    let mut columns = Columns::new(&heads);
    let pairs = model
        .processes
        .iter()
        .flat_map(|process: &Process| process.usages.iter().map(move |usage| (process, usage)));
    for (process, usage) in pairs {
        let mut cells = vec![process.pid_text(), fit(&process.name, 16), usage.device.to_string()];
        cells.extend(held_cells(|figure| figure.of(&usage.held).map(|memory| memory.used)));
        cells.extend([&usage.held.dram, &usage.held.l1].map(|memory| bytes(memory.peak.range.low)));
        columns.push(cells);
    }
    if columns.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    columns.write(out, paint)
}

/// What could not be read or believed, so that sums are not taken for more than they are.
pub(crate) fn write_problems(out: &mut dyn Write, model: &Model, paint: Paint) -> io::Result<()> {
    if model.missed > 0 {
        let text = format!(
            "{} were missed (totals are exact; some peaks may be ranges)",
            plural(model.missed, "event")
        );
        writeln!(out, "{}", paint.warn(&text))?;
    }
    for problem in &model.problems {
        writeln!(out, "{}", paint.warn(&problem.text()))?;
    }
    for process in &model.processes {
        for (device, claim) in process.claims() {
            let text =
                format!("conflict: pid {} says of device {device}: {}", process.pid_text(), claim.text());
            writeln!(out, "{}", paint.warn(&text))?;
        }
    }
    Ok(())
}
