//! A process's segment, opened and checked.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use shm_layout::control::{self, Anomaly, state};
use shm_layout::{
    DEVICE_COUNTER_WORDS, DEVICE_WORDS, DeviceEntry, SLOT_WORDS, SegmentHeader, SegmentWords, Source, Word,
    text,
};
use tt_shm_os::{
    Anchor, Calibration, ClockKind, Namespace, PidMap, ReadMap, SHM_DIR, ShmFolder, is_process_of,
    is_write_locked, parse_segment_name, past, time_namespace,
};

use crate::backed::{Backing, Extent, Loss};
use crate::error::{FileError, OpenError};
use crate::open::{self, Opened};

/// One process's memory as it reports it, mapped read-only.
///
/// The header was copied and checked when the segment was opened; everything else is read in place and may
/// change between two calls. A segment stays readable after its process died or its file was unlinked.
#[derive(Debug)]
pub struct Segment {
    header: SegmentHeader,
    map: ReadMap,
    backing: Backing,
    extents: Extents,
    clock: ClockKind,
    pid: u32,
    uid: u32,
    inode: (u64, u64),
    file_name: String,
    is_private: bool,
}

/// What is known to be backed by memory in each block.
#[derive(Debug)]
struct Extents {
    control: Extent,
    devices: Extent,
    counters: Extent,
    name_index: Extent,
    name_bytes: Extent,
    ring: Extent,
    rows: Extent,
}

impl Extents {
    fn new(header: &SegmentHeader) -> Extents {
        Extents {
            control: Extent::new("control words", header.control, 1),
            devices: Extent::new("devices", header.devices, DEVICE_WORDS),
            counters: Extent::new("counters", header.counters, DEVICE_COUNTER_WORDS),
            name_index: Extent::new("names", header.name_index, 1),
            name_bytes: Extent::new("names", header.name_bytes, 1),
            ring: Extent::new("event slots", header.ring, SLOT_WORDS),
            rows: Extent::new("rows", header.rows, SLOT_WORDS),
        }
    }

    fn all(&self) -> [&Extent; 7] {
        let Extents { control, devices, counters, name_index, name_bytes, ring, rows } = self;
        [control, devices, counters, name_index, name_bytes, ring, rows]
    }
}

impl Segment {
    /// Opens a segment; returns an error for a file that is not one, or not an honest one.
    pub fn open(path: &Path) -> Result<Segment, OpenError> {
        Segment::from_opened(path, file_name(path), open::open(path, size_of::<SegmentHeader>() as u64)?)
    }

    /// Opens an unlinked segment through its process's mapping (a path of [`tt_shm_os::nameless_mappings`]),
    /// if it is the one that had this name.
    pub fn open_mapped(mapping: &Path, file_name: &str) -> Result<Segment, OpenError> {
        let opened = open::open_linked(mapping, size_of::<SegmentHeader>() as u64)?;
        Segment::from_opened(mapping, file_name.to_owned(), opened)
    }

    /// Opens a segment in the private /dev/shm of another process's container. Its file name here is
    /// `pid 4711: <name>`, by the process that it was reached through: the name alone may be that of a file of
    /// /dev/shm, too.
    pub fn open_in(folder: &ShmFolder, pid: u32, name: &str) -> Result<Segment, OpenError> {
        let opened = open::open_in(folder, name, size_of::<SegmentHeader>() as u64)?;
        let segment = Segment::from_opened(&folder.path_of(name), name.to_owned(), opened)?;
        Ok(Segment { file_name: format!("pid {pid}: {name}"), is_private: true, ..segment })
    }

    /// Opens a segment that was opened elsewhere, for example by a helper with more rights that passed the
    /// descriptor on. The file is checked as one that is opened by its path; it may be unlinked.
    ///
    /// The descriptor should be open for reading. It is opened anew if this process may do that; if not, and
    /// if it is a duplicate of the descriptor that the process itself opened, then [`Segment::is_alive`]
    /// cannot see its lock.
    pub fn open_fd(fd: OwnedFd) -> Result<Segment, OpenError> {
        let (path, opened) = open::open_fd(fd, size_of::<SegmentHeader>() as u64)?;
        Segment::from_opened(&path, file_name(&path), opened)
    }

