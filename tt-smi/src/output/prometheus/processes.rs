//! Metrics of processes on devices. Processes that no label tells apart are one group, and their figures one sum.

use std::collections::BTreeMap;

use super::family::{About, Kind, Labels, Sample};
use super::{Scope, devices};
use crate::model::{Column, Held, Model, Process, Unit, Usage, process_columns};

/// The processes on a device that have the same labels.
#[derive(Default)]
struct Group<'a> {
    usages: Vec<&'a Usage>,
}

/// The figures of every group of living processes, the group with the most DRAM first: where not all have room, the
/// largest stay.
pub(super) fn samples(model: &Model, scope: &Scope) -> Vec<Vec<Sample>> {
    let mut groups: BTreeMap<Labels, Group<'_>> = BTreeMap::new();
    for process in alive(model) {
        for usage in &process.usages {
            let labels = labels(process, usage, model, scope);
            groups.entry(labels).or_default().usages.push(usage);
        }
    }
    let mut groups: Vec<(Labels, Group<'_>)> = groups.into_iter().collect();
    groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.dram()));
    groups.iter().map(|(labels, group)| group.samples(labels, scope)).collect()
}

/// Event rates: a process has one, on all devices together.
pub(super) fn rates(model: &Model, scope: &Scope) -> Vec<Sample> {
    let rate = |process: &Process| {
        let about = About {
            name: "tt_process_events_per_second",
            kind: Kind::Gauge,
            help: "Events of the last second.",
        };
        Some((about, own_labels(process, Labels::default(), scope), process.events_per_second?))
    };
    // Of a group, a rate that is not known would be missing in the sum.
    if scope.pids { alive(model).filter_map(rate).collect() } else { Vec::new() }
}

fn alive(model: &Model) -> impl Iterator<Item = &Process> {
    model.processes.iter().filter(|process| process.is_alive())
}

impl Group<'_> {
    fn dram(&self) -> u64 {
        self.usages.iter().map(|usage| usage.held.dram.used).fold(0, u64::saturating_add)
    }

    /// What only a single process has, peaks and counts from its start on, is told where each series is one process.
    fn samples(&self, labels: &Labels, scope: &Scope) -> Vec<Sample> {
        let is_single = scope.pids && self.usages.len() == 1;
        let is_told = |column: &&Column| {
            column.sum.is_some() && (!scope.brief || column.is_brief()) && (is_single || column.adds_up())
        };
        let columns = process_columns().filter(is_told);
        let known =
            columns.filter_map(|column| Some((about(column), labels.clone(), self.sum(column)? as f64)));
        let mut samples: Vec<Sample> = known.collect();
        let exact = self.usages.iter().all(|usage| {
            [&usage.held.dram, &usage.held.l1].iter().all(|memory| memory.used_range().is_exact())
        });
        samples.push((EXACT, labels.clone(), f64::from(u8::from(exact))));
        if !scope.pids {
            samples.push((PROCESSES, labels.clone(), self.usages.len() as f64));
        }
        let disputed = self.usages.iter().filter(|usage| usage.claim.is_some()).count();
        if disputed > 0 {
            samples.push((CONFLICT, labels.clone(), disputed as f64));
        }
        samples
    }

    /// `None` if one of the parts is only a bound: then so is the sum.
    fn sum(&self, column: &Column) -> Option<u64> {
        let part = |held: &Held| column.of_sum(held);
        self.usages.iter().try_fold(0_u64, |sum, usage| Some(sum.saturating_add(part(&usage.held)?)))
    }
}

const EXACT: About = About {
    name: "tt_process_exact",
    kind: Kind::Gauge,
    help: "1 if the DRAM and L1 that it holds on the device are exact, 0 if not: then they are left out.",
};
const PROCESSES: About = About {
    name: "tt_process_processes",
    kind: Kind::Gauge,
    help: "Processes that hold something on the device and have these labels.",
};
const CONFLICT: About = About {
    name: "tt_process_claims_conflict",
    kind: Kind::Gauge,
    help: "1 if what a process says of the device is not taken for true.",
};

fn about(column: &'static Column) -> About {
    let kind = if column.unit == Unit::Total { Kind::Counter } else { Kind::Gauge };
    About { name: &column.metrics[1], kind, help: &column.help }
}

fn labels(process: &Process, usage: &Usage, model: &Model, scope: &Scope) -> Labels {
    let device = model.devices.iter().find(|device| device.index == usage.device);
    let labels = device.map_or_else(|| Labels::default().with("device", usage.device), devices::labels);
    own_labels(process, labels, scope)
}

/// Labels that tell processes apart, beside their pids.
pub const PROCESS_LABELS: [&str; 5] = ["process", "user", "container_id", "pod_uid", "slurm_job"];

/// The pid here where it is known, and whether it is only claimed; beside it what the process calls itself, which is
/// another in a container.
fn own_labels(process: &Process, labels: Labels, scope: &Scope) -> Labels {
    let labels = match scope.pids {
        true => labels
            .with_known("pid", process.pid)
            .with_known("claimed", process.claimed.filter(|claimed| *claimed))
            .with("namespace_pid", process.namespace_pid),
        false => labels,
    };
    labels
        .with("process", &process.name)
        .with("user", process.owner())
        .with_known("container_id", process.container.as_ref().map(|container| &container.id))
        .with_known("pod_uid", process.kubernetes_pod_uid.as_ref())
        .with_known("slurm_job", process.slurm_job_id)
        .without(&scope.dropped_labels)
}
