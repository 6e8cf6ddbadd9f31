//! What the names of a process's control groups tell: its container, its pod of Kubernetes, its job of Slurm.

use std::fmt;

/// What the control groups of a process tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// The container it runs in.
    pub container: Option<Container>,
    /// Its pod of Kubernetes: the pod's UID.
    pub pod_uid: Option<String>,
    /// Its job of Slurm.
    pub slurm_job: Option<u64>,
}

impl Groups {
    /// From a `/proc/PID/cgroup`, for either version of control groups.
    #[must_use]
    pub fn parse(cgroup: &str) -> Groups {
        let paths = || cgroup.lines().filter_map(|line| line.splitn(3, ':').nth(2));
        Groups {
            container: paths().find_map(container_in),
            pod_uid: paths().find_map(pod_in),
            slurm_job: paths().find_map(job_in),
        }
    }
}

/// A container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// The runtime: `docker`, `podman`, `containerd`, `cri-o`, `kubernetes`; `None` if the name does not tell.
    pub runtime: Option<&'static str>,
    /// Its id: 64 hexadecimal digits.
    pub id: String,
}

impl Container {
    /// The id as people know it.
    pub fn short_id(&self) -> &str {
        &self.id[..12]
    }
}

/// `docker:<id>`, or the id alone.
impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.runtime {
            Some(runtime) => write!(f, "{runtime}:{}", self.id),
            None => f.write_str(&self.id),
        }
    }
}

/// The runtimes that are told apart, each once.
pub const RUNTIMES: [&str; 5] = ["docker", "podman", "containerd", "cri-o", "kubernetes"];

/// Prefixes that runtimes put before the id.
const PREFIXES: [(&str, &str); 5] = [
    ("docker", "docker"),
    ("libpod", "podman"),
    ("cri-containerd", "containerd"),
    ("nerdctl", "containerd"),
    ("crio", "cri-o"),
];

/// Names of parent groups, for ids without a prefix.
const PARENTS: [(&str, &str); 4] =
    [("docker", "docker"), ("libpod", "podman"), ("containerd", "containerd"), ("kubepods", "kubernetes")];

/// The innermost group that is named after a container.
fn container_in(path: &str) -> Option<Container> {
    let parts: Vec<&str> = path.split('/').collect();
    let (place, (prefix, id)) =
        parts.iter().enumerate().rev().find_map(|(i, part)| Some((i, id_in(part)?)))?;
    // The monitor of a podman or cri-o container, which runs outside of it.
    if prefix.contains("conmon") {
        return None;
    }
    // What stands before the last colon of `pod:cri-containerd:<id>` is the parent.
    let maker = prefix.trim_end_matches(['-', ':']).rsplit(':').next();
    let by_prefix = PREFIXES.iter().find(|(start, _)| Some(*start) == maker).map(|(_, runtime)| *runtime);
    let by_parent = || {
        let parents = parts[..place].iter().rev();
        parents
            .flat_map(|part| PARENTS.iter().filter(|(start, _)| part.starts_with(start)))
            .map(|p| p.1)
            .next()
    };
    Some(Container { runtime: by_prefix.or_else(by_parent), id: id.to_owned() })
}

/// `docker-<id>.scope`, `<id>`, `pod:cri-containerd:<id>`: what stands before the id, and the id.
fn id_in(part: &str) -> Option<(&str, &str)> {
    let name = part.strip_suffix(".scope").unwrap_or(part);
    let (prefix, id) = name.split_at_checked(name.len().checked_sub(64)?)?;
    let is_id = id.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    let is_apart = prefix.is_empty() || prefix.ends_with(['-', ':']);
    (is_id && is_apart).then_some((prefix, id))
}

/// The pod of `kubepods-burstable-pod<uid>.slice`, with `_` for `-`, or of `pod<uid>`.
fn pod_in(path: &str) -> Option<String> {
    // The name of a group that a runtime was to give to systemd has colons: `<pod>.slice:cri-containerd:<id>`.
    path.split(['/', ':']).find_map(|part| {
        let name = part.strip_suffix(".slice").unwrap_or(part);
        let uid = match name.rsplit_once("-pod") {
            Some((parent, uid)) => parent.contains("kubepods").then_some(uid)?,
            None => name.strip_prefix("pod").filter(|_| path.contains("kubepods"))?,
        };
        let uid = uid.replace('_', "-");
        is_uid(&uid).then_some(uid)
    })
}

/// A UUID, or the 32 digits that a pod from a file of the node has.
fn is_uid(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_dash = |place: usize| text.len() == 36 && [8, 13, 18, 23].contains(&place);
    let fits = |(place, byte)| if is_dash(place) { byte == b'-' } else { is_digit(byte) };
    [32, 36].contains(&text.len()) && text.bytes().enumerate().all(fits)
}

