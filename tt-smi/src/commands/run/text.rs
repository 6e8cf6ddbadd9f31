//! The report as text, on stderr.

use std::io::{self, Write};

use tt_shm_reader::Memory as Place;

use super::child::End;
use super::report::{Leak, Peaks, Ran, Report};
use crate::escape::{Foreign, fit};
use crate::model::{Figure, Peak, Rank};
use crate::output::columns::{Align, Columns};
use crate::output::paint::Paint;
use crate::units::{UNKNOWN, age, bytes, percent, plural};

/// Most groups of unfreed allocations listed one by one.
const MAX_LEAKS: usize = 20;
/// Longest name or call site.
const NAME: usize = 48;

pub(super) fn write(out: &mut dyn Write, report: &Report, paint: Paint) -> io::Result<()> {
    let ended = match report.end {
        End::Exited(code) => format!("exit code {code}"),
        End::Killed(signal) => format!("killed by signal {signal}"),
    };
    let processes = plural(report.processes.len() as u64, "process");
    let lasted = age(u64::try_from(report.lasted.as_nanos()).unwrap_or(u64::MAX));
    writeln!(out, "{}", paint.bold(&format!("tt-smi: {lasted}, {ended}, {processes} reported memory")))?;
    if !report.unknown.is_empty() {
        let pids: Vec<String> = report.unknown.iter().map(u32::to_string).collect();
        let pids = pids.join(", ");
        let why = "TT_SHM_RUN was not set for them, and they ended before their parents could be looked up";
        writeln!(out, "not counted, may belong to others: pid {pids} ({why})")?;
    }
    if report.processes.is_empty() {
        return write_why_none(out);
    }
    write_peaks(out, &report.devices, paint)?;
    if report.failed > 0 {
        let failed = plural(report.failed, "allocation");
        writeln!(out, "{}", paint.warn(&format!("{failed} failed: see `tt-smi oom`")))?;
    }
    write_leaks(out, &report.processes, paint)?;
    write_verification(out, &report.processes, paint)
}

/// How the sums were compared with those of tt-metal's own allocator, where that is possible.
fn write_verification(out: &mut dyn Write, processes: &[Ran], paint: Paint) -> io::Result<()> {
    let sum = |count: fn(&Ran) -> u64| processes.iter().map(count).fold(0, u64::saturating_add);
    let (made, different) = (sum(|ran| ran.self_checks), sum(|ran| ran.self_checks_different));
    if made == 0 {
        return Ok(());
    }
    let text = format!("verified against the allocator: {}, {different} different", plural(made, "check"));
    writeln!(out, "{}", if different == 0 { text } else { paint.warn(&text) })
}

/// Explains why nothing was reported, and what to do.
fn write_why_none(out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "no process of the command reported memory. Programs report that allocate on a device with tt-metal, into \
         which `tt-smi run` loads a library (not into static or setuid programs), and programs that use the \
         tt-shm-writer crate. In a container, share /dev/shm and pass the environment on: `tt-smi env --format docker` \
         prints the options, to which `-e TT_SHM_RUN` is to be added. `tt-smi demo` shows what a report looks like."
    )
}

fn write_peaks(out: &mut dyn Write, devices: &[Peaks], paint: Paint) -> io::Result<()> {
    use Align::{Left, Right};
    let heads = [("DEVICE", Right), ("WHAT", Left), ("PEAK", Right), ("% OF CAP", Right), ("EXACT", Left)];
    let mut columns = Columns::new(&heads);
    for device in devices {
        // Of a memory it is told that it may have been used; of its parts only what was.
        let shown = |figure: &Figure, peak: &Peak| {
            peak.range.low > 0 || figure.rank == Rank::Whole && !peak.range.is_nothing()
        };
        for (figure, peak) in device.figures.iter().filter(|(figure, peak)| shown(figure, peak)) {
            let total = match figure.sum_of {
                Some(Place::Dram) => device.dram_total,
                Some(Place::L1) => device.l1_total,
                _ => None,
            };
            let indent = if figure.is_part() { "  " } else { "" };
            columns.push(vec![
                device.index.to_string(),
                format!("{indent}{}", figure.label),
                peak.range.text(),
                percent(peak.range.low, total),
                if peak.is_exact() { "yes" } else { "no" }.to_owned(),
            ]);
        }
    }
    if columns.is_empty() { writeln!(out, "nothing was allocated") } else { columns.write(out, paint) }
}

fn write_leaks(out: &mut dyn Write, processes: &[Ran], paint: Paint) -> io::Result<()> {
    for ran in processes {
        let who = format!("pid {} \"{}\"", ran.pid, ran.name);
        match ran.leaks_exact {
            None => writeln!(out, "{who}: its file was truncated; what it never freed is unknown")?,
            Some(false) => writeln!(out, "{who}: the list of what it never freed is incomplete")?,
            Some(true) => {}
        }
        if ran.alive {
            writeln!(out, "{who} is still running: what it holds may yet be freed")?;
        }
    }
    let mut leaks: Vec<(&Ran, &Leak)> =
        processes.iter().flat_map(|ran| ran.leaks.iter().map(move |leak| (ran, leak))).collect();
    if leaks.is_empty() {
        let exact = processes.iter().all(|ran| ran.leaks_exact == Some(true));
        return if exact { writeln!(out, "everything was freed") } else { Ok(()) };
    }
    leaks.sort_by_key(|(_, leak)| std::cmp::Reverse(leak.bytes));
    let sum = leaks.iter().fold(0, |sum: u64, (_, leak)| sum.saturating_add(leak.bytes));
    let count = leaks.iter().map(|(_, leak)| leak.count).sum();
    let head = format!("never freed: {} in {}", bytes(sum), plural(count, "allocation"));
    writeln!(out, "{}", paint.bold(&head))?;
    leak_columns(&leaks).write(out, paint)?;
    let untold = leaks.len().saturating_sub(MAX_LEAKS);
    if untold > 0 {
        writeln!(out, "and {untold} more groups; --json FILE lists all")?;
    }
    Ok(())
}

fn leak_columns(leaks: &[(&Ran, &Leak)]) -> Columns {
    use Align::{Left, Right};
    let numbers = [("PID", Right), ("DEVICE", Right)];
    let figures = [("CLASS", Left), ("BYTES", Right), ("COUNT", Right), ("NAME", Left), ("CALL SITE", Left)];
    let mut columns = Columns::new(&numbers.into_iter().chain(figures).collect::<Vec<_>>());
    let text = |text: &Option<Foreign>| {
        text.as_ref().map_or_else(|| UNKNOWN.to_owned(), |text| fit(&text.to_string(), NAME))
    };
    for (ran, leak) in leaks.iter().take(MAX_LEAKS) {
        columns.push(vec![
            ran.pid.to_string(),
            leak.device.map_or_else(|| UNKNOWN.to_owned(), |device| device.to_string()),
            leak.class.name().to_owned(),
            bytes(leak.bytes),
            leak.count.to_string(),
            text(&leak.name),
            text(&leak.site),
        ]);
    }
    columns
}
