//! What lists of devices, of processes and of errors have in common in JSON.

use serde::Serialize;

use crate::directory::DeviceId;
use crate::escape::Foreign;
use crate::model::{Claim, Device, Problem, Process};

/// Which device it is.
#[derive(Debug, Serialize)]
pub(crate) struct DeviceIdJson {
    index: usize,
    logical_id: Option<u64>,
    chip_id: String,
    pci_address: Option<String>,
}

impl DeviceIdJson {
    pub(crate) fn new(index: usize, id: &DeviceId) -> DeviceIdJson {
        DeviceIdJson {
            index,
            logical_id: id.logical,
            chip_id: format!("{:#018x}", id.chip_id),
            pci_address: id.pci.clone(),
        }
    }
}

/// What a device is, whatever is on it.
#[derive(Debug, Serialize)]
pub(crate) struct DeviceIdentityJson {
    #[serde(flatten)]
    id: DeviceIdJson,
    arch: Option<&'static str>,
    board: Option<Foreign>,
    source: Vec<&'static str>,
    capacity_source: Option<&'static str>,
}

impl DeviceIdentityJson {
    pub(crate) fn new(device: &Device) -> DeviceIdentityJson {
        DeviceIdentityJson {
            id: DeviceIdJson::new(device.index, &device.id),
            arch: device.arch,
            board: device.board.clone(),
            source: device.sources.clone(),
            capacity_source: device.capacity_source(),
        }
    }
}

/// Who a process is.
#[derive(Debug, Serialize)]
pub(crate) struct IdentityJson {
    /// As it is called here; `null` if it cannot be seen from here.
    pid: Option<u64>,
    /// Whether `pid` is only what the segment claims; `null` if there is none here, or the process has ended.
    claimed: Option<bool>,
    /// As it calls itself: another in a container.
    namespace_pid: u64,
    parent_pid: Option<u32>,
    uid: u32,
    user: Option<Foreign>,
    command: Option<Foreign>,
    container_runtime: Option<&'static str>,
    container_id: Option<String>,
    state: &'static str,
    source: &'static str,
    on_behalf_of: Option<u64>,
    self_checks: u64,
    self_checks_different: u64,
}

impl IdentityJson {
    pub(crate) fn new(process: &Process) -> IdentityJson {
        let info = process.info.as_ref();
        let container = info.and_then(|info| info.container.as_ref());
        IdentityJson {
            pid: process.pid,
            claimed: process.claimed,
            namespace_pid: process.namespace_pid,
            parent_pid: info.and_then(|info| info.parent),
            uid: process.uid,
            user: process.user.clone(),
            command: process.command().cloned(),
            container_runtime: container.and_then(|container| container.runtime),
            container_id: container.map(|container| container.id.clone()),
            state: process.state_name(),
            source: process.source,
            on_behalf_of: process.on_behalf_of,
            self_checks: process.self_checks[0],
            self_checks_different: process.self_checks[1],
        }
    }
}

/// What a process says of a device that is not taken for true.
#[derive(Debug, Serialize)]
pub(crate) struct ClaimJson {
    dram_total_bytes: Option<u64>,
    l1_total_bytes: Option<u64>,
    pci_address: Option<String>,
    board: Option<Foreign>,
}

impl From<&Claim> for ClaimJson {
    fn from(claim: &Claim) -> ClaimJson {
        ClaimJson {
            dram_total_bytes: claim.dram_total,
            l1_total_bytes: claim.l1_total,
            pci_address: claim.pci.clone(),
            board: claim.board.clone(),
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
