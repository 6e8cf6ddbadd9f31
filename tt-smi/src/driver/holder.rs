//! A process that holds a device.

use serde::Serialize;
use tt_shm_driver::{Confidence, Container, Facts, Holder};

use crate::escape::Foreign;
use crate::model::RegionBytes;
use crate::units::UNKNOWN;

/// A process that has a device open.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HolderJson {
    /// Its pid. If it is not confirmed, the pid that it may have in its own container.
    pub pid: u32,
    /// Whether it is known that the process with this pid is the one.
    pub confirmed: bool,
    /// Whether it reports what it allocates. If not, what it uses is unknown: start it with `tt-smi run`.
    pub reports: bool,
    /// Open descriptors of the device; 0 if only tt-metal says that it uses the device.
    handles: u32,
    /// Its user; `None` if not to be seen, as all that follows.
    pub uid: Option<u32>,
    /// The user's name; `None` if /etc/passwd has none.
    user: Option<Foreign>,
    /// Command line, arguments with blanks between, at most 4096 bytes.
    pub command: Option<Foreign>,
    /// When it was started, in seconds since 1970.
    pub started_unix_seconds: Option<u64>,
    /// Memory of the host that it has in RAM.
    pub host_resident_bytes: Option<u64>,
    /// Time on a processor, of all its threads.
    pub cpu_seconds: Option<f64>,
    /// The container that it is in, if it is in one.
    #[serde(flatten, serialize_with = "crate::procinfo::container::flat")]
    #[cfg_attr(test, schemars(schema_with = "crate::procinfo::container::schema"))]
    container: Option<Container>,
    /// UID of its pod of Kubernetes; `None` if it is in none.
    kubernetes_pod_uid: Option<String>,
    /// Its job of Slurm; `None` if it is in none.
    slurm_job_id: Option<u64>,
}

/// A process that holds devices and does not report.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SilentHolder {
    /// Indices of the devices that it holds.
    pub devices: Vec<usize>,
    /// What is known of it.
    #[serde(flatten)]
    pub holder: HolderJson,
    /// What tt-metal's regions say that it requested, on all devices; `None` if it is in none. Never exact.
    pub tt_metal: Option<RegionBytes>,
}

impl HolderJson {
    pub(crate) fn new(holder: &Holder, reports: bool) -> HolderJson {
        let facts = holder.facts.as_ref();
        let groups = facts.map(|facts| &facts.groups);
        let uid = facts.and_then(|facts| facts.uid);
        HolderJson {
            pid: holder.pid,
            confirmed: holder.confidence != Confidence::Unconfirmed,
            reports,
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

    /// A process that is in a region of tt-metal, and not among the driver's holders.
    pub(crate) fn of_region(pid: u32, is_alive: bool) -> HolderJson {
        let confidence = if is_alive { Confidence::Confirmed } else { Confidence::Unconfirmed };
        let facts = if is_alive { Facts::of(&super::roots(), pid) } else { None };
        HolderJson::new(&Holder { pid, handles: 0, confidence, facts }, false)
    }

    /// `4711`, or `4711?` if it is not confirmed.
    pub fn pid_text(&self) -> String {
        format!("{}{}", self.pid, if self.confirmed { "" } else { "?" })
    }

    /// The user's name, else the number.
    pub fn owner(&self) -> String {
        let number = || self.uid.map_or_else(|| UNKNOWN.to_owned(), |uid| uid.to_string());
        self.user.as_ref().map_or_else(number, ToString::to_string)
    }

    /// The container, pod and job that it is in, in a few words each.
    pub fn place(&self) -> Option<String> {
        let container = self.container.as_ref().map(|container| {
            let runtime = container.runtime.map_or_else(String::new, |runtime| format!("{runtime} "));
            format!("{runtime}{}", container.short_id())
        });
        let pod = self.kubernetes_pod_uid.as_ref().map(|uid| format!("pod {uid}"));
        let job = self.slurm_job_id.map(|job| format!("slurm {job}"));
        let places: Vec<String> = [container, pod, job].into_iter().flatten().collect();
        (!places.is_empty()).then(|| places.join(", "))
    }
}
