//! Where the checks look; passed to them, so that tests can provide made-up machines.

use std::ffi::OsString;
use std::path::PathBuf;

use tt_shm_os::Namespace;

/// The folders of a machine, and the user who asks.
#[derive(Clone, Debug)]
pub(super) struct Roots {
    pub(super) sys: PathBuf,
    pub(super) proc: PathBuf,
    pub(super) shm: PathBuf,
    pub(super) etc: PathBuf,
    pub(super) run: PathBuf,
    /// The PATH to search for programs.
    pub(super) path: Option<OsString>,
    /// The path of this program.
    pub(super) program: Option<PathBuf>,
    pub(super) uid: u32,
    pub(super) namespace: Namespace,
    /// Whether the user chose the namespace.
    pub(super) namespace_given: bool,
}

impl Roots {
    /// Those of this machine.
    pub(super) fn here(namespace: &Namespace, namespace_given: bool) -> Roots {
        Roots {
            sys: "/sys".into(),
            proc: "/proc".into(),
            shm: tt_shm_os::SHM_DIR.into(),
            etc: "/etc".into(),
            run: "/run".into(),
            path: std::env::var_os("PATH"),
            program: std::env::current_exe().ok(),
            uid: rustix::process::geteuid().as_raw(),
            namespace: namespace.clone(),
            namespace_given,
        }
    }
}

/// The first line of a small file, trimmed.
pub(super) fn line(path: PathBuf) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}
