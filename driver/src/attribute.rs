//! A file of sysfs that has one value.

use std::path::{Path, PathBuf};

use crate::absence::{Absence, Reading};
use crate::files::Files;
use crate::format::Format;

/// Bytes of an attribute. The longest that are read here have 20.
const MAX_BYTES: usize = 256;

/// An attribute that is read often, through a handle that is kept.
#[derive(Debug)]
pub(crate) struct Attribute<H> {
    path: Option<PathBuf>,
    handle: Reading<H>,
}

impl<H> Attribute<H> {
    /// An attribute that is not open yet. Without a folder it is missing.
    pub(crate) fn new(folder: Option<&Path>, name: &str) -> Attribute<H> {
        Attribute { path: folder.map(|folder| folder.join(name)), handle: Err(Absence::Missing) }
    }

    /// Opens it if it is not open. Only a scan does this: most boards lack some attribute for good.
    pub(crate) fn open<F: Files<Handle = H>>(&mut self, files: &F) {
        if let (Err(_), Some(path)) = (&self.handle, &self.path) {
            self.handle = files.open(path).map_err(|error| Absence::of(&error, path));
        }
    }

    /// Its value now.
    pub(crate) fn read<F: Files<Handle = H>, T>(&mut self, files: &F, format: &Format<T>) -> Reading<T> {
        let (handle, path) = match (&self.handle, &self.path) {
            (Ok(handle), Some(path)) => (handle, path),
            (Err(absence), _) => return Err(absence.clone()),
            (Ok(_), None) => return Err(Absence::Missing),
        };
        let value = value(files, handle, path, format);
        if let Err(Absence::Gone) = &value {
            // This handle never works again; the next scan opens the file of a device that is back.
            self.handle = Err(Absence::Gone);
        }
        value
    }
}

/// Reads an attribute once.
pub(crate) fn read<F: Files, T>(files: &F, path: &Path, format: &Format<T>) -> Reading<T> {
    let handle = files.open(path).map_err(|error| Absence::of(&error, path))?;
    value(files, &handle, path, format)
}

fn value<F: Files, T>(files: &F, handle: &F::Handle, path: &Path, format: &Format<T>) -> Reading<T> {
    let mut buffer = [0; MAX_BYTES];
    let length = files.read(handle, &mut buffer).map_err(|error| Absence::of(&error, path))?;
    let bytes = &buffer[..length.min(MAX_BYTES)];
    // A full buffer may be the beginning of more.
    let text = str::from_utf8(bytes).ok().filter(|_| length < MAX_BYTES).map(str::trim_end);
    match text.and_then(format.parse) {
        Some(reading) => reading,
        None => Err(Absence::malformed(path, bytes, format.expected)),
    }
}
