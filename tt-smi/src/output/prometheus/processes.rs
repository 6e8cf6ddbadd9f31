//! Metrics of processes on devices.

use super::devices;
use super::family::{Families, Kind, Labels};
use crate::model::{Model, Process, Unit, Usage, process_columns};

/// Adds the figures of every process that lives on every device. All that a process counts itself is exact; what is
/// only a bound is left out.
pub(super) fn add(families: &mut Families, model: &Model) {
    let alive = || model.processes.iter().filter(|process| process.is_alive());
    for column in process_columns().filter(|column| column.sum.is_some()) {
        let kind = if column.unit == Unit::Total { Kind::Counter } else { Kind::Gauge };
        for process in alive() {
            for usage in &process.usages {
                if let Some(value) = column.of_sum(&usage.held) {
                    families.add(
                        &column.metrics[1],
                        kind,
                        &column.help,
                        labels(process, usage, model),
                        value as f64,
                    );
                }
            }
        }
    }
    for process in alive() {
        for usage in process.usages.iter().filter(|usage| usage.claim.is_some()) {
            let help = "1 if what a process says of the device is not taken for true.";
            let labels = labels(process, usage, model);
            families.add("tt_process_claims_conflict", Kind::Gauge, help, labels, 1.0);
        }
    }
    for process in alive() {
        if let Some(rate) = process.events_per_second {
            let help = "Events of the last second.";
            families.add(
                "tt_process_events_per_second",
                Kind::Gauge,
                help,
                own_labels(process, Labels::default()),
                rate,
            );
        }
    }
}

fn labels(process: &Process, usage: &Usage, model: &Model) -> Labels {
    let device = model.devices.iter().find(|device| device.index == usage.device);
    let labels = device.map_or_else(|| Labels::default().with("device", usage.device), devices::labels);
    own_labels(process, labels)
}

/// The pid here where it is known, and whether it is only claimed; beside it what the process calls itself, which is another in a container.
fn own_labels(process: &Process, labels: Labels) -> Labels {
    labels
        .with_known("pid", process.pid)
        .with_known("claimed", process.claimed.filter(|claimed| *claimed))
        .with("namespace_pid", process.namespace_pid)
        .with("process", &process.name)
        .with("user", process.owner())
}
