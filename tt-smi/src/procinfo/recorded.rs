//! Who the processes of a record are. While one is replayed, nobody asks this machine: its pids are other processes.

use std::collections::HashMap;
use std::sync::OnceLock;

use tt_shm_record::{Process, Record};

use super::{Container, Groups, ProcInfo, RunState};

/// The processes of the record that is replayed, by pid.
static PEOPLE: OnceLock<HashMap<u32, ProcInfo>> = OnceLock::new();

/// What a record tells of its processes, by the pid that they had where it was recorded.
pub(crate) fn recorded_people(record: &Record) -> HashMap<u32, ProcInfo> {
    record.processes().filter_map(|process| Some((process.entry.who.pid_here?, info(process)))).collect()
}

fn info(process: &Process) -> ProcInfo {
    let who = &process.entry.who;
    let container = who.container_kind.as_deref().zip(who.container_id.as_deref());
    ProcInfo {
        command: who.command_line.clone().map(Into::into),
        groups: Groups {
            container: container.and_then(|(kind, id)| container_of(kind, id)),
            pod_uid: who.pod.clone(),
            slurm_job: who.job.as_deref().and_then(|job| job.parse().ok()),
        },
        state: RunState::Running,
        parent: who.parent,
        start_ticks: process.entry.header.start_time,
        // The files of a replay are this user's.
        owners: Some([rustix::process::geteuid().as_raw(); 2]),
    }
}

/// A container, if the record has an id as they have it.
fn container_of(kind: &str, id: &str) -> Option<Container> {
    let runtime = tt_shm_driver::RUNTIMES.into_iter().find(|runtime| *runtime == kind);
    let is_id = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| Container { runtime, id: id.to_owned() })
}

/// Answers for these processes from now on, and for no others.
pub(crate) fn replay_as(people: HashMap<u32, ProcInfo>) {
    // A process replays one record.
    let _ = PEOPLE.set(people);
}

/// The processes of the record that is replayed, if one is.
pub(super) fn people() -> Option<&'static HashMap<u32, ProcInfo>> {
    PEOPLE.get()
}
