//! Private files: mode 0600, no links followed, written completely or not at all.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// Writes a new file; an error if the name exists.
pub(crate) fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = open_new(path)?;
    file.write_all(content).and_then(|()| file.sync_all()).inspect_err(|_| {
        // A partial file is worse than none; the first error is the one to report.
        let _ = std::fs::remove_file(path);
    })
}

/// Writes a file, or replaces one atomically: a reader sees the old content or the new, never a part. Anything but a
/// regular file is left alone: a device would be replaced, and a link may belong to another user.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(stat) if !stat.is_file() => {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is there and no regular file"));
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let beside = name_beside(path)?;
    create(&beside, content)?;
    std::fs::rename(&beside, path).inspect_err(|_| {
        let _ = std::fs::remove_file(&beside);
    })
}

fn open_new(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?))
}

/// A hidden, unguessable name in the same folder.
fn name_beside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| io::Error::other("it names no file"))?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{:016x}", tt_shm_os::random_u64()?));
    Ok(path.with_file_name(hidden))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn names(folder: &Path) -> Vec<OsString> {
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn a_file_is_private_new_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        create(&path, b"one").unwrap();
        assert_eq!(create(&path, b"two").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        replace(&path, b"three").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"three");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(names(folder.path()), ["a"], "nothing is left beside it");
    }

    #[test]
    fn links_and_devices_stay_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        std::fs::write(&target, "theirs").unwrap();
        symlink(&target, &link).unwrap();
        assert!(replace(&link, b"mine").is_err() && create(&link, b"mine").is_err());
        assert_eq!(std::fs::read(&target).unwrap(), b"theirs");
        assert!(link.is_symlink());
        assert!(replace(folder.path(), b"mine").is_err());
        assert_eq!(names(folder.path()).len(), 2);
    }
}
