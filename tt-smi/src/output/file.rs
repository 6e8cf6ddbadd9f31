//! Files that a command writes: private, never through a link, and whole or not at all.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Writes a file with mode 0600 beside its place and puts it there when it is complete. A link in its place is
/// replaced, not followed.
pub fn write_private(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let beside = beside(path)?;
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(flags.bits() as i32)
        .open(&beside)?;
    let written = fill(file, write).and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written
}

fn fill(file: File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

/// A name in the same folder that nobody has.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no file name"))?;
    let name = format!(".{}.{:016x}", name.to_string_lossy(), tt_shm_os::random_u64()?);
    Ok(path.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, symlink};

    #[test]
    fn a_file_is_private_and_replaces_a_link() {
        let folder = std::env::temp_dir().join(format!("tt-smi-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (place, target) = (folder.join("report.json"), folder.join("target"));
        std::fs::write(&target, "untouched").unwrap();
        symlink(&target, &place).unwrap();
        write_private(&place, |out| out.write_all(b"new")).unwrap();
        let refused = write_private(&folder.join("x"), |_| Err(io::ErrorKind::Other.into()));
        let files = std::fs::read_dir(&folder).unwrap().count();
        let (mode, text) =
            (place.symlink_metadata().unwrap().mode(), std::fs::read_to_string(&place).unwrap());
        let kept = std::fs::read_to_string(&target).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!((mode, text.as_str(), kept.as_str()), (0o100_600, "new", "untouched"));
        assert!(refused.is_err() && files == 2, "nothing is left of a file that was not finished");
    }
}
