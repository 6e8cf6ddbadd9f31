//! A process's segment, opened and checked.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use shm_layout::control::{self, Anomaly, state};
use shm_layout::{DeviceEntry, SegmentHeader, SegmentWords, Source, Word, text};
use tt_shm_os::{
    Anchor, Calibration, ClockKind, Namespace, PidMap, ReadMap, SHM_DIR, is_write_locked, parse_segment_name,
    start_time_of,
};

use crate::error::OpenError;
use crate::open::{self, Opened};

/// One process's memory as it reports it, mapped read-only.
///
/// The header was copied and checked when it was opened; everything else is read in place and may
/// change between two calls. A segment stays readable after its process died or its file was unlinked.
#[derive(Debug)]
pub struct Segment {
    header: SegmentHeader,
    map: ReadMap,
    fd: OwnedFd,
    clock: ClockKind,
    pid: u32,
    uid: u32,
    inode: (u64, u64),
    file_name: String,
}

impl Segment {
    /// Opens a segment and refuses what cannot be one, or not an honest one.
    pub fn open(path: &Path) -> Result<Segment, OpenError> {
        let Opened { fd, map, len, uid, inode } = open::open(path, size_of::<SegmentHeader>() as u64)?;
        let header = SegmentHeader::read(map.words(), len)
            .map_err(|cause| OpenError::Layout { path: path.to_owned(), cause })?;
        let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        check_name(path, &file_name, &header)?;
        let field = |what, found| OpenError::Field { path: path.to_owned(), what, found };
        let pid = u32::try_from(header.pid).map_err(|_| field("pid", header.pid))?;
        let clock = u32::try_from(header.clock_kind).ok().and_then(ClockKind::from_code);
        let clock = clock.ok_or_else(|| field("clock_kind", header.clock_kind))?;
        Ok(Segment { header, map, fd, clock, pid, uid, inode, file_name })
    }

    /// The header, as it was when the segment was opened. It does not change.
    pub fn header(&self) -> &SegmentHeader {
        &self.header
    }

    /// What tells this segment from every other one.
    pub fn identity(&self) -> u64 {
        self.header.identity
    }

    /// Process id as the process itself sees it: for display, pids are reused.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Process id as this process sees it, if it lives and can be seen from here. Differs from
    /// [`Segment::pid`] in a container.
    pub fn pid_here(&self) -> Option<u32> {
        let here = PidMap::now().pid_here(self.header.pid_namespace, self.pid)?;
        // A pid is used again; when its process was started tells.
        let started = Some(self.header.start_time).filter(|ticks| *ticks != 0);
        (started.is_none() || start_time_of(here) == started).then_some(here)
    }

    /// Who owns the file, as the kernel says.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The name under which it was opened, without the folder.
    pub fn file_name(&self) -> &str {
        &self.file_name
    }

    /// Device and inode of the file: what tells whether a path still names it.
    pub fn inode(&self) -> (u64, u64) {
        self.inode
    }

    /// What the process calls itself. Not trusted: escape control characters before showing it.
    pub fn process_name(&self) -> String {
        text::decode(&self.header.process_name)
    }

    /// The blocks as words, for those who run the protocols of `shm-layout` themselves.
    #[inline]
    pub fn words(&self) -> SegmentWords<'_, AtomicU64> {
        SegmentWords::carve(self.map.words(), &self.header)
    }

    /// Whether its file was cut short under the mapping. Everything reads as zero then; what was read
    /// before stands. Only a program that called [`tt_shm_os::guard_truncation`] lives to ask.
    pub fn is_lost(&self) -> bool {
        self.map.is_lost()
    }

    /// Whether the process lives, running or stopped: it holds a lock that only its end releases.
    pub fn is_alive(&self) -> io::Result<bool> {
        is_write_locked(self.fd.as_fd())
    }

    /// Whether the process closed the segment in an orderly way.
    pub fn is_closed(&self) -> bool {
        self.control(control::STATE) & state::CLOSED != 0
    }

    /// When the process closed the segment, in ticks of its clock, if it noted that.
    pub fn closed_at(&self) -> Option<u64> {
        Some(self.control(control::CLOSED_AT)).filter(|ticks| *ticks != 0)
    }

    /// Whether the process had no room for all rows or names: totals are exact, lists incomplete.
    pub fn is_degraded(&self) -> bool {
        self.control(control::STATE) & state::DEGRADED != 0
    }

    /// How often the process misreported, by [`Anomaly`] code.
    pub fn anomalies(&self) -> [u64; Anomaly::ALL.len()] {
        Anomaly::ALL.map(|anomaly| self.control(control::ANOMALIES + anomaly as usize))
    }

    /// How often the process compared its sums with those of the device's allocator, and how often they differed.
    pub fn self_checks(&self) -> [u64; 2] {
        [control::SELF_CHECKS, control::SELF_CHECKS_DIFFERENT].map(|word| self.control(word))
    }

    /// Who writes it; `None` if the process says something foreign to this version.
    pub fn source(&self) -> Option<Source> {
        Source::from_code(self.header.source)
    }

    /// Live allocations that [`Segment::allocations`] lacks because the process had no room for them.
    pub fn unlisted(&self) -> u64 {
        self.control(control::UNLISTED)
    }

    /// Turns the segment's ticks into times. Takes a reading now: the later, the more precise.
    pub fn calibration(&self) -> Calibration {
        let SegmentHeader { anchor_ticks, anchor_monotonic_ns, anchor_realtime_ns, .. } = self.header;
        let first = Anchor {
            ticks: anchor_ticks,
            monotonic_ns: anchor_monotonic_ns,
            realtime_ns: anchor_realtime_ns,
        };
        Calibration::new(self.clock, first, Anchor::now(self.clock))
    }

    /// The devices that the process registered, by the index that events and rows carry.
    pub fn devices(&self) -> Vec<DeviceEntry> {
        let words = self.words();
        (0..words.device_count()).filter_map(|device| words.device(device)).collect()
    }

    pub(crate) fn control(&self, word: usize) -> u64 {
        self.words().control.get(word).map_or(0, Word::load)
    }
}

/// A name that reads as a segment's must be that of this one; any other name says nothing.
fn check_name(path: &Path, file_name: &str, header: &SegmentHeader) -> Result<(), OpenError> {
    let Some(name) = parse_segment_name(file_name) else { return Ok(()) };
    let SegmentHeader { pid, identity, .. } = *header;
    if u64::from(name.pid) == pid && name.random == identity {
        return Ok(());
    }
    Err(OpenError::Identity {
        path: path.to_owned(),
        name_pid: name.pid,
        name_identity: name.random,
        pid,
        identity,
    })
}

/// The files in /dev/shm that are named as segments of a namespace, sorted. Nothing is opened: a file
/// may be gone, foreign or another user's by the time it is.
///
/// ```
/// use tt_shm_reader::{Namespace, Segment, segment_paths};
///
/// for path in segment_paths(&Namespace::new("nobody-is-here").unwrap())? {
///     match Segment::open(&path) {
///         Ok(segment) => println!("{} {}", segment.pid(), segment.process_name().escape_debug()),
///         Err(refused) => eprintln!("{refused}"),
///     }
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn segment_paths(ns: &Namespace) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(SHM_DIR)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().and_then(parse_segment_name);
        if name.is_some_and(|name| name.namespace == *ns) {
            paths.push(entry.path());
        }
    }
    paths.sort_unstable();
    Ok(paths)
}
