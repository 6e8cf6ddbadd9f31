//! The container of a process, from the names of its control groups.

use std::fmt;

use serde::ser::{SerializeMap, Serializer};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// The runtime: `docker`, `podman`, `containerd`, `cri-o`, `kubernetes`; `None` if the name does not tell.
    pub runtime: Option<&'static str>,
    /// Its id: 64 hexadecimal digits.
    pub id: String,
}

impl Container {
    /// Serializes both parts as keys of the process, null where there is none.
    pub(crate) fn flat<S: Serializer>(
        container: &Option<Container>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let container = container.as_ref();
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("container_runtime", &container.and_then(|container| container.runtime))?;
        map.serialize_entry("container_id", &container.map(|container| &container.id))?;
        map.end()
    }

    #[cfg(test)]
    pub(crate) fn schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        use crate::schema::{enumeration, named, object};
        let mut runtimes: Vec<&str> = PREFIXES.iter().chain(&PARENTS).map(|(_, runtime)| *runtime).collect();
        let mut seen = std::collections::BTreeSet::new();
        runtimes.retain(|runtime| seen.insert(*runtime));
        let runtime = enumeration(runtimes, true);
        let id = schemars::json_schema!({ "type": ["string", "null"], "pattern": "^[0-9a-f]{64}$" });
        object([
            (
                "container_runtime".to_owned(),
                named(runtime, "Who made its container; null if it is in none, or not known."),
            ),
            ("container_id".to_owned(), named(id, "Its container; null if it is in none, or not known.")),
        ])
    }

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

/// Prefixes that runtimes put before the id.
const PREFIXES: [(&str, &str); 5] = [
    ("docker-", "docker"),
    ("libpod-", "podman"),
    ("cri-containerd-", "containerd"),
    ("nerdctl-", "containerd"),
    ("crio-", "cri-o"),
];

/// Names of parent groups, for ids without a prefix.
const PARENTS: [(&str, &str); 4] =
    [("docker", "docker"), ("libpod", "podman"), ("containerd", "containerd"), ("kubepods", "kubernetes")];

/// The container named in a `/proc/PID/cgroup`, for either version of control groups.
pub(super) fn find(cgroup: &str) -> Option<Container> {
    cgroup.lines().find_map(|line| in_path(line.splitn(3, ':').nth(2)?))
}

/// The innermost group that is named after a container.
fn in_path(path: &str) -> Option<Container> {
    let parts: Vec<&str> = path.split('/').collect();
    let (place, (prefix, id)) =
        parts.iter().enumerate().rev().find_map(|(i, part)| Some((i, id_in(part)?)))?;
    // The monitor of a podman or cri-o container, which runs outside of it.
    if prefix.contains("conmon") {
        return None;
    }
    let by_prefix = PREFIXES.iter().find(|(start, _)| *start == prefix).map(|(_, runtime)| *runtime);
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
            (format!("0::/../{id}"), None),
        ];
        for (cgroup, runtime) in cases {
            let found = find(&cgroup);
            assert_eq!(found, Some(Container { runtime, id: id.clone() }), "{cgroup}");
            let found = found.unwrap();
            assert_eq!(found.short_id(), "0123456789ab");
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
            assert_eq!(find(&cgroup), None, "{cgroup:?}");
        }
    }
}
