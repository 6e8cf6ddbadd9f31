//! The report as text, on stderr. What is the same on several devices is told once.

use std::collections::BTreeMap;
use std::io::{self, Write};

use tt_shm_reader::{Class, Memory as Place, Sum};

use super::child::End;
use super::notices::Notice;
use super::peaks::{MadeOf, Peaks};
use super::report::{Leak, Ran, Report};
use crate::escape::{Foreign, fit};
use crate::lists::fold::{Folded, fold};
use crate::model::{Figure, Interval, Rank};
use crate::output::columns::{Align, Columns};
use crate::output::paint::Paint;
use crate::units::{UNKNOWN, age, bytes, percent, plural};

/// Most groups of unfreed allocations listed one by one.
const MAX_LEAKS: usize = 20;
/// Most pids named of a notice.
const MAX_PIDS: usize = 8;
/// Most parts of a peak.
const MAX_PARTS: usize = 8;
/// Longest name or call site.
const NAME: usize = 48;
/// Longest name of a part: the table has numbers beside it.
const PART_NAME: usize = 40;

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
    write_notices(out, &report.notices, paint)?;
    if report.processes.is_empty() {
        let is_known_why = report.notices.iter().any(|notice| notice.unobserved);
        return if is_known_why { Ok(()) } else { write_why_none(out) };
    }
    write_peaks(out, &report.devices, paint)?;
    write_failures(out, report, paint)?;
    write_leaks(out, &report.processes, paint)?;
    write_verification(out, &report.processes, paint)
}

