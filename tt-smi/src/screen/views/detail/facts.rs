//! Activity of the device, composition of its peaks, and warnings.

use ratatui::text::{Line, Span};
use tt_shm_reader::Class;

use super::figures::time_of_day;
use super::plan::Lines;
use crate::escape::fit;
use crate::model::{Cause, Device, Failure, Makeup, Model};
use crate::output::detail::INCOMPLETE;
use crate::output::units::{UNKNOWN, age, bytes, bytes_short, count, percent, plural};
use crate::screen::page::Scene;
use crate::screen::theme::Theme;

/// Activity and composition of the peaks of the scene's device.
pub(super) fn lines(scene: &Scene<'_>, width: u16) -> Lines {
    let Some(device) = scene.device() else { return Vec::new() };
    let (model, theme) = (&scene.data.model, scene.theme);
    let mut lines = vec![Line::default(), heading("ACTIVITY", theme)];
    lines.extend(activity(device).into_iter().map(Line::raw));
    for (name, makeup) in [("DRAM PEAK", &device.dram_makeup), ("L1 PEAK", &device.l1_makeup)] {
        lines.push(heading(name, theme));
        lines.extend(makeup_lines(makeup, model, usize::from(width)).into_iter().map(Line::raw));
    }
    let failures = failures(device, model, usize::from(width)).into_iter();
    lines.extend(failures.map(|text| Line::styled(text, theme.warn())));
    lines
}

fn heading(text: &'static str, theme: &Theme) -> Line<'static> {
    Line::from(Span::styled(format!(" {text}"), theme.heading()))
}

fn activity(device: &Device) -> [String; 2] {
    let rate = |rate: Option<f64>| rate.map_or_else(|| UNKNOWN.to_owned(), count);
    let cached = percent(device.held.cached_dispatches, Some(device.held.dispatches));
    [
        format!(
            "   {} dispatches/s, {} events/s",
            rate(device.dispatches_per_second),
            rate(device.events_per_second)
        ),
        format!("   {}, {cached} with a cached binary", plural(device.held.dispatches, "dispatch")),
    ]
}

/// Classes on one line, holders on as many as needed.
fn makeup_lines(makeup: &Makeup, model: &Model, width: usize) -> Vec<String> {
    if makeup.classes.is_empty() && makeup.holders.is_empty() {
        return vec!["   composition unknown".to_owned()];
    }
    let classes =
        makeup.classes.iter().map(|(class, bytes)| format!("{} {}", class.name(), bytes_short(*bytes)));
    let mut holders: Vec<String> = makeup
        .holders
        .iter()
        .map(|holder| {
            format!("pid {}{} {}", holder.pid, name_of(holder.pid, model), bytes_short(holder.bytes))
        })
        .collect();
    if makeup.others > 0 {
        holders.push(format!("others {}", bytes_short(makeup.others)));
    }
    let mut lines = wrapped("of ", classes.collect(), width);
    lines.extend(wrapped("by ", holders, width));
    if !makeup.exact {
        lines.push("   may be incomplete".to_owned());
    }
    lines
}

/// ` (llama)`; empty if the process is gone.
fn name_of(pid: u64, model: &Model) -> String {
    let process = model.processes.iter().find(|process| process.namespace_pid == pid);
    process.map_or_else(String::new, |process| format!(" ({})", fit(&process.name, 16)))
}

/// Comma-separated items, wrapped.
fn wrapped(head: &str, items: Vec<String>, width: usize) -> Vec<String> {
    let mut lines = vec![format!("   {head}")];
    let last = items.len().saturating_sub(1);
    for (place, item) in items.into_iter().enumerate() {
        let item = if place == last { item } else { format!("{item}, ") };
        let line = lines.last_mut().filter(|line| line.chars().count() + item.chars().count() <= width);
        match line {
            Some(line) => line.push_str(&item),
            None => lines.push(format!("      {item}")),
        }
    }
    lines
}

/// Warnings about the device, shown above everything else.
pub(super) fn warnings(device: &Device, model: &Model) -> Vec<String> {
    let explained = [
        (device.over_capacity, "over capacity: a process misreports"),
        (device.conflict, "conflict: processes disagree about the device"),
        (device.incomplete, INCOMPLETE),
    ];
    let explained = explained.into_iter().filter(|(set, _)| *set).map(|(_, text)| format!(" {text}"));
    let claims =
        model.processes.iter().flat_map(|process| process.claims().map(move |claim| (process, claim)));
    let claims = claims.filter(|(_, (index, _))| *index == device.index);
    let claims =
        claims.map(|(process, (_, claim))| format!(" pid {} says: {}", process.pid_text(), claim.text()));
    explained.chain(claims).collect()
}

/// The number of failed allocations, then the recorded ones, newest first.
fn failures(device: &Device, model: &Model, width: usize) -> Vec<String> {
    let failed = device.held.failed_allocs;
    let count =
        (failed > 0).then(|| format!(" {} by running processes", plural(failed, "failed allocation")));
    let kept = model.failures.iter().filter(|failure| failure.chip_id == device.id.chip_id);
    count.into_iter().chain(kept.flat_map(|failure| failure_lines(failure, model, width))).collect()
}

fn failure_lines(failure: &Failure, model: &Model, width: usize) -> Vec<String> {
    let why = match failure.shortage.cause() {
        Some(Cause::Exhausted) => ": exhausted",
        Some(Cause::Fragmented) => ": fragmented",
        // Neither: banks that differ, or an alignment.
        None => "",
    };
    let class = failure.class.map_or(UNKNOWN, Class::name);
    let pid = failure.who.pid_text();
    let parts = vec![
        format!("{} ago", age(model.clock.age_ns(failure.time))),
        format!(
            "pid {pid} ({}) requested {} of {class}",
            fit(&failure.who.name, 16),
            bytes(failure.shortage.request)
        ),
        format!("{} free", failure.shortage.free_text()),
        format!("largest block {}{why}", failure.shortage.largest_text()),
    ];
    wrapped(&format!("{} ", time_of_day(model.clock, failure.time)), parts, width)
}
