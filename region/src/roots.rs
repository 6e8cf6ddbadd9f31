//! Where shared memory and procfs are.

use std::path::{Path, PathBuf};

use tt_shm_os::Procfs;

/// The folder of shared memory and the mount point of procfs. Tests, and containers that mount the host's elsewhere,
/// have others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// Shared memory, `/dev/shm`.
    pub shm: PathBuf,
    /// Procfs.
    pub proc: PathBuf,
}

impl Default for Roots {
    fn default() -> Roots {
        Roots::below("/")
    }
}

impl Roots {
    /// `dev/shm` and `proc` of a folder.
    pub fn below(folder: impl AsRef<Path>) -> Roots {
        let folder = folder.as_ref();
        Roots { shm: folder.join("dev/shm"), proc: folder.join("proc") }
    }

    pub(crate) fn procfs(&self) -> Procfs {
        Procfs::at(&self.proc)
    }
}