/// What the tap has noticed.
fn write_notices(out: &mut dyn Write, notices: &[Notice], paint: Paint) -> io::Result<()> {
    for notice in notices {
        let pids: Vec<String> = notice.pids.iter().take(MAX_PIDS).map(u32::to_string).collect();
        let more = match notice.pids.len().saturating_sub(MAX_PIDS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let text = format!("pid {}{more}: {}", pids.join(", "), notice.text);
        match notice.unobserved {
            true => writeln!(out, "{}", paint.warn(&format!("not observed: {text}")))?,
            false => writeln!(out, "note: {text}")?,
        }
    }
    Ok(())
}

/// How the sums were compared with those of tt-metal's own allocator, where that is possible.
fn write_verification(out: &mut dyn Write, processes: &[Ran], paint: Paint) -> io::Result<()> {
    let sum = |count: fn(&Ran) -> u64| processes.iter().map(count).fold(0, u64::saturating_add);
    let (made, different) = (sum(|ran| ran.self_checks), sum(|ran| ran.self_checks_different));
    if made == 0 {
        return Ok(());
    }
    let text = format!("verified against the allocator: {}, {different} different", plural(made, "check"));
    if different == 0 {
        return writeln!(out, "{text}");
    }
    let pids = processes.iter().filter(|ran| ran.self_checks_different > 0).map(|ran| ran.pid.to_string());
    let pids = pids.collect::<Vec<_>>().join(", ");
    writeln!(out, "{}", paint.warn(&format!("{text}: what includes pid {pids} is not exact")))
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

/// A line of the table of peaks: what, bytes, share, count, exact.
type PeakLine = [String; 5];

fn write_peaks(out: &mut dyn Write, devices: &[Peaks], paint: Paint) -> io::Result<()> {
    use Align::{Left, Right};
    let heads = [
        ("DEVICE", Left),
        ("WHAT", Left),
        ("PEAK", Right),
        ("SHARE", Right),
        ("COUNT", Right),
        ("EXACT", Left),
    ];
    let mut columns = Columns::new(&heads);
    for folded in fold(devices.iter().map(|device| (Some(device.index), peak_lines(device)))) {
        // Said once: the lines below belong to the same devices.
        let mut devices = folded.devices();
        for line in folded.value {
            columns.push([std::mem::take(&mut devices)].into_iter().chain(line).collect());
        }
    }
    if columns.is_empty() { writeln!(out, "nothing was allocated") } else { columns.write(out, paint) }
}

fn peak_lines(device: &Peaks) -> Vec<PeakLine> {
    let mut lines: Vec<PeakLine> = Vec::new();
    let mut whole = Interval::default();
    for (figure, peak) in &device.figures {
        // Of a memory it is told that it may have been used; of its parts only what was, and not the same again.
        let is_whole = figure.rank == Rank::Whole;
        whole = if is_whole { peak.range } else { whole };
        let is_same = matches!(figure.rank, Rank::Part(_)) && peak.range == whole;
        let is_told = peak.range.low > 0 || is_whole && !peak.range.is_nothing();
        if !is_told || is_same {
            continue;
        }
        let (total, made_of) = parts_of(figure, device);
        let share = total.map_or_else(String::new, |_| format!("{} of cap", percent(peak.range.low, total)));
        // Not indented: its peak is one of its own, not a part of the peak above.
        let what = match figure.rank {
            Rank::PartApart => format!("{} {}s", figure.label, figure.item),
            _ => figure.label.to_owned(),
        };
        lines.push([what, peak.range.text(), share, String::new(), yes(peak.is_exact())]);
        if let Some(made_of) = made_of {
            lines.extend(part_lines(made_of, peak.range));
        }
    }
    lines
}

/// The capacity that a figure is a share of, and what its peak was made of.
fn parts_of<'a>(figure: &Figure, device: &'a Peaks) -> (Option<u64>, Option<&'a MadeOf>) {
    match figure.sum_of {
        Some(Place::Dram) => (device.dram_total, Some(&device.made_of.dram)),
        Some(Place::L1) => (device.l1_total, Some(&device.made_of.l1)),
        _ => (None, None),
    }
}

/// The largest parts of a peak, by name.
fn part_lines(made_of: &MadeOf, peak: Interval) -> Vec<PeakLine> {
    let several = made_of.parts.iter().any(|part| part.pid != made_of.parts[0].pid);
    let mut by_name: BTreeMap<(bool, Option<&Foreign>, Option<u32>), Sum> = BTreeMap::new();
    for part in &made_of.parts {
        // Of one process only, its pid says nothing.
        let key = (part.class == Class::Cb, part.name.as_ref(), several.then_some(part.pid));
        by_name.entry(key).or_default().add(Sum { bytes: part.bytes, count: part.count });
    }
    let mut parts: Vec<_> = by_name.into_iter().collect();
    parts.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.bytes));
    let line = |what: String, bytes_of: u64, count: String| {
        let share = format!("{} of peak", percent(bytes_of, Some(peak.low)));
        [format!("  {what}"), bytes(bytes_of), share, count, yes(made_of.exact)]
    };
    let shown = parts.iter().take(MAX_PARTS).map(|((is_cb, name, pid), sum)| {
        // The number of a program's circular buffers is not known.
        let count = if *is_cb { String::new() } else { format!("x{}", sum.count) };
        line(part_name(*is_cb, *name, *pid), sum.bytes, count)
    });
    let mut lines: Vec<PeakLine> = shown.collect();
    if let Some(more) = parts.get(MAX_PARTS..).filter(|more| !more.is_empty()) {
        let bytes = more.iter().fold(0, |bytes: u64, (_, sum)| bytes.saturating_add(sum.bytes));
        lines.push(line(format!("and {} more", more.len()), bytes, String::new()));
    }
    lines
}

fn yes(is_exact: bool) -> String {
    if is_exact { "yes" } else { "no" }.to_owned()
}

fn part_name(is_cb: bool, name: Option<&Foreign>, pid: Option<u32>) -> String {
    let name = match (is_cb, name) {
        (false, Some(name)) => fit(name, PART_NAME),
        (false, None) => "no name".to_owned(),
        (true, Some(name)) => fit(&format!("CBs of {name}"), PART_NAME),
        (true, None) => "CBs, no name".to_owned(),
    };
    pid.map_or_else(|| name.clone(), |pid| format!("{name} (pid {pid})"))
}