    fn from_opened(path: &Path, file_name: String, opened: Opened) -> Result<Segment, OpenError> {
        let Opened { backing, map, len, uid, inode } = opened;
        let header = SegmentHeader::read(map.words(), len)
            .map_err(|cause| OpenError::Layout { path: path.to_owned(), cause })?;
        check_name(path, &file_name, &header)?;
        let field = |what, found| OpenError::Field { path: path.to_owned(), what, found };
        let pid = u32::try_from(header.pid).map_err(|_| field("pid", header.pid))?;
        let clock = u32::try_from(header.clock_kind).ok().and_then(ClockKind::from_code);
        let clock = clock.ok_or_else(|| field("clock_kind", header.clock_kind))?;
        let extents = Extents::new(&header);
        // Published as a whole: what is not backed now never is.
        extents.control.backed(u64::MAX, &backing);
        extents.ring.backed(u64::MAX, &backing);
        let segment =
            Segment { header, map, backing, extents, clock, pid, uid, inode, file_name, is_private: false };
        if segment.backing.loss().is_none() {
            segment.words();
        }
        match segment.backing.loss() {
            None => Ok(segment),
            Some(Loss::NotBacked(what)) => Err(FileError::NotBacked { path: path.to_owned(), what }.into()),
            Some(Loss::CutShort) => Err(FileError::cut_short(path, len).into()),
        }
    }

    /// The header, as it was when the segment was opened. It does not change.
    pub fn header(&self) -> &SegmentHeader {
        &self.header
    }

    /// The identity of this segment, which no other one has.
    pub fn identity(&self) -> u64 {
        self.header.identity
    }

    /// The process id as seen by the process itself. For display: pids are reused.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The process id as seen by this process, if the process is alive and visible from here, and the system
    /// confirms that it belongs to the owner of the file and when it was started. Differs from
    /// [`Segment::pid`] in a container.
    pub fn pid_here(&self) -> Option<u32> {
        let here = PidMap::now().pid_here(self.header.pid_namespace, self.pid)?;
        if past::is_set() {
            // It is not a process of now: whoever recorded it has confirmed it.
            return Some(here);
        }
        is_process_of(here, self.header.start_time, self.uid).then_some(here)
    }

    /// The owner of the file, as reported by the kernel.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// The file name under which it was opened, without the folder.
    pub fn file_name(&self) -> &str {
        &self.file_name
    }

    /// Whether it was opened by [`Segment::open_in`]: it is not in /dev/shm here, and not ours to remove.
    pub fn is_private(&self) -> bool {
        self.is_private
    }

    /// The device and inode of the file, which tell whether a path still names it.
    pub fn inode(&self) -> (u64, u64) {
        self.inode
    }

    /// The name of the process. Not trusted: escape control characters before displaying it.
    pub fn process_name(&self) -> String {
        text::decode(&self.header.process_name)
    }

