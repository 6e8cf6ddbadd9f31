//! Metrics, as Prometheus reads them: a snapshot in its text format 0.0.4, or what `tt-smi serve` answers, in
//! OpenMetrics. Both are made here from the one table of figures. Names fit those that others around Tenstorrent use;
//! what is not known is left out.

mod devices;
mod family;
mod processes;

pub use family::TextFormat;
pub(crate) use family::{About, Kind, Labels, Sample, label};
pub use processes::PROCESS_LABELS;

use std::io::{self, Write};

use crate::model::{Model, Origin, Word};
use family::Families;

/// Which series are told.
#[derive(Clone, Debug)]
pub struct Scope {
    /// One series for each process, not one for all that have the same other labels.
    pub pids: bool,
    /// Only what each memory has in all, without its parts.
    pub brief: bool,
    /// Labels of processes that are left out: those that they told apart are summed.
    pub dropped_labels: Vec<String>,
    /// Most series of devices and processes.
    pub max_series: usize,
}

impl Default for Scope {
    fn default() -> Scope {
        Scope { pids: true, brief: false, dropped_labels: Vec::new(), max_series: usize::MAX }
    }
}

/// Writes a snapshot.
pub fn write(out: &mut dyn Write, model: &Model) -> io::Result<()> {
    write_part(out, model, &Scope::default(), TextFormat::Prometheus, "")
}

/// Writes a part of a model in a format, with the same labels, as text, for every series.
pub fn write_part(
    out: &mut dyn Write,
    model: &Model,
    scope: &Scope,
    format: TextFormat,
    constant: &str,
) -> io::Result<()> {
    write_scope(out, model, scope, format, constant, Vec::new())
}

/// The same, with what else there is to tell.
pub(crate) fn write_scope(
    out: &mut dyn Write,
    model: &Model,
    scope: &Scope,
    format: TextFormat,
    constant: &str,
    more: Vec<Sample>,
) -> io::Result<()> {
    let mut families = Families::default();
    let devices = model.devices.iter().map(|device| devices::samples(device, scope)).collect();
    let dropped_of_devices = admit(&mut families, devices, scope.max_series);
    let mut groups = processes::samples(model, scope);
    groups.extend(processes::rates(model, scope).into_iter().map(|rate| vec![rate]));
    let dropped_of_processes = admit(&mut families, groups, scope.max_series);
    for (of, dropped) in [("devices", dropped_of_devices), ("processes", dropped_of_processes)] {
        if scope.max_series < usize::MAX {
            families.add((DROPPED, Labels::default().with("of", of), dropped as f64));
        }
    }
    about(model).into_iter().chain(more).for_each(|sample| families.add(sample));
    families.write(out, format, constant)
}

const DROPPED: About = About {
    name: "tt_smi_dropped_series",
    kind: Kind::Gauge,
    help: "Series that --max-series left out of this answer: devices or processes as a whole, the smallest first.",
};

/// Adds devices or processes as long as all series of one have room; returns how many series had none.
fn admit(families: &mut Families, parts: Vec<Vec<Sample>>, most: usize) -> usize {
    let mut dropped = 0;
    for samples in parts {
        match families.series.saturating_add(samples.len()) <= most {
            true => samples.into_iter().for_each(|sample| families.add(sample)),
            false => dropped += samples.len(),
        }
    }
    dropped
}

/// Whether what is told is complete.
fn about(model: &Model) -> Vec<Sample> {
    let gauge = |name, help| About { name, kind: Kind::Gauge, help };
    let counter = |name, help| About { name, kind: Kind::Counter, help };
    let none = Labels::default;
    let version = none().with("version", env!("CARGO_PKG_VERSION"));
    let refused = "Files of processes that are broken or not to be trusted, and left out.";
    let hidden = "Files of other users' processes that may not be read here, and are left out.";
    let info = About { name: "tt_smi_info", kind: Kind::Info, help: "Version of the tool that wrote this." };
    let mut samples = vec![
        (info, version, 1.0),
        (gauge("tt_smi_refused_files", refused), none(), model.refused as f64),
        (gauge("tt_smi_hidden_files", hidden), none(), model.hidden as f64),
    ];
    let problems = "What is missing or doubtful, by kind: the errors of the JSON snapshot.";
    for problem in &model.problems {
        let kind = none().with("kind", problem.kind.word());
        samples.push((gauge("tt_smi_problems", problems), kind, 1.0));
    }
    if let Some(age_ns) = model.age_ns {
        let age = "Age of the figures: everything that processes had reported by then is in them.";
        samples.push((gauge("tt_smi_age_seconds", age), none(), age_ns as f64 / 1e9));
    }
    // Without an aggregator these begin anew with each snapshot, and would count nothing.
    if let Origin::Table { .. } = model.origin {
        let events = "Events that the aggregator followed.";
        let missed = "Events that were overwritten before the aggregator saw them; totals stay exact.";
        samples.extend([
            (counter("tt_aggregator_events_total", events), none(), model.events as f64),
            (counter("tt_aggregator_missed_events_total", missed), none(), model.missed as f64),
        ]);
    }
    samples
}
