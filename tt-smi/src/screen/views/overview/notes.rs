//! What an operator should know.

use crate::escape::fit;
use crate::model::{Model, ProcessState};
use crate::output::units::{UNKNOWN, age, bytes};

/// Problems, flags of devices and processes, the last failure.
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
    // From its record: another process may have that pid now, or in another namespace.
    let record = model.failures.iter().find(|kept| kept.device == Some(index) && kept.time == failure.time);
    let who = record.map_or_else(
        || failure.pid.to_string(),
        |kept| format!("{}, {}", kept.who.pid_text(), fit(&kept.who.name, 16)),
    );
    Some(format!(
        " {} ago on device {index}: {} allocation of {} failed (pid {who}); {} free, largest block {}",
        age(model.clock.age_ns(failure.time)),
        failure.class.map_or_else(|| UNKNOWN.to_owned(), |class| class.name().to_uppercase()),
        bytes(failure.shortage.request),
        failure.shortage.free_text(),
        failure.shortage.largest_text(),
    ))
}
