//! The few system calls that both sides of the shared memory need: names, locks, maps, clocks.
//!
//! Every runtime process owns one segment in `/dev/shm` and is the only one that writes to it; everybody else
//! maps it read-only. This crate defines how such a file is named, how the kernel tells whether its owner is
//! alive, how it is mapped without a reference that another process could invalidate, and how a tick becomes
//! a time. It does not know what is in the file: that is `shm-layout`.
//!
//! What happens when things go wrong:
//!
//! - **/dev/shm is full**: [`WriteMap::populate`] returns an error before a store could raise
//!   SIGBUS.
//! - **the owner dies**, by any signal: the kernel drops its lock with its mapping, and [`is_write_locked`]
//!   returns `false` from then on. A stopped owner still holds it.
//! - **the owner forks**: a [`ForkMutex`] notices in the child, which gets a value of its own.
//! - **a file is truncated under a mapping**: touching it raises SIGBUS. This crate installs no signal
//!   handler unless asked to; map only what the file had when you looked, and let the program decide
//!   ([`guard_truncation`]).
//! - **a clock, a header or an anchor is nonsense**: conversions saturate; they never panic.
//!
//! # Example
//!
//! A segment outlives its descriptor: the mapping alone keeps the lock.
//!
//! ```
//! use std::{fs::OpenOptions, os::fd::AsFd, os::fd::AsRawFd, os::unix::fs::OpenOptionsExt};
//! use std::sync::atomic::Ordering::Relaxed;
//! use tt_shm_os::{ReadMap, SHM_DIR, WriteMap, is_write_locked, lock_exclusive};
//!
//! // No name yet: a segment gets one (linkat) only when it is complete.
//! let file = OpenOptions::new()
//!     .read(true)
//!     .write(true)
//!     .custom_flags(libc::O_TMPFILE)
//!     .mode(0o600)
//!     .open(SHM_DIR)?;
//! let observer = OpenOptions::new()
//!     .read(true)
//!     .open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
//!
//! file.set_len(4096)?;
//! lock_exclusive(file.as_fd())?;
//! let writer = WriteMap::new(&file, 4096)?;
//! writer.dont_fork()?;
//! writer.populate(0, 4096)?;
//! drop(file);
//!
//! writer.words()[0].store(42, Relaxed);
//! assert_eq!(ReadMap::open(&observer, 4096)?.words()[0].load(Relaxed), 42);
//!
//! assert!(is_write_locked(observer.as_fd())?);
//! drop(writer);
//! assert!(!is_write_locked(observer.as_fd())?);
//! # Ok::<(), std::io::Error>(())
//! ```

#[cfg(not(target_os = "linux"))]
compile_error!("tt-shm-os needs Linux: OFD locks, MADV_WIPEONFORK and MADV_POPULATE_WRITE");

mod bias;
mod calibration;
mod clock;
mod guard;
mod limits;
mod lock;
mod map;
mod mappings;
mod mutex;
mod names;
#[cfg(feature = "object")]
mod object;
pub mod past;
mod peer;
mod pids;
mod process;
mod procfs;
#[cfg(all(feature = "ptrace", target_arch = "x86_64"))]
mod ptrace;
mod shm_folder;
mod thread;
mod wipe;

#[cfg(test)]
mod scratch;

pub use calibration::{Anchor, Calibration};
pub use clock::{ClockKind, SUSPENSION_NS, awake_since, monotonic_ns, realtime_ns, suspended_ns};
pub use guard::guard_truncation;
pub use limits::{LimitError, check_file_size_limit, fail_at_file_size_limit};
pub use lock::{is_write_locked, lock_exclusive, try_lock_exclusive};
pub use map::{MapError, ReadMap, WriteMap};
pub use mappings::nameless_mappings;
pub use mutex::{ForkGuard, ForkMutex, TryWithError};
pub use names::{
    NAMESPACE_ENV, NameError, Namespace, SHM_DIR, SegmentName, parse_segment_name, path_of,
    segment_file_name, table_file_name, table_lock_file_name,
};
#[cfg(feature = "object")]
pub use object::SharedObject;
pub use peer::{Peer, peer_of};
pub use pids::PidMap;
pub use process::{
    at_exit, boot_id, is_process_of, own_start_time, owners_of, pid_namespace, process_name, process_name_of,
    random_u64, start_time_of, time_namespace,
};
pub use procfs::{Procfs, Stat, Status};
#[cfg(all(feature = "ptrace", target_arch = "x86_64"))]
pub use ptrace::{Registers, Resume, Stop, Tracee};
pub use shm_folder::ShmFolder;
pub use thread::this_thread;
// For the fuzzer.
#[doc(hidden)]
pub use process::{describe, parse_uuid};
