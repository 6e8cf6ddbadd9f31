//! What is wrong, worst and newest first: each in one sentence, with the place that tells more.

use std::collections::BTreeSet;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::escape::fit;
use crate::lists::suspects::Suspect;
use crate::model::{Cause, Device, Failure, Memory, Model, Process, ProcessState, Word, ranges};
use crate::screen::page::ProcessKey;
use crate::screen::theme::{Level, Theme};
use crate::screen::widgets::text::or_unknown;
use crate::units::{age, bytes, percent, share};

/// A failure is news for this long.
const FAILURE_NS: u64 = 600_000_000_000;
/// So is the end of a process that held something.
const END_NS: u64 = 300_000_000_000;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// Something failed, or is about to.
    Alarm,
    /// Something looks wrong, or figures are not complete.
    Warning,
    /// Something happened.
    Note,
}

/// Where there is more about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leads {
    Nowhere,
    /// To a device, by its place.
    Device(usize),
    Process(ProcessKey),
    Suspects,
}

/// Something that an operator should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Alarm {
    pub severity: Severity,
    /// How long ago; `None` if it is so now.
    pub age_ns: Option<u64>,
    pub text: String,
    pub leads: Leads,
}

impl Alarm {
    fn new(severity: Severity, text: String, leads: Leads) -> Alarm {
        Alarm { severity, age_ns: None, text, leads }
    }

    fn style(&self, theme: &Theme) -> Style {
        match self.severity {
            Severity::Alarm => theme.alarm(),
            Severity::Warning => theme.warn(),
            Severity::Note => theme.dim(),
        }
    }

    /// On a line of its own, cut with an ellipsis if it is too long.
    pub(super) fn line(&self, width: usize, theme: &Theme) -> Line<'static> {
        let sign = if self.severity == Severity::Note { "·" } else { "▲" };
        let when = self.age_ns.map_or_else(String::new, |ns| format!(" ({} ago)", age(ns)));
        let text = format!(" {sign} {}{when}", self.text);
        Line::from(Span::styled(fit(&text, width), self.style(theme)))
    }
}

/// Everything at this moment.
pub(super) fn alarms(model: &Model, suspects: &[Suspect]) -> Vec<Alarm> {
    let failures = model.failures.iter().filter_map(|failure| failed(failure, model));
    let devices = model.devices.iter().enumerate().flat_map(|(place, device)| of_device(place, device));
    let processes = model.processes.iter().filter(|process| process.is_alive()).flat_map(of_process);
    let leaks = suspects.iter().map(|suspect| leak(suspect, model));
    let problems = model.problems.iter().map(|problem| {
        let text = format!("{}: {}", problem.kind.word(), problem.message);
        Alarm::new(Severity::Warning, text, Leads::Nowhere)
    });
    let ends = model.reclaimed.iter().filter(|gone| gone.age_ns < END_NS && !gone.bytes.is_empty());
    let ends = ends.map(|gone| Alarm {
        age_ns: Some(gone.age_ns),
        ..Alarm::new(
            Severity::Note,
            format!("pid {} ended, {}", gone.pid, super::super::processes::held_text(gone)),
            Leads::Nowhere,
        )
    });
    let mut all: Vec<Alarm> =
        failures.chain(devices).chain(processes).chain(leaks).chain(problems).chain(ends).collect();
    all.sort_by_key(|alarm| (alarm.severity, alarm.age_ns));
    all.dedup_by(|later, first| later.text == first.text);
    all
}

/// An allocation that failed. The newest stands for all that one process failed to get of this class, on whatever device.
fn failed(failure: &Failure, model: &Model) -> Option<Alarm> {
    let age_ns = Some(model.clock.age_ns(failure.time.monotonic_ns)).filter(|ns| *ns < FAILURE_NS)?;
    let same = |other: &&Failure| other.who == failure.who && other.class == failure.class;
    let all: Vec<&Failure> = model.failures.iter().filter(same).collect();
    if all.first()?.key != failure.key {
        return None;
    }
    let devices: BTreeSet<usize> = all.iter().filter_map(|failure| failure.device).collect();
    let more = match all.len() - devices.len().max(1) {
        0 => String::new(),
        count => format!(", {count} more"),
    };
    let cause = match failure.cause {
        Some(Cause::Fragmented) => "fragmented",
        Some(Cause::Exhausted) => "exhausted",
        None => "cause unknown",
    };
    let text = format!(
        "{} allocation of {} failed on {}: {cause}, {} free, largest block {}; {}{more}",
        or_unknown(failure.class, |class| class.name().to_uppercase()),
        bytes(failure.shortage.request_bytes),
        or_unknown(failure.device, |_| ranges(devices.iter().copied())),
        failure.shortage.free_text(),
        failure.shortage.largest_text(),
        who(&failure.who.name, failure.who.pid),
    );
    let place = model.devices.iter().position(|device| Some(device.index) == failure.device);
    let leads = place.map_or(Leads::Nowhere, Leads::Device);
    Some(Alarm { age_ns: Some(age_ns), ..Alarm::new(Severity::Alarm, text, leads) })
}

