//! How attributes are opened and read. Tests put another implementation in place, which fails where they tell it to:
//! no ordinary file gives ENODATA or ENODEV.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

/// Opens attributes and reads them, again and again through one handle.
pub trait Files {
    /// An open attribute.
    type Handle;

    /// Opens an attribute.
    ///
    /// # Errors
    ///
    /// What the system answers.
    fn open(&self, path: &Path) -> io::Result<Self::Handle>;

    /// Reads an attribute from its beginning: the driver computes its value for each such read.
    ///
    /// # Errors
    ///
    /// What the system answers.
    fn read(&self, handle: &Self::Handle, buffer: &mut [u8]) -> io::Result<usize>;
}

/// The files of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelFiles;

impl Files for KernelFiles {
    type Handle = File;

    /// An attribute is a regular file. Symbolic links are not followed and FIFOs are not waited for, so that no tree
    /// makes this open a device through a link, or hang.
    fn open(&self, path: &Path) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::open(path, flags, Mode::empty())?;
        let mode = rustix::fs::fstat(&file)?.st_mode;
        match FileType::from_raw_mode(mode) {
            FileType::RegularFile => Ok(file.into()),
            _ => Err(Errno::INVAL.into()),
        }
    }

    fn read(&self, handle: &File, buffer: &mut [u8]) -> io::Result<usize> {
        handle.read_at(buffer, 0)
    }
}
