//! A process that holds a device, as JSON.

use serde::Serialize;
use tt_shm_driver::{Confidence, Container, Holder};

use crate::escape::Foreign;

/// A process that has a device open.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HolderJson {
    /// Its pid. If it is not confirmed, the pid that it may have in its own container.
    pid: u32,
    /// Whether it is known that the process with this pid is the one.
    pub(crate) confirmed: bool,
    /// Open descriptors of the device.
    handles: u32,
    /// Its user; `None` if not to be seen, as all that follows.
    uid: Option<u32>,
    /// The user's name; `None` if /etc/passwd has none.
    user: Option<Foreign>,
    /// Command line, arguments with blanks between, at most 4096 bytes.
    command: Option<Foreign>,
    /// When it was started, in seconds since 1970.
    started_unix_seconds: Option<u64>,
    /// Memory of the host that it has in RAM.
    host_resident_bytes: Option<u64>,
    /// Time on a processor, of all its threads.
    cpu_seconds: Option<f64>,
    /// The container that it is in, if it is in one.
    #[serde(flatten, serialize_with = "crate::procinfo::container::flat")]
    #[cfg_attr(test, schemars(schema_with = "crate::procinfo::container::schema"))]
    container: Option<Container>,
    /// UID of its pod of Kubernetes; `None` if it is in none.
    kubernetes_pod_uid: Option<String>,
    /// Its job of Slurm; `None` if it is in none.
    slurm_job_id: Option<u64>,
}

impl HolderJson {
    pub(super) fn new(holder: &Holder) -> HolderJson {
        let facts = holder.facts.as_ref();
        let groups = facts.map(|facts| &facts.groups);
        let uid = facts.and_then(|facts| facts.uid);
        HolderJson {
            pid: holder.pid,
            confirmed: holder.confidence != Confidence::Unconfirmed,
            handles: holder.handles,
            uid,
            user: uid.and_then(crate::users::name_of),
            command: facts.map(|facts| facts.command.as_str().into()),
            started_unix_seconds: facts.and_then(|facts| facts.started),
            host_resident_bytes: facts.and_then(|facts| facts.resident_bytes),
            cpu_seconds: facts.map(|facts| facts.cpu_time.as_secs_f64()),
            container: groups.and_then(|groups| groups.container.clone()),
            kubernetes_pod_uid: groups.and_then(|groups| groups.pod_uid.clone()),
            slurm_job_id: groups.and_then(|groups| groups.slurm_job),
        }
    }
}
