//! What lists of processes and of errors have in common in JSON.

use serde::Serialize;

use crate::escape::Foreign;
use crate::model::{Problem, Process};

/// Who a process is.
#[derive(Debug, Serialize)]
pub(crate) struct IdentityJson {
    /// As it is called here; `null` if it cannot be seen from here.
    pid: Option<u64>,
    /// As it calls itself: another in a container.
    namespace_pid: u64,
    parent_pid: Option<u32>,
    uid: u32,
    user: Option<Foreign>,
    command: Option<Foreign>,
    container_runtime: Option<&'static str>,
    container_id: Option<String>,
    state: &'static str,
}

impl IdentityJson {
    pub(crate) fn new(process: &Process) -> IdentityJson {
        let info = process.info.as_ref();
        let container = info.and_then(|info| info.container.as_ref());
        IdentityJson {
            pid: process.pid,
            namespace_pid: process.namespace_pid,
            parent_pid: info.and_then(|info| info.parent),
            uid: process.uid,
            user: process.user.clone(),
            command: process.command().cloned(),
            container_runtime: container.and_then(|container| container.runtime),
            container_id: container.map(|container| container.id.clone()),
            state: process.state_name(),
        }
    }
}

/// Something that could not be read or believed.
#[derive(Debug, Serialize)]
pub(crate) struct ErrorJson {
    kind: &'static str,
    pid: Option<u64>,
    uid: u64,
    file: Foreign,
    message: Foreign,
}

pub(crate) fn error_json(problem: &Problem) -> ErrorJson {
    ErrorJson {
        kind: problem.kind,
        pid: problem.pid,
        uid: problem.uid,
        file: problem.file.clone(),
        message: problem.message.clone(),
    }
}