fn who(name: &impl std::fmt::Display, pid: Option<u64>) -> String {
    format!("{} ({})", fit(name, 24), or_unknown(pid, |pid| pid.to_string()))
}

fn of_device(place: usize, device: &Device) -> Vec<Alarm> {
    let leads = Leads::Device(place);
    let mut alarms = Vec::new();
    for (name, memory) in [("DRAM", &device.held.dram), ("L1", &device.held.l1)] {
        let Memory { used, total, .. } = *memory;
        let over = total.is_some_and(|total| used > total);
        if over || Level::of(used, total) == Level::Full {
            let what = if over { "over capacity" } else { "nearly full" };
            let (share, percent) = (share(used, total), percent(used, total));
            let text = format!("device {}: {name} {what}, {share} ({percent})", device.index);
            alarms.push(Alarm::new(Severity::Alarm, text, leads));
        }
    }
    // What is over capacity is named above; the sum of a mesh's claims may still say so of neither.
    let named = !alarms.is_empty();
    let flags: Vec<&str> =
        device.flags().into_iter().filter(|flag| !(named && flag.ends_with("over capacity"))).collect();
    if !flags.is_empty() {
        let text = format!("device {}: {}", device.index, flags.join(", "));
        alarms.push(Alarm::new(Severity::Warning, text, leads));
    }
    alarms
}

fn of_process(process: &Process) -> Vec<Alarm> {
    let leads = Leads::Process(process.into());
    let name = who(&process.name, process.pid.or(Some(process.namespace_pid)));
    let mut alarms = Vec::new();
    let held = process.total(|held| held.dram.used.saturating_add(held.l1.used)).unwrap_or(0);
    if process.state == ProcessState::Stopped && held > 0 {
        let text = format!("{name} is stopped and holds {}", bytes(held));
        alarms.push(Alarm::new(Severity::Warning, text, leads));
    }
    let flags = process.flags();
    if !flags.is_empty() {
        alarms.push(Alarm::new(Severity::Warning, format!("{name}: {}", flags.join(", ")), leads));
    }
    alarms
}

fn leak(suspect: &Suspect, model: &Model) -> Alarm {
    let name = model.processes.iter().find(|process| process.pid == Some(suspect.origin.pid.into()));
    let name = name.map_or_else(|| suspect.origin.pid.to_string(), |process| who(&process.name, process.pid));
    let text = format!(
        "leak suspected: {name}, {}: +{} in {} ({} live, {})",
        suspect.called(32),
        bytes(suspect.more_bytes),
        suspect.over(),
        suspect.count,
        bytes(suspect.bytes),
    );
    Alarm::new(Severity::Warning, text, Leads::Suspects)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::More;
    use crate::screen::views::fixture;

    #[test]
    fn memory_that_is_full_is_named_and_comes_before_warnings() {
        let mut model = fixture::data(2, 1, More::None).model;
        model.processes[0].state = ProcessState::Stopped;
        model.processes[0].health.degraded = true;
        (model.devices[1].held.l1.used, model.devices[1].held.l1.total) = (95, Some(100));
        (model.devices[0].held.dram.used, model.devices[0].held.dram.total) = (101, Some(100));
        model.devices[0].over_capacity = true;
        let all = alarms(&model, &[]);
        let said: Vec<(Severity, &str)> = all.iter().map(|one| (one.severity, one.text.as_str())).collect();
        assert_eq!(
            said,
            [
                (Severity::Alarm, "device 0: DRAM over capacity, 101 / 100 B (101%)"),
                (Severity::Alarm, "device 1: L1 nearly full, 95 / 100 B (95%)"),
                (Severity::Warning, "worker (100) is stopped and holds 2 B"),
                (Severity::Warning, "worker (100): degraded"),
            ]
        );
        assert_eq!(all[1].leads, Leads::Device(1));
    }

    #[test]
    fn what_is_well_says_nothing() {
        assert_eq!(alarms(&fixture::data(2, 3, More::None).model, &[]), []);
    }
}