    /// The blocks as words, for code that runs the protocols of `shm-layout` itself. Each is limited to what
    /// is published by now and backed by memory, so that nothing in it is a hole: see [`Loss`].
    #[inline]
    pub fn words(&self) -> SegmentWords<'_, AtomicU64> {
        let mut words = SegmentWords::carve(self.map.words(), &self.header);
        let published = |word: usize| words.control.get(word).map_or(0, Word::load);
        let (devices, names) = (published(control::DEVICE_COUNT), published(control::NAME_COUNT));
        let rows = published(control::ROWS_PUBLISHED);
        // Acquire: pairs with the release stores by which the writer publishes what it has populated.
        AtomicU64::fence_acquire();
        let (extents, backing) = (&self.extents, &self.backing);
        words.devices = extents.devices.cut(words.devices, devices, backing);
        words.counters = extents.counters.cut(words.counters, devices, backing);
        words.name_index = extents.name_index.cut(words.name_index, names, backing);
        // The index tells how many bytes are published: see Segment::name().
        words.name_bytes = extents.name_bytes.cut(words.name_bytes, 0, backing);
        // The length is a power of two, so all or nothing.
        words.ring = if extents.ring.is_backed() { words.ring } else { &[] };
        words.rows = extents.rows.cut(words.rows, rows, backing);
        words
    }

    /// The name bytes up to the word `end`, unless they are missing or not backed.
    pub(crate) fn name_bytes(&self, end: usize) -> Option<&[AtomicU64]> {
        let bytes = self.header.name_bytes.entries::<1, _>(self.map.words()).as_flattened();
        let bytes = bytes.get(..end)?;
        Some(self.extents.name_bytes.cut(bytes, end as u64, &self.backing)).filter(|cut| cut.len() == end)
    }

    /// Checks whether the rows are still backed, as they were when they were published. Called before all of
    /// them are walked, not for a single one.
    pub(crate) fn look_at_rows_again(&self) {
        self.extents.rows.look_again(&self.backing);
    }

    /// Why the segment can no longer be read, if so. What was read before is valid; what is read now may be
    /// zeros.
    ///
    /// Only a program that called [`tt_shm_os::guard_truncation`] survives to see [`Loss::CutShort`] for
    /// certain. Holes punched into the file are detected by [`Segment::is_alive`] and [`Segment::live_list`].
    pub fn loss(&self) -> Option<Loss> {
        if self.map.is_lost() { Some(Loss::CutShort) } else { self.backing.loss() }
    }

    /// Whether the segment can no longer be read: see [`Segment::loss`].
    pub fn is_lost(&self) -> bool {
        self.loss().is_some()
    }

    /// Whether the process is alive, running or stopped: it holds a lock that only its end releases.
    ///
    /// Also checks the file: see [`Segment::loss`].
    pub fn is_alive(&self) -> io::Result<bool> {
        self.backing.look_again(&self.extents.all());
        is_write_locked(self.backing.fd())
    }

    /// Whether the process closed the segment.
    pub fn is_closed(&self) -> bool {
        self.control(control::STATE) & state::CLOSED != 0
    }

    /// When the process closed the segment, in ticks of its clock, if it recorded that.
    pub fn closed_at(&self) -> Option<u64> {
        Some(self.control(control::CLOSED_AT)).filter(|ticks| *ticks != 0)
    }

    /// Whether the process had no room for all rows or names: totals are exact, lists incomplete.
    pub fn is_degraded(&self) -> bool {
        self.control(control::STATE) & state::DEGRADED != 0
    }

    /// Whether the process holds memory that it cannot report: its figures are a part of what it holds.
    pub fn is_partial(&self) -> bool {
        self.control(control::STATE) & state::PARTIAL != 0
    }

    /// The number of misuses by the process, by [`Anomaly`] code.
    pub fn anomalies(&self) -> [u64; Anomaly::ALL.len()] {
        Anomaly::ALL.map(|anomaly| self.control(control::ANOMALIES + anomaly as usize))
    }

    /// How often the process compared its sums with those of the device's allocator, and how often they differed.
    pub fn self_checks(&self) -> [u64; 2] {
        [control::SELF_CHECKS, control::SELF_CHECKS_DIFFERENT].map(|word| self.control(word))
    }

    /// The kind of writer; `None` if this version does not know the code.
    pub fn source(&self) -> Option<Source> {
        Source::from_code(self.header.source)
    }

    /// The number of live allocations that [`Segment::allocations`] lacks because the process had no room for
    /// them.
    pub fn unlisted(&self) -> u64 {
        self.control(control::UNLISTED)
    }

    /// Whether its process has the same CLOCK_MONOTONIC as this one: not in another time namespace, which
    /// shifts it.
    pub fn shares_clock(&self) -> bool {
        let theirs = self.header.time_namespace;
        theirs == 0 || time_namespace().is_none_or(|own| own == theirs)
    }

    /// Whether its ticks can be converted to times here. Counters of the processor are the same everywhere;
    /// ticks that are CLOCK_MONOTONIC of another time namespace mean nothing here.
    pub fn is_time_known(&self) -> bool {
        self.clock != ClockKind::Monotonic || self.shares_clock()
    }

    /// The conversion of the segment's ticks to times. Takes a reading now: the later, the more precise. See
    /// [`Segment::is_time_known`].
    pub fn calibration(&self) -> Calibration {
        if !self.shares_clock() {
            return Calibration::measure(self.clock);
        }
        let SegmentHeader { anchor_ticks, anchor_monotonic_ns, anchor_realtime_ns, .. } = self.header;
        let first = Anchor {
            ticks: anchor_ticks,
            monotonic_ns: anchor_monotonic_ns,
            realtime_ns: anchor_realtime_ns,
            suspended_ns: 0,
        };
        Calibration::new(self.clock, first, Anchor::now(self.clock))
    }

    /// The devices that the process registered, by the index that events and rows carry.
    pub fn devices(&self) -> Vec<DeviceEntry> {
        let words = self.words();
        (0..words.device_count()).filter_map(|device| words.device(device)).collect()
    }

    /// One device that the process registered.
    pub fn device(&self, index: usize) -> Option<DeviceEntry> {
        let words = self.words();
        (index < words.device_count()).then(|| words.device(index)).flatten()
    }

    pub(crate) fn control(&self, word: usize) -> u64 {
        self.header.control.entries::<1, _>(self.map.words()).get(word).map_or(0, |[word]| Word::load(word))
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Checks that a name of the form of a segment's matches this one; any other name says nothing.
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

/// The files in /dev/shm that are named as segments of a namespace, sorted. Nothing is opened: by the time it
/// is, a file may be gone, foreign or unreadable.
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
