//! Checks whether an aggregator follows the segments of a namespace.
//!
//! If one does, a process that ends leaves its file to it, so that a short-lived process is counted too.
//! Without one, nobody would remove the file.

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use shm_layout::MAJOR;
use shm_layout::table::{TABLE_MAGIC, TableHeader, control, is_heartbeat_fresh};
use tt_shm_os::{Namespace, monotonic_ns, path_of, table_file_name};

/// Whether the table of root, or of this user, is fresh. Reads the file and takes no lock, so that it may be
/// called in a forked child and at exit.
pub(crate) fn is_followed(namespace: &Namespace) -> bool {
    let own = rustix::process::geteuid().as_raw();
    [0, own].into_iter().any(|uid| is_fresh(namespace, uid).unwrap_or(false))
}

fn is_fresh(namespace: &Namespace, uid: u32) -> rustix::io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path_of(&table_file_name(namespace, uid)), flags, Mode::empty())?;
    let mut header: TableHeader = bytemuck::zeroed();
    rustix::io::pread(&file, bytemuck::bytes_of_mut(&mut header), 0)?;
    let ours = rustix::fs::fstat(&file)?.st_uid == uid
        && (header.magic, header.major) == (TABLE_MAGIC, MAJOR)
        && tt_shm_os::boot_id() == Some(header.boot_id);
    if !ours {
        return Ok(false);
    }
    let word = |number: usize| read_word(&file, header.control.offset.saturating_add(8 * number as u64));
    let (closed, heartbeat, interval) =
        (word(control::CLOSED)?, word(control::HEARTBEAT)?, word(control::INTERVAL)?);
    let age = monotonic_ns().checked_sub(heartbeat);
    Ok(closed == 0 && age.is_some_and(|age| is_heartbeat_fresh(age, interval)))
}

fn read_word(file: &OwnedFd, at: u64) -> rustix::io::Result<u64> {
    let mut word = [0; 8];
    rustix::io::pread(file, &mut word[..], at)?;
    Ok(u64::from_le_bytes(word))
}
