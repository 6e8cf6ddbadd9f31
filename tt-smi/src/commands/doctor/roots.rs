//! Where the checks look. Given to them, so that tests can show them machines that are not there.

use std::ffi::OsString;
use std::path::PathBuf;

use tt_shm_os::Namespace;

/// The folders of a machine, and who asks.
#[derive(Clone, Debug)]
pub(super) struct Roots {
    pub(super) sys: PathBuf,
    pub(super) proc: PathBuf,
    pub(super) shm: PathBuf,
    pub(super) etc: PathBuf,
    pub(super) run: PathBuf,
    /// Where programs are looked for.
    pub(super) path: Option<OsString>,
    /// This program's own file.
    pub(super) program: Option<PathBuf>,
    pub(super) uid: u32,
    pub(super) namespace: Namespace,
    /// Whether the user chose the namespace.
    pub(super) namespace_given: bool,
}

impl Roots {
    /// Of this machine.
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

/// The first line of a small file, without white space around it.
pub(super) fn line(path: PathBuf) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}
