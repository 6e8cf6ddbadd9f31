//! Files for tests: in /dev/shm, where segments are, but unnamed, so that nothing is left behind.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

/// A nameless file of `len` zero bytes, open for reading and writing.
pub(crate) fn file(len: u64) -> File {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_TMPFILE)
        .mode(0o600)
        .open(crate::SHM_DIR)
        .expect("O_TMPFILE in /dev/shm");
    file.set_len(len).expect("set_len");
    file
}

/// The same file behind a new open file description, as another process would have it.
pub(crate) fn reopen(file: &File, write: bool) -> File {
    OpenOptions::new()
        .read(true)
        .write(write)
        .open(format!("/proc/self/fd/{}", file.as_raw_fd()))
        .expect("reopen through /proc/self/fd")
}
