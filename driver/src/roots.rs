//! Where sysfs and procfs are mounted.

use std::path::{Path, PathBuf};

use tt_shm_os::Procfs;

/// The mount points of sysfs and procfs. Tests and containers that mount the host's elsewhere have others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// Sysfs.
    pub sys: PathBuf,
    /// Procfs.
    pub proc: PathBuf,
}

impl Default for Roots {
    fn default() -> Roots {
        Roots::below("/")
    }
}

impl Roots {
    /// `sys` and `proc` of a folder.
    pub fn below(folder: impl AsRef<Path>) -> Roots {
        let folder = folder.as_ref();
        Roots { sys: folder.join("sys"), proc: folder.join("proc") }
    }

    /// The folder of all devices.
    pub(crate) fn devices(&self) -> PathBuf {
        self.sys.join("class/tenstorrent")
    }

    /// The file that has the version of the driver.
    pub(crate) fn version(&self) -> PathBuf {
        self.sys.join("module/tenstorrent/version")
    }

    /// The file that lists who holds a device.
    pub(crate) fn pids(&self, number: u32) -> PathBuf {
        self.proc.join(format!("driver/tenstorrent/{number}/pids"))
    }

    pub(crate) fn procfs(&self) -> Procfs {
        Procfs::at(&self.proc)
    }
}
