//! Removes segments that are still open when the process exits: a tracker in a static is never dropped.
//!
//! A segment that a run or an aggregator may not have seen yet is marked as closed instead.
//!
//! Uses no locks: `exit` may be called in a forked child, whatever a thread of the parent was doing.

use crate::followed::is_followed;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use shm_layout::SegmentHeader;
use shm_layout::control::{CLOSED_AT, STATE, state};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tt_shm_os::{ClockKind, Namespace};

/// The identities of open segments; 0 is a free entry. If there are more, their files stay until the next
/// tracker of this user finds them.
static OPEN: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

pub(crate) fn remember(identity: u64) {
    // Not a Once: a child forked while another thread was in it would wait for that thread forever.
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    if !REGISTERED.swap(true, Ordering::Relaxed) {
        tt_shm_os::at_exit(remove_all);
    }
    let free = |place: &&AtomicU64| {
        place.compare_exchange(0, identity, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    };
    let _ = OPEN.iter().find(free);
}

pub(crate) fn forget(identity: u64) {
    for place in &OPEN {
        let _ = place.compare_exchange(identity, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

extern "C" fn remove_all() {
    if OPEN.iter().all(|place| place.load(Ordering::Relaxed) == 0) {
        return;
    }
    let Ok(directory) = std::fs::read_dir(tt_shm_os::SHM_DIR) else { return };
    for file in directory.flatten() {
        let name = file.file_name();
        let Some(segment) = name.to_str().and_then(tt_shm_os::parse_segment_name) else { continue };
        let open = OPEN.iter().any(|place| place.load(Ordering::Relaxed) == segment.random);
        // The pid distinguishes our segments from those of the process that we were forked from.
        if open && segment.pid == std::process::id() {
            end(&file.path(), &segment.namespace);
        }
    }
}

/// Removes a segment of this process, or marks it as closed if its run or an aggregator is to remove it.
fn end(path: &Path, namespace: &Namespace) {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(path, flags, Mode::empty()) else { return };
    let Some(header) = crate::reap::header_of(file.as_fd()) else { return };
    // The same pid in another PID namespace is another process: both we and our parent may be pid 1. What
    // cannot be distinguished stays for the next tracker of this user, which checks the lock.
    if header.pid_namespace == 0 || tt_shm_os::pid_namespace() != Some(header.pid_namespace) {
        return;
    }
    if is_followed(namespace) || header.is_left_to_run(tt_shm_os::monotonic_ns()) {
        close(&file, &header);
        crate::segment::touch(path);
    } else {
        let _ = std::fs::remove_file(path);
        shm_layout::point!(SegmentUnlinkedAtExit);
    }
}

/// Marks the segment as closed, with the time.
fn close(file: &OwnedFd, header: &SegmentHeader) {
    // Through the file: the mapping belongs to a tracker whose lock a thread may hold forever.
    let at = |word: usize| header.control.offset + 8 * word as u64;
    // The host may have lowered its limit since, and a write beyond it would kill the host by a signal.
    if tt_shm_os::check_file_size_limit(at(CLOSED_AT.max(STATE) + 1)).is_err() {
        return;
    }
    let clock = u32::try_from(header.clock_kind).ok().and_then(ClockKind::from_code);
    if let Some(ticks) = clock.map(ClockKind::ticks) {
        let _ = rustix::io::pwrite(file, &ticks.to_le_bytes(), at(CLOSED_AT));
    }
    let mut word = [0; 8];
    let read = rustix::io::pread(file, &mut word[..], at(STATE));
    let closed = (u64::from_le_bytes(word) | state::CLOSED).to_le_bytes();
    let _ = read.and_then(|_| rustix::io::pwrite(file, &closed, at(STATE)));
}
