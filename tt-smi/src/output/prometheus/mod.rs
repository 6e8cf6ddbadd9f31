//! A snapshot for Prometheus, in its text format 0.0.4. Names fit those that others around Tenstorrent use; what is
//! not known is left out.

mod devices;
mod family;
mod processes;

use std::io::{self, Write};

use crate::model::{Model, Origin, Word};
use family::{Families, Kind, Labels};

/// Writes a model.
pub fn write(out: &mut dyn Write, model: &Model) -> io::Result<()> {
    let mut families = Families::default();
    devices::add(&mut families, model);
    processes::add(&mut families, model);
    about(&mut families, model);
    families.write(out)
}

/// Whether what is told is complete.
fn about(families: &mut Families, model: &Model) {
    let none = Labels::default;
    let version = Labels::default().with("version", env!("CARGO_PKG_VERSION"));
    families.add("tt_smi_info", Kind::Gauge, "Version of the tool that wrote this.", version, 1.0);
    let refused = "Files of processes that are broken or not to be trusted, and left out.";
    families.add("tt_smi_refused_files", Kind::Gauge, refused, none(), model.refused as f64);
    let hidden = "Files of other users' processes that may not be read here, and are left out.";
    families.add("tt_smi_hidden_files", Kind::Gauge, hidden, none(), model.hidden as f64);
    let problems = "What is missing or doubtful, by kind: the errors of the JSON snapshot.";
    for problem in &model.problems {
        let kind = Labels::default().with("kind", problem.kind.word());
        families.add("tt_smi_problems", Kind::Gauge, problems, kind, 1.0);
    }
    if let Some(age_ns) = model.age_ns {
        let age = "Age of the figures: everything that processes had reported by then is in them.";
        families.add("tt_smi_age_seconds", Kind::Gauge, age, none(), age_ns as f64 / 1e9);
    }
    // Without an aggregator these begin anew with each snapshot, and would count nothing.
    if let Origin::Table { .. } = model.origin {
        let name = "tt_aggregator_events_total";
        families.add(
            name,
            Kind::Counter,
            "Events that the aggregator followed.",
            none(),
            model.events as f64,
        );
        let missed = "Events that were overwritten before the aggregator saw them; totals stay exact.";
        families.add("tt_aggregator_missed_events_total", Kind::Counter, missed, none(), model.missed as f64);
    }
}
