//! Segments and tables for tests, made by hand: each in a namespace of its own, removed when dropped.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part")]

pub mod segment;
pub mod table;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use tt_shm_reader::Namespace;

/// A namespace that no other test has.
pub fn namespace() -> Namespace {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Namespace::new(&format!("reader-test-{}-{number}", std::process::id())).unwrap()
}

/// A path that is removed when dropped, whatever is there by then.
pub struct Removed(pub PathBuf);

impl Removed {
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Removed {
    fn drop(&mut self) {
        if std::fs::remove_file(&self.0).is_err() {
            let _ = std::fs::remove_dir(&self.0);
        }
    }
}

/// A new file of `len` zero bytes.
pub fn new_file(path: &Path, len: u64, mode: u32) -> (File, Removed) {
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path).expect("new file");
    let removed = Removed(path.to_owned());
    file.set_len(len).expect("set_len");
    (file, removed)
}

/// The uid that files of this test get.
pub fn euid() -> u32 {
    rustix::process::geteuid().as_raw()
}
