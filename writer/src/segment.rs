//! The lifetime of a segment: it is complete and locked before anybody can see it, and removed at the end,
//! unless it is so new that a run may still have to see it.

use crate::config::Config;
use crate::error::OpenError;
use crate::followed::is_followed;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, UTIME_NOW};
use shm_layout::control::{self, Anomaly, state};
use shm_layout::{SegmentHeader, SegmentWords, Word, point, store_pod, text};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use tt_shm_os::{Anchor, ClockKind, SHM_DIR, WriteMap};

/// The number of bytes that are populated at a time when something grows.
pub(crate) const GROWTH: usize = 64 * 1024;
/// The number of rows of a new segment; less than half a megabyte.
const FIRST_ROWS: usize = 4096;

/// This process's segment.
pub(crate) struct Segment {
    /// Slices of `map`; used only through `words()`, which ties them to `self`.
    words: SegmentWords<'static, AtomicU64>,
    header: SegmentHeader,
    path: PathBuf,
    clock: ClockKind,
    /// Whether it has its name. Until then some of its pages may be missing.
    published: bool,
    map: WriteMap,
}

impl Segment {
    pub(crate) fn create(config: &Config) -> Result<Segment, OpenError> {
        let header = new_header(config)?;
        let len = header.total_len as usize;
        tt_shm_os::check_file_size_limit(header.total_len)?;
        let file = unnamed_file(header.total_len)?;
        point!(SegmentFile);
        let map = locked_map(&file, len)?;
        // SAFETY: the slice lives in the returned Segment beside the map it belongs to, and leaves it
        // only with the lifetime of `&self`.
        let words = SegmentWords::carve(unsafe { map.words_unbound() }, &header);
        let clock = ClockKind::from_code(header.clock_kind as u32).unwrap_or(ClockKind::Monotonic);
        let path = tt_shm_os::path_of(&tt_shm_os::segment_file_name(
            &config.namespace,
            std::process::id(),
            header.identity,
        ));
        let mut segment = Segment { words, header, path, clock, published: false, map };
        segment.initialise()?;
        publish(&file, &segment.path)?;
        point!(SegmentLinked);
        segment.published = true;
        Ok(segment)
    }

    fn initialise(&self) -> Result<(), OpenError> {
        let ring_end = self.header.ring.end(64) as usize;
        // Everything up to the counters, and the ring. Names, counters and rows are populated as they are
        // needed.
        self.populate_at_open(0, self.header.counters.offset as usize)?;
        self.populate_at_open(self.header.name_index.offset as usize, 4096)?;
        self.populate_at_open(self.header.ring.offset as usize, ring_end - self.header.ring.offset as usize)?;
        let rows = FIRST_ROWS.min(self.header.rows.capacity as usize);
        self.populate_at_open(self.header.rows.offset as usize, rows * 64)?;
        let words = self.words();
        Word::store(&words.control[control::NAME_COUNT], 1);
        Word::store(&words.control[control::ROWS_PUBLISHED], rows as u64);
        store_pod(self.map.words(), &self.header);
        Ok(())
    }

    fn populate_at_open(&self, offset: usize, bytes: usize) -> Result<(), OpenError> {
        self.populate(offset, bytes).map_err(|cause| match cause.kind() {
            io::ErrorKind::InvalidInput => OpenError::OldKernel,
            _ => OpenError::NoRoom { bytes, cause },
        })?;
        point!(SegmentPopulated);
        Ok(())
    }

    /// Ensures that a range can be written without a fault.
    pub(crate) fn populate(&self, offset: usize, bytes: usize) -> io::Result<()> {
        let end = (offset + bytes).min(self.map.len());
        self.map.populate(offset, end.saturating_sub(offset))
    }

    #[inline]
    pub(crate) fn words(&self) -> &SegmentWords<'_, AtomicU64> {
        &self.words
    }

    pub(crate) fn header(&self) -> &SegmentHeader {
        &self.header
    }

    #[inline]
    pub(crate) fn ticks(&self) -> u64 {
        self.clock.ticks()
    }

    pub(crate) fn path(&self) -> &PathBuf {
        &self.path
    }

    /// Sets or clears a bit of the state word.
    pub(crate) fn set_state(&self, bit: u64, set: bool) {
        let word = &self.words.control[control::STATE];
        let before = Word::load(word);
        let after = if set { before | bit } else { before & !bit };
        if after != before {
            Word::store(word, after);
        }
    }

    /// Counts comparisons with the device's allocator.
    pub(crate) fn count_self_checks(&self, made: u64, different: u64) {
        for (word, more) in [(control::SELF_CHECKS, made), (control::SELF_CHECKS_DIFFERENT, different)] {
            let count = &self.words.control[word];
            Word::store(count, Word::load(count).saturating_add(more));
        }
    }

    /// Marks the segment as closed, with the time: what it still holds is held no longer.
    fn close(&self) {
        // The two stores need no order: each is true by itself, and a reader that finds no time only knows
        // less.
        Word::store(&self.words.control[control::CLOSED_AT], self.ticks());
        self.set_state(state::CLOSED, true);
    }

    /// Counts a misuse.
    #[cold]
    pub(crate) fn count(&self, anomaly: Anomaly) {
        let count = &self.words.control[control::ANOMALIES + anomaly as usize];
        Word::store(count, Word::load(count) + 1);
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // For a segment that could not be completed, a store might touch a page for which there was no room,
        // and SIGBUS would kill the host.
        if !self.published {
            return;
        }
        self.close();
        let name = self.path.file_name().and_then(|name| tt_shm_os::parse_segment_name(name.to_str()?));
        let followed = name.is_some_and(|name| is_followed(&name.namespace));
        if followed || self.header.is_left_to_run(tt_shm_os::monotonic_ns()) {
            touch(&self.path);
            return;
        }
        // If it is gone already (systemd's RemoveIPC, manual cleanup), there is nothing to do.
        let _ = rustix::fs::unlink(&self.path);
        point!(SegmentUnlinked);
    }
}

