//! What is kept of a comparison that failed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A folder for one failed comparison.
pub struct Evidence {
    folder: PathBuf,
}

impl Evidence {
    /// Makes the folder.
    pub fn new(parent: &Path, number: u64) -> io::Result<Evidence> {
        let folder = parent.join(format!("wrong-{number}"));
        std::fs::create_dir_all(&folder)?;
        Ok(Evidence { folder })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Keeps a text.
    pub fn text(&self, name: &str, text: &str) -> io::Result<()> {
        std::fs::write(self.folder.join(name), text)
    }

    /// Keeps a copy of a file, if it is there.
    pub fn file(&self, path: &Path) -> io::Result<()> {
        let name = path.file_name().unwrap_or_default();
        match File::open(path) {
            Ok(file) => self.copy(file, Path::new(name)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Keeps a copy of an open file. A segment is mostly holes; they stay holes.
    pub fn copy(&self, mut from: File, name: &Path) -> io::Result<()> {
        from.rewind()?;
        let mut to = File::create(self.folder.join(name))?;
        let mut buffer = vec![0; 1 << 16];
        let mut len = 0;
        loop {
            let read = from.read(&mut buffer)?;
            if read == 0 {
                return to.set_len(len);
            }
            len += read as u64;
            if buffer[..read].iter().all(|byte| *byte == 0) {
                to.seek(SeekFrom::Current(read as i64))?;
            } else {
                to.write_all(&buffer[..read])?;
            }
        }
    }
}