/// How many allocations failed, by class.
fn write_failures(out: &mut dyn Write, report: &Report, paint: Paint) -> io::Result<()> {
    let failed = report.devices.iter().filter(|device| device.failed > 0);
    let by_device = failed.map(|device| (Some(device.index), (device.failed, &device.failed_by_class)));
    for folded in fold(by_device) {
        let (failed, by_class) = folded.value;
        let classes: Vec<String> =
            by_class.iter().map(|(class, count)| format!("{count} {}", class.name())).collect();
        let classes = if classes.is_empty() { String::new() } else { format!(" ({})", classes.join(", ")) };
        let (failed, devices) = (plural(failed, "allocation"), folded.devices());
        let text = format!("{failed} failed on device {devices}{classes}: see `tt-smi oom`");
        writeln!(out, "{}", paint.warn(&text))?;
    }
    Ok(())
}

/// A group of allocations, on whichever device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Group<'a> {
    pid: u32,
    class: Class,
    name: Option<&'a Foreign>,
    site: Option<&'a Foreign>,
    bytes: u64,
    count: u64,
}

impl<'a> Group<'a> {
    fn new(ran: &Ran, leak: &'a Leak) -> Group<'a> {
        let Leak { class, bytes, count, .. } = *leak;
        Group { pid: ran.pid, class, name: leak.name.as_ref(), site: leak.site.as_ref(), bytes, count }
    }
}

fn write_leaks(out: &mut dyn Write, processes: &[Ran], paint: Paint) -> io::Result<()> {
    for ran in processes {
        let who = format!("pid {} \"{}\"", ran.pid, ran.name);
        // A difference is told of where it was found.
        let is_same = ran.self_checks_different == 0;
        match ran.leaks_exact {
            None => writeln!(out, "{who}: its file was truncated; what it never freed is unknown")?,
            Some(false) if is_same => writeln!(out, "{who}: the list of what it never freed is incomplete")?,
            Some(_) => {}
        }
        if ran.dropped_exact == Some(false) && is_same {
            writeln!(out, "{who}: events were missed; what closing a device dropped may be more")?;
        }
        if ran.alive {
            writeln!(out, "{who} is still running: what it holds may yet be freed")?;
        }
    }
    let leaked = write_groups(out, "never freed", processes, |ran| &ran.leaks, paint)?;
    let dropped =
        write_groups(out, "dropped when the device was closed", processes, |ran| &ran.dropped, paint)?;
    let is_exact = processes.iter().all(|ran| ran.leaks_exact == Some(true));
    if !leaked && !dropped && is_exact { writeln!(out, "everything was freed") } else { Ok(()) }
}

/// Writes groups of allocations, if there are any.
fn write_groups(
    out: &mut dyn Write,
    what: &str,
    processes: &[Ran],
    of: fn(&Ran) -> &[Leak],
    paint: Paint,
) -> io::Result<bool> {
    let all = || processes.iter().flat_map(move |ran| of(ran).iter().map(move |leak| (ran, leak)));
    if all().next().is_none() {
        return Ok(false);
    }
    let sum = all().fold(0, |sum: u64, (_, leak)| sum.saturating_add(leak.bytes));
    let count = all().fold(0, |sum: u64, (_, leak)| sum.saturating_add(leak.count));
    let head = format!("{what}: {} in {}", bytes(sum), plural(count, "allocation"));
    writeln!(out, "{}", paint.bold(&head))?;
    let mut groups = fold(all().map(|(ran, leak)| (leak.device, Group::new(ran, leak))));
    groups.sort_by_key(|folded| std::cmp::Reverse(folded.value.bytes));
    group_columns(&groups, processes.len() > 1).write(out, paint)?;
    match groups.len().saturating_sub(MAX_LEAKS) {
        0 => {}
        untold => writeln!(out, "and {untold} more groups; --json FILE lists all")?,
    }
    Ok(true)
}

fn group_columns(groups: &[Folded<Group<'_>>], several: bool) -> Columns {
    use Align::{Left, Right};
    let shown = groups.iter().take(MAX_LEAKS);
    let has_site = shown.clone().any(|folded| folded.value.site.is_some());
    let heads = [
        several.then_some(("PID", Right)),
        Some(("DEVICE", Left)),
        Some(("CLASS", Left)),
        Some(("BYTES", Right)),
        Some(("COUNT", Right)),
        Some(("NAME", Left)),
        has_site.then_some(("CALL SITE", Left)),
    ];
    let mut columns = Columns::new(&heads.into_iter().flatten().collect::<Vec<_>>());
    let text =
        |text: Option<&Foreign>| text.map_or_else(|| UNKNOWN.to_owned(), |text| fit(&text.to_string(), NAME));
    for folded in shown {
        let group = folded.value;
        let cells = [
            several.then(|| group.pid.to_string()),
            Some(folded.devices()),
            Some(group.class.name().to_owned()),
            Some(bytes(group.bytes)),
            Some(group.count.to_string()),
            Some(text(group.name)),
            has_site.then(|| text(group.site)),
        ];
        columns.push(cells.into_iter().flatten().collect());
    }
    columns
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::commands::run::peaks::{Compositions, PartOfPeak};
    use crate::directory::DeviceId;
    use crate::model::{FIGURES, Peak};

    const MIB: u64 = 1 << 20;

    fn part(name: Option<&str>, class: Class, bytes: u64, count: u64) -> PartOfPeak {
        PartOfPeak { name: name.map(Foreign::from), class, bytes, count, pid: 4711 }
    }

    /// A device with these peaks, by the key of the figure.
    fn device(index: usize, peaks: &[(&str, Interval)], dram: MadeOf, l1: MadeOf) -> Peaks {
        let of = |figure: &Figure| peaks.iter().find(|(key, _)| *key == figure.key);
        let range = |figure: &Figure| of(figure).map_or(Interval::default(), |(_, range)| *range);
        let peak = |figure| (figure, Peak { range: range(figure), ..Peak::default() });
        Peaks {
            index,
            id: DeviceId { chip_id: index as u64, ..DeviceId::default() },
            dram_total: Some(12 << 30),
            l1_total: Some(80 * MIB),
            figures: FIGURES.iter().filter(|figure| figure.has_peak()).map(peak).collect(),
            made_of: Compositions { dram, l1 },
            failed: 0,
            failed_by_class: Vec::new(),
        }
    }

    fn mesh_device(index: usize) -> Peaks {
        let dram = vec![
            part(Some("ttnn.matmul"), Class::Dram, 8 * MIB, 2),
            part(None, Class::Dram, 3 * MIB, 7),
            part(Some("ttnn.matmul"), Class::Trace, MIB, 1),
        ];
        let l1 = vec![
            part(Some("ttnn.softmax"), Class::Cb, 6 * MIB, 1),
            part(Some("ttnn.add"), Class::L1, 2 * MIB, 1),
        ];
        let peaks = [
            ("dram_used", Interval::exact(12 * MIB)),
            ("dram_buffer", Interval::exact(11 * MIB)),
            ("trace_used", Interval::exact(MIB)),
            ("l1_used", Interval::exact(8 * MIB)),
            ("l1_buffer", Interval::exact(8 * MIB)),
            ("cb_resident", Interval::exact(7 * MIB)),
        ];
        let [dram, l1] = [dram, l1].map(|parts| MadeOf { exact: true, parts });
        device(index, &peaks, dram, l1)
    }

    fn leak(device: usize, class: Class, name: Option<&str>, bytes: u64, count: u64) -> Leak {
        Leak { device: Some(device), class, name: name.map(Foreign::from), site: None, bytes, count }
    }

    fn ran() -> Ran {
        Ran {
            pid: 4711,
            name: "python3".into(),
            alive: false,
            leaks_exact: Some(true),
            leaks: Vec::new(),
            dropped_exact: Some(true),
            dropped: Vec::new(),
            self_checks: 64,
            self_checks_different: 0,
        }
    }

    fn report(devices: Vec<Peaks>, processes: Vec<Ran>) -> Report {
        let lasted = Duration::from_millis(12_300);
        Report {
            lasted,
            end: End::Exited(0),
            devices,
            processes,
            unknown: Vec::new(),
            failed: 0,
            notices: Vec::new(),
        }
    }

    #[track_caller]
    fn assert_text(name: &str, report: &Report) {
        let mut out = Vec::new();
        write(&mut out, report, Paint::PLAIN).unwrap();
        let mut settings = insta::Settings::new();
        settings.set_snapshot_path("../../../tests/expected");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(name, String::from_utf8(out).unwrap()));
    }

    #[test]
    fn a_mesh_is_told_once() {
        let failed =
            |device| Peaks { failed: 3, failed_by_class: vec![(Class::Dram, 2), (Class::L1, 1)], ..device };
        let devices = (0..8).map(|index| failed(mesh_device(index))).collect();
        let on_all = |leak: fn(usize) -> Leak| (0..8).map(leak).collect();
        let leaks = on_all(|device| leak(device, Class::Dram, Some("ttnn.matmul"), 4 * MIB, 1));
        let dropped: Vec<Leak> = on_all(|device| leak(device, Class::L1, None, MIB, 3));
        let dropped =
            dropped.into_iter().chain([leak(2, Class::Dram, Some("weights"), 2 * MIB, 1)]).collect();
        assert_text("run-mesh", &report(devices, vec![Ran { leaks, dropped, ..ran() }]));
    }

    #[test]
    fn devices_that_differ_are_told_apart() {
        let idle = device(1, &[], MadeOf::default(), MadeOf::default());
        let mut other = mesh_device(2);
        other.figures[0].1.range.high = Some(13 * MIB);
        other.made_of.dram.exact = false;
        let mut unnamed = mesh_device(3);
        unnamed.made_of.dram.exact = false;
        assert_text("run-different", &report(vec![mesh_device(0), idle, other, unnamed], vec![ran()]));
    }

    #[test]
    fn many_names_of_several_processes() {
        let name = |number: u64| format!("operation {number}");
        let mut parts: Vec<PartOfPeak> = (1..=12)
            .rev()
            .map(|number| part(Some(&name(number)), Class::Dram, number * MIB, number))
            .collect();
        parts[0].pid = 4712;
        let peaks = [("dram_used", Interval::exact(78 * MIB)), ("dram_buffer", Interval::exact(78 * MIB))];
        let device = device(0, &peaks, MadeOf { exact: true, parts }, MadeOf::default());
        let second = Ran { pid: 4712, leaks: vec![leak(0, Class::Dram, None, 5, 1)], ..ran() };
        assert_text("run-many-names", &report(vec![device], vec![ran(), second]));
    }

    #[test]
    fn what_differs_from_the_allocator_is_not_exact() {
        let mut device = mesh_device(0);
        device.figures.iter_mut().for_each(|(_, peak)| peak.range.high = None);
        device.made_of.dram.exact = false;
        device.made_of.l1.exact = false;
        let (leaks_exact, dropped_exact) = (Some(false), Some(false));
        let process = Ran { self_checks_different: 3, leaks_exact, dropped_exact, ..ran() };
        assert_text("run-difference", &report(vec![device], vec![process]));
    }

    #[test]
    fn nothing_to_tell() {
        assert_text("run-nothing", &report(Vec::new(), Vec::new()));
        let idle = device(0, &[], MadeOf::default(), MadeOf::default());
        assert_text("run-idle", &report(vec![idle], vec![Ran { self_checks: 0, ..ran() }]));
    }
}
