//! What an operator should know.

use tt_shm_reader::Class;

use crate::model::{Model, ProcessState};
use crate::output::units::{UNKNOWN, age, bytes};

/// Problems, what is wrong with devices and processes, the last failure.
pub(super) fn all(model: &Model) -> Vec<String> {
    let problems = model.problems.iter().map(|problem| format!(" {}: {}", problem.kind, problem.message));
    let devices =
        model.devices.iter().map(|device| (format!("device {}", device.index), device.flags().join(", ")));
    let alive = model.processes.iter().filter(|process| process.state == ProcessState::Alive);
    let processes = alive.map(|process| (format!("pid {}", process.pid_text()), process.flags().join(", ")));
    let flagged = devices.chain(processes).filter(|(_, flags)| !flags.is_empty());
    let flagged = flagged.map(|(who, flags)| format!(" {who}: {flags}"));
    problems.chain(flagged).chain(last_failure(model)).collect()
}

fn last_failure(model: &Model) -> Option<String> {
    let failures = model.devices.iter().filter_map(|device| Some((device.index, device.failure?)));
    let (index, failure) = failures.max_by_key(|(_, failure)| failure.time)?;
    Some(format!(
        " {} ago on device {index} pid {} got no {} of {}; {} free, largest {}",
        age(model.clock.age_ns(failure.time)),
        failure.pid,
        bytes(failure.shortage.request),
        failure.class.map_or(UNKNOWN, Class::name),
        failure.shortage.free_text(),
        failure.shortage.largest_text(),
    ))
}
