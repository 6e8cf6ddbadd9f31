//! The tap: the library that `run` and `env` load into programs that use tt-metal. The program carries it inside itself,
//! and puts it into a private folder from which code may be loaded.

use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::process::geteuid;

use crate::private_file;

/// The library, built with this program.
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libtt_shm_tap.so"));

/// What the dynamic linker reads.
pub(crate) const PRELOAD_ENV: &str = "LD_PRELOAD";

/// The library as a file: written unless it is there already, byte for byte.
pub(crate) fn file() -> anyhow::Result<PathBuf> {
    let mut refused = Vec::new();
    for folder in folders() {
        match place(&folder) {
            Ok(path) => return Ok(path),
            Err(error) => refused.push(format!("{}: {error}", folder.display())),
        }
    }
    let refused = refused.join("; ");
    Err(anyhow::anyhow!("no folder to load a library from ({refused})")).context(
        "cannot put the tap in place; set XDG_CACHE_HOME to a folder of yours on a file system without noexec",
    )
}

/// What LD_PRELOAD has to be: the tap first, and whatever was there before.
pub(crate) fn preload(tap: &Path, before: Option<&OsStr>) -> OsString {
    let mut all = tap.as_os_str().to_owned();
    if let Some(before) = before.filter(|before| !before.is_empty() && *before != tap.as_os_str()) {
        all.push(":");
        all.push(before);
    }
    all
}

/// Where it may be put, best first. Not /dev/shm and /run: they are often mounted noexec.
fn folders() -> impl Iterator<Item = PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let uid = geteuid();
    let chosen = variable("XDG_CACHE_HOME").map(|cache| cache.join("tt-smi"));
    // What root runs may go on as another user, who has to be able to read it.
    let of_root = uid.is_root().then(|| PathBuf::from("/var/cache/tt-smi"));
    let at_home = variable("HOME").map(|home| home.join(".cache/tt-smi"));
    let own = format!("tt-smi-{}", uid.as_raw());
    let temporary = ["/var/tmp", "/tmp"].map(|folder| Path::new(folder).join(&own));
    [chosen, of_root, at_home].into_iter().flatten().chain(temporary)
}

fn place(folder: &Path) -> io::Result<PathBuf> {
    let refuse = |why: &str| Err(io::Error::other(why.to_owned()));
    // LD_PRELOAD knows no way to write these.
    if folder.as_os_str().as_bytes().iter().any(|byte| b": \t\n".contains(byte)) {
        return refuse("its name has a blank or a colon");
    }
    let mode = if geteuid().is_root() { 0o755 } else { 0o700 };
    std::fs::DirBuilder::new().recursive(true).mode(mode).create(folder)?;
    let stat = folder.symlink_metadata()?;
    if !stat.is_dir() || stat.uid() != geteuid().as_raw() || stat.mode() & 0o022 != 0 {
        return refuse("it belongs to others, or others may write there");
    }
    if statvfs(folder)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return refuse("it is mounted noexec");
    }
    let mut hasher = DefaultHasher::new();
    LIBRARY.hash(&mut hasher);
    let path = folder.join(format!("libtt_shm_tap-{:016x}.so", hasher.finish()));
    let mode = if geteuid().is_root() { 0o644 } else { 0o600 };
    // What others may write can change after it was compared.
    let is_own = path
        .symlink_metadata()
        .is_ok_and(|stat| stat.is_file() && stat.uid() == geteuid().as_raw() && stat.mode() & 0o777 == mode);
    if is_own && std::fs::read(&path).is_ok_and(|there| there == LIBRARY) {
        return Ok(path);
    }
    private_file::replace(&path, LIBRARY)?;
    std::fs::set_permissions(&path, PermissionsExt::from_mode(mode))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_preloaded_before_stays() {
        let tap = Path::new("/x/tap.so");
        let all = |before: Option<&str>| preload(tap, before.map(OsStr::new)).into_string().unwrap();
        assert_eq!(all(None), "/x/tap.so");
        assert_eq!(all(Some("")), "/x/tap.so");
        assert_eq!(all(Some("libmine.so /other.so")), "/x/tap.so:libmine.so /other.so");
        assert_eq!(all(Some("/x/tap.so")), "/x/tap.so", "a run in a run");
    }

    #[test]
    fn it_is_put_into_a_private_folder_and_mended() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("a");
        let path = place(&inside).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), LIBRARY);
        std::fs::write(&path, b"something else").unwrap();
        assert_eq!(place(&inside).unwrap(), path);
        assert_eq!(std::fs::read(&path).unwrap(), LIBRARY, "a file that is not the library is replaced");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
        assert_eq!(place(&inside).unwrap(), path);
        assert_eq!(path.metadata().unwrap().mode() & 0o022, 0, "one that others may write is replaced");
        assert_eq!(std::fs::read_dir(&inside).unwrap().count(), 1);
        std::fs::set_permissions(&inside, PermissionsExt::from_mode(0o777)).unwrap();
        assert!(place(&inside).unwrap_err().to_string().contains("others may write"));
        assert!(place(&folder.path().join("with blank")).unwrap_err().to_string().contains("blank"));
    }
}
