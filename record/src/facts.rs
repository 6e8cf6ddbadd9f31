//! What a record says of itself and of its processes, in words. Kept as JSON in the file: later versions may add to it.

use serde::{Deserialize, Serialize};

/// The most bytes of each of these as JSON.
pub(crate) const MAX_FACTS: usize = 64 * 1024;

/// How a record began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Begin {
    /// The version of the layout of segments that its rows and events have, as `major.minor`.
    pub layout: String,
    /// The version of the tool that wrote it.
    pub tool: String,
    /// The name of the machine.
    pub host: String,
    /// The boot of the machine, in hexadecimal: times and pids of another boot cannot be compared with these.
    pub boot_id: String,
    /// The namespace that was recorded.
    pub namespace: String,
    /// The user who recorded it.
    pub uid: u32,
    /// When recording began, CLOCK_MONOTONIC.
    pub monotonic_ns: u64,
    /// The same moment, CLOCK_REALTIME.
    pub realtime_ns: u64,
    /// Why it was recorded: the command and its arguments.
    pub command: Vec<String>,
    /// The number of the file among those of one recording, from 0.
    pub part: u64,
    /// The random number of the recording that its parts share.
    pub recording: u64,
    /// Clock ticks per second of process start times.
    pub ticks_per_second: u64,
}

/// Who a process is, as the recorder knew it. What it did not know is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Who {
    /// Its pid where it was recorded; `None` if it could not be seen from there, or was not confirmed.
    pub pid_here: Option<u32>,
    /// Its arguments, separated by blanks.
    pub command_line: Option<String>,
    /// The name of its user.
    pub user: Option<String>,
    /// The kind of container it ran in, such as `docker`.
    pub container_kind: Option<String>,
    /// The id of that container.
    pub container_id: Option<String>,
    /// The UID of its Kubernetes pod.
    pub pod: Option<String>,
    /// Its Slurm job, or another name of the job that it belonged to.
    pub job: Option<String>,
    /// The pid of its parent where it was recorded.
    pub parent: Option<u32>,
    /// When it was started, in clock ticks since boot; `None` if unknown.
    pub start_time: Option<u64>,
    /// The name of its segment's file.
    pub file_name: Option<String>,
}
