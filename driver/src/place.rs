//! Where the files of a device are.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::absence::{Absence, Reading};

/// Devices that are looked at. A machine has 32.
pub(crate) const MAX_DEVICES: usize = 256;
/// Entries of a folder that are looked at.
const MAX_ENTRIES: usize = 4096;

/// The folders of a device. Another device at the same number, or the same device after it was attached again, has
/// other ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) number: u32,
    /// Attributes of the driver.
    pub(crate) class: Folder,
    /// The PCI function.
    pub(crate) pci: Option<Folder>,
    /// Sensors: a folder of the PCI function, whose number changes.
    pub(crate) hwmon: Option<Folder>,
}

/// A folder, with its inode: a folder that was removed and made again has another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    inode: (u64, u64),
}

impl Folder {
    fn at(path: &Path) -> Option<Folder> {
        let path = fs::canonicalize(path).ok()?;
        let metadata = fs::metadata(&path).ok().filter(fs::Metadata::is_dir)?;
        Some(Folder { path, inode: (metadata.dev(), metadata.ino()) })
    }

    /// Its name, if that is text.
    pub(crate) fn name(&self) -> Option<&str> {
        self.path.file_name()?.to_str()
    }
}

impl Place {
    fn of(number: u32, class: &Path) -> Option<Place> {
        let class = Folder::at(class)?;
        let pci = Folder::at(&class.path.join("device"));
        let hwmon = pci.as_ref().and_then(|pci| find_hwmon(&pci.path));
        Some(Place { number, class, pci, hwmon })
    }

    pub(crate) fn hwmon_path(&self) -> Option<&Path> {
        self.hwmon.as_ref().map(|folder| folder.path.as_path())
    }
}

/// The devices of a class, by number, and how many more there are than are looked at.
pub(crate) fn find(class: &Path) -> Reading<(Vec<Place>, usize)> {
    let entries = fs::read_dir(class).map_err(|error| Absence::of(&error, class))?;
    let names = entries.take(MAX_ENTRIES).flatten();
    let mut found: Vec<(u32, PathBuf)> =
        names.filter_map(|entry| Some((number_of(&entry.file_name())?, entry.path()))).collect();
    // By number: the name of device 10 sorts before that of device 9.
    found.sort();
    let left_out = found.len().saturating_sub(MAX_DEVICES);
    found.truncate(MAX_DEVICES);
    // One that vanished meanwhile is left out.
    let places = found.iter().filter_map(|(number, path)| Place::of(*number, path)).collect();
    Ok((places, left_out))
}

/// `tenstorrent!10` is device 10: sysfs writes a slash as an exclamation mark.
fn number_of(name: &OsStr) -> Option<u32> {
    let digits = name.to_str()?.strip_prefix("tenstorrent!")?;
    let number: u32 = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

/// A PCI function has one; of several the lowest number counts.
fn find_hwmon(pci: &Path) -> Option<Folder> {
    let entries = fs::read_dir(pci.join("hwmon")).ok()?.take(MAX_ENTRIES).flatten();
    let number = |name: &OsStr| name.to_str()?.strip_prefix("hwmon")?.parse::<u32>().ok();
    let lowest = entries.filter_map(|entry| Some((number(&entry.file_name())?, entry.path()))).min()?;
    Folder::at(&lowest.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_devices() {
        assert_eq!(number_of(OsStr::new("tenstorrent!10")), Some(10));
        for bad in
            ["tenstorrent!", "tenstorrent!01", "tenstorrent!+1", "tenstorrent", "other!1", "tenstorrent!9x"]
        {
            assert_eq!(number_of(OsStr::new(bad)), None, "{bad}");
        }
    }
}