/// The job of `/slurm/uid_1000/job_77/step_0` or `/system.slice/slurmstepd.scope/job_77/step_0`.
fn job_in(path: &str) -> Option<u64> {
    let mut parts = path.split('/');
    parts.find(|part| part.starts_with("slurm") || part.ends_with("slurmstepd.scope"))?;
    parts.find_map(|part| part.strip_prefix("job_")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtimes_are_told_by_their_names() {
        let id = "0123456789abcdef".repeat(4);
        let pod = "kubepods-burstable-pod1f2e.slice";
        let cases = [
            (format!("0::/system.slice/docker-{id}.scope\n"), Some("docker")),
            (format!("12:memory:/docker/{id}\n11:cpu:/docker/{id}\n0::/\n"), Some("docker")),
            (format!("0::/machine.slice/libpod-{id}.scope/container\n"), Some("podman")),
            (format!("0::/user.slice/user-1000.slice/libpod-{id}.scope"), Some("podman")),
            (format!("0::/kubepods.slice/{pod}/cri-containerd-{id}.scope"), Some("containerd")),
            (format!("0::/kubepods.slice/{pod}/crio-{id}.scope"), Some("cri-o")),
            (format!("5:cpu:/kubepods/burstable/pod1f2e/{id}"), Some("kubernetes")),
            (format!("0::/system.slice/{pod}:cri-containerd:{id}"), Some("containerd")),
            (format!("0::/../{id}"), None),
        ];
        for (cgroup, runtime) in cases {
            let found = Groups::parse(&cgroup).container;
            assert_eq!(found, Some(Container { runtime, id: id.clone() }), "{cgroup}");
            let found = found.unwrap();
            assert_eq!(found.short_id(), "0123456789ab");
            assert!(runtime.is_none_or(|runtime| RUNTIMES.contains(&runtime)));
            assert_eq!(found.to_string(), runtime.map_or(id.clone(), |runtime| format!("{runtime}:{id}")));
        }
    }

    #[test]
    fn other_groups_are_no_containers() {
        let id = "0123456789abcdef".repeat(4);
        let cases = [
            "".to_owned(),
            "0::/\n".to_owned(),
            "0::/user.slice/user-1000.slice/session-2.scope\n".to_owned(),
            format!("0::/machine.slice/libpod-conmon-{id}.scope"),
            format!("0::/x{id}"),
            format!("0::/{}", id.to_uppercase()),
            format!("0::/ä{}", &id[1..]),
            format!("no colon {id}"),
        ];
        for cgroup in cases {
            assert_eq!(Groups::parse(&cgroup), Groups::default(), "{cgroup:?}");
        }
    }

    #[test]
    fn pods_of_either_driver() {
        let id = "0123456789abcdef".repeat(4);
        let (uid, under) = ("1f2e3d4c-0001-4a2b-8c3d-0123456789ab", "1f2e3d4c_0001_4a2b_8c3d_0123456789ab");
        let fixed = "0123456789abcdef0123456789abcdef";
        for (path, expected) in [
            (
                format!(
                    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{under}.slice/crio-{id}.scope"
                ),
                uid,
            ),
            (format!("/kubepods/besteffort/pod{uid}/{id}"), uid),
            (
                format!(
                    "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{under}.slice/cri-containerd-{id}.scope"
                ),
                uid,
            ),
            (format!("/system.slice/kubepods-besteffort-pod{under}.slice:cri-containerd:{id}"), uid),
            (format!("/kubepods/pod{fixed}/{id}"), fixed),
        ] {
            let groups = Groups::parse(&format!("0::{path}\n"));
            assert_eq!(
                (groups.pod_uid.as_deref(), groups.container.is_some()),
                (Some(expected), true),
                "{path}"
            );
        }
        for path in [
            "/machine.slice/libpod-x",
            "/kubepods/pod12",
            "/user/pod1f2e3d4c-0001-4a2b-8c3d-0123456789ab",
            "/kubepods/podä",
        ] {
            assert_eq!(Groups::parse(&format!("0::{path}\n")).pod_uid, None, "{path}");
        }
    }

    #[test]
    fn jobs_of_either_version() {
        for (path, job) in [
            ("/slurm/uid_1000/job_77/step_0/task_0", Some(77)),
            ("/slurm_node1/uid_1000/job_78/step_batch", Some(78)),
            ("/system.slice/slurmstepd.scope/job_79/step_0/user/task_0", Some(79)),
            ("/system.slice/node1_slurmstepd.scope/job_80/step_0", Some(80)),
            ("/user.slice/job_81", None),
            ("/slurm/uid_0/job_x", None),
            ("/slurm/uid_0/job_99999999999999999999999", None),
        ] {
            assert_eq!(Groups::parse(&format!("5:memory:{path}\n0::/\n")).slurm_job, job, "{path}");
        }
    }
}
