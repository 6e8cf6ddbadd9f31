//! Allocation failures as text.

use std::io::{self, Write};

use tt_shm_reader::Class;

use super::Report;
use crate::escape::fit;
use crate::model::{Before, Cause, Clock, Failure, Holders, Who, event_name};
use crate::output::columns::{Align, Columns};
use crate::output::paint::Paint;
use crate::units::{UNKNOWN, age, bytes, plural, time_of_day};

/// Longest process name in a table.
const NAME: usize = 24;

pub(super) fn write(out: &mut dyn Write, report: &Report, paint: Paint) -> io::Result<()> {
    let Report { failures, known, is_part, clock, origin, .. } = report;
    let origin = origin.describe();
    if failures.is_empty() {
        let matching = if *is_part { "matching " } else { "" };
        return writeln!(out, "No {matching}allocation failures known ({origin}).");
    }
    let shown = plural(failures.len() as u64, "allocation failure");
    writeln!(out, "{shown} of {known} known, newest first ({origin})")?;
    for failure in failures {
        writeln!(out)?;
        write_failure(out, failure, *clock, paint)?;
    }
    Ok(())
}

fn write_failure(out: &mut dyn Write, failure: &Failure, clock: Clock, paint: Paint) -> io::Result<()> {
    let device =
        failure.device.map_or_else(|| format!("chip {:#x}", failure.chip_id), |n| format!("device {n}"));
    let class = failure.class.map_or(UNKNOWN, Class::name);
    let wall = failure.time.rfc3339().unwrap_or_else(|| UNKNOWN.to_owned());
    let when = format!("{wall} ({} ago)", age(clock.age_ns(failure.time.monotonic_ns)));
    let asked = format!("{} of {class} on {device}", bytes(failure.shortage.request_bytes));
    writeln!(out, "{}", paint.bold(&format!("{when}  {asked}")))?;
    let Who { name, .. } = &failure.who;
    writeln!(out, "  requested by pid {} \"{name}\"", failure.who.pid_text())?;
    let shortage = failure.shortage;
    let needed = shortage.needed_text().map_or_else(String::new, |needed| format!("needed {needed}; "));
    let (free, largest) = (shortage.free_text(), shortage.largest_text());
    let why = match failure.cause {
        Some(Cause::Exhausted) => ": exhausted",
        Some(Cause::Fragmented) => ": fragmented",
        None => "",
    };
    writeln!(out, "  {needed}free {free}, largest block {largest}{}", paint.warn(why))?;
    write_holders(out, failure, &device, paint)?;
    write_events(out, failure, paint)
}

fn write_holders(out: &mut dyn Write, failure: &Failure, device: &str, paint: Paint) -> io::Result<()> {
    let Some(holders) = &failure.holders else {
        return writeln!(out, "  held on {device} at that time: {UNKNOWN} (not recorded by an aggregator)");
    };
    let doubt = if holders.exact { "exact" } else { "incomplete: other processes may have held more" };
    let classes = used_classes(holders);
    writeln!(out, "  held on {device} at that time ({doubt}): {}", sums(holders, &classes))?;
    if holders.list.is_empty() {
        return Ok(());
    }
    use Align::{Left, Right};
    let heads = [("    PID", Left), ("NAME", Left)];
    let heads: Vec<_> = heads.into_iter().chain(classes.iter().map(|class| (class.name(), Right))).collect();
    let mut columns = Columns::new(&heads);
    let line = |pid: String, name: String, held: &[u64; Class::COUNT]| {
        let figures = classes.iter().map(|class| bytes(held[*class as usize]));
        [format!("    {pid}"), name].into_iter().chain(figures).collect::<Vec<_>>()
    };
    for holder in &holders.list {
        columns.push(line(holder.who.pid_text(), fit(&holder.who.name.to_string(), NAME), &holder.classes));
    }
    if holders.other_count > 0 {
        columns.push(line("others".to_owned(), plural(holders.other_count, "process"), &holders.others));
    }
    columns.write(out, paint)
}

fn used_classes(holders: &Holders) -> Vec<Class> {
    Class::ALL.into_iter().filter(|class| holders.classes[*class as usize] > 0).collect()
}

fn sums(holders: &Holders, classes: &[Class]) -> String {
    let sum = |class: &Class| format!("{} {}", class.name(), bytes(holders.classes[*class as usize]));
    let sums: Vec<String> = classes.iter().map(sum).collect();
    if sums.is_empty() { "nothing".to_owned() } else { sums.join(", ") }
}

fn write_events(out: &mut dyn Write, failure: &Failure, paint: Paint) -> io::Result<()> {
    let doubt = if failure.events_complete { "" } else { " (some may be missing)" };
    if failure.events.is_empty() {
        return writeln!(
            out,
            "  events before it: {}",
            if failure.events_complete { "nothing" } else { UNKNOWN }
        );
    }
    writeln!(out, "{}", paint.dim(&format!("  events before it{doubt}:")))?;
    for Before { time, pid, kind, class, id, size } in &failure.events {
        let ago = age(failure.time.monotonic_ns.saturating_sub(time.monotonic_ns));
        let time = time.rfc3339();
        // JSON has the date too.
        let time = time_of_day(time.as_deref());
        let kind = event_name(*kind);
        let what = class.map_or_else(String::new, |class| format!(" {}", class.name()));
        let size = size.map_or_else(String::new, |size| format!(" {}", bytes(size)));
        let id = id.map_or_else(String::new, |id| format!(" id {id:#x}"));
        writeln!(out, "    {time} (-{ago}) pid {pid} {kind}{what}{size}{id}")?;
    }
    Ok(())
}