/// Notifies watchers of the folder that a segment that stays has ended, as its removal would.
pub(crate) fn touch(path: &Path) {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    // Otherwise they notice a little later.
    let _ = rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
}

fn new_header(config: &Config) -> Result<SegmentHeader, OpenError> {
    let mut header = SegmentHeader::plan(config.ring_slots, config.live_capacity, config.name_bytes);
    let clock = ClockKind::best();
    let anchor = Anchor::now(clock);
    let pid = std::process::id();
    header.boot_id = tt_shm_os::boot_id().unwrap_or_default();
    header.identity = tt_shm_os::random_u64()
        .map_err(|cause| OpenError::Create { step: "find a random name", cause })?
        .max(1);
    header.pid = u64::from(pid);
    header.pid_namespace = tt_shm_os::pid_namespace().unwrap_or(0);
    header.start_time = tt_shm_os::own_start_time().unwrap_or(0);
    header.time_namespace = tt_shm_os::time_namespace().unwrap_or(0);
    header.clock_kind = u64::from(clock.code());
    header.anchor_ticks = anchor.ticks;
    header.anchor_monotonic_ns = anchor.monotonic_ns;
    header.anchor_realtime_ns = anchor.realtime_ns;
    header.run = config.run;
    header.source = config.source as u64;
    header.on_behalf_of = u64::from(config.on_behalf_of);
    header.process_name = match &config.process_name {
        Some(name) => text::encode(name),
        None => text::encode(&tt_shm_os::process_name()),
    };
    Ok(header)
}

/// Creates a file of this size in /dev/shm, without a name or memory yet.
fn unnamed_file(len: u64) -> Result<File, OpenError> {
    let failed = |step| move |errno: rustix::io::Errno| OpenError::Create { step, cause: errno.into() };
    let private = Mode::RUSR | Mode::WUSR;
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(SHM_DIR, flags, private).map_err(failed("open an unnamed file"))?;
    // Regardless of the umask.
    rustix::fs::fchmod(&file, private).map_err(failed("set its mode"))?;
    rustix::fs::ftruncate(&file, len).map_err(failed("set its size"))?;
    Ok(file.into())
}

/// Locks the file and maps it. The lock belongs to the file description that the mapping keeps: it tells
/// everybody that this process is alive, until the mapping goes with the process.
///
/// That description is not the file's own, and is closed at once: a process forked by another thread
/// meanwhile inherits both, and would keep the lock beyond our end. Filling the segment takes a millisecond,
/// this takes some microseconds.
fn locked_map(file: &File, len: usize) -> Result<WriteMap, OpenError> {
    let failed = |step| move |cause| OpenError::Create { step, cause };
    let own = rustix::fs::open(by_proc(file), OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map(File::from);
    // Without /proc no second description can be opened.
    let own = own.or_else(|_| file.try_clone()).map_err(failed("open it again"))?;
    tt_shm_os::lock_exclusive(own.as_fd()).map_err(failed("lock"))?;
    point!(SegmentLocked);
    let map = WriteMap::new(&own, len)?;
    map.dont_fork().map_err(failed("keep the mapping from children"))?;
    point!(SegmentMapped);
    Ok(map)
}

fn by_proc(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Links the file under its name, atomically.
fn publish(file: &File, path: &PathBuf) -> Result<(), OpenError> {
    // Without /proc the descriptor itself can be linked, if the kernel permits it.
    rustix::fs::linkat(CWD, by_proc(file), CWD, path, AtFlags::SYMLINK_FOLLOW)
        .or_else(|_| rustix::fs::linkat(file, "", CWD, path, AtFlags::EMPTY_PATH))
        .map_err(|errno| OpenError::Publish { path: path.clone(), cause: errno.into() })
}
