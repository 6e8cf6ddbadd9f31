//! An aggregator's table, opened and checked.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use shm_layout::table::{
    DEVICE_ROW_WORDS, DRIVER_ROW_WORDS, FAILURE_ROW_WORDS, HISTORY_WORDS, NOTICE_ROW_WORDS,
    PROCESS_ROW_WORDS, REGION_ROW_WORDS, TELEMETRY_WORDS, TableHeader, TableWords, USAGE_ROW_WORDS, control,
};
use shm_layout::{Block, Word};
use tt_shm_os::{Namespace, ReadMap, path_of, table_file_name};

use crate::backed::{Backing, Extent, Loss};
use crate::error::{FileError, TableError};
use crate::open::{self, Opened};

/// The figures of an aggregator for all devices and processes, mapped read-only.
///
/// Rows are read in place, each consistently. The aggregator may be long gone: check [`Table::freshness`]. A
/// new aggregator publishes a new file: check [`Table::is_replaced`] now and then.
#[derive(Debug)]
pub struct Table {
    header: TableHeader,
    map: ReadMap,
    backing: Backing,
    pub(crate) extents: Extents,
    path: PathBuf,
    inode: (u64, u64),
}

/// What is known to be backed by memory in each block.
#[derive(Debug)]
pub(crate) struct Extents {
    control: Extent,
    pub(crate) devices: Extent,
    pub(crate) processes: Extent,
    pub(crate) usages: Extent,
    pub(crate) notices: Extent,
    history: Extent,
    pub(crate) failures: Extent,
    pub(crate) driver: Extent,
    telemetry: Extent,
    pub(crate) regions: Extent,
}

impl Extents {
    fn new(header: &TableHeader) -> Extents {
        Extents {
            control: Extent::new("control words", header.control, 1),
            devices: Extent::new("device rows", header.devices, DEVICE_ROW_WORDS),
            processes: Extent::new("process rows", header.processes, PROCESS_ROW_WORDS),
            usages: Extent::new("usage rows", header.usages, USAGE_ROW_WORDS),
            notices: Extent::new("notices", header.notices, NOTICE_ROW_WORDS),
            history: Extent::new("histories", header.history, HISTORY_WORDS),
            failures: Extent::new("failures", header.failures, FAILURE_ROW_WORDS),
            driver: Extent::new("rows of the driver", header.driver, DRIVER_ROW_WORDS),
            telemetry: Extent::new("telemetry", header.telemetry, TELEMETRY_WORDS),
            regions: Extent::new("rows of regions", header.regions, REGION_ROW_WORDS),
        }
    }
}

impl Table {
    /// Opens root's table, or else the caller's own (by effective uid), and nobody else's. If root's
    /// aggregator is not running and the caller's is, opens the caller's.
    ///
    /// ```
    /// use tt_shm_reader::{Namespace, Table, TableError};
    ///
    /// let ns = Namespace::new("nobody-is-here").unwrap();
    /// assert!(matches!(Table::open(&ns), Err(TableError::NotFound { .. })));
    /// ```
    pub fn open(ns: &Namespace) -> Result<Table, TableError> {
        Table::open_for(ns, rustix::process::geteuid().as_raw())
    }

    /// Opens the table that a process of `uid` would read: root's, or else that user's.
    pub fn open_for(ns: &Namespace, uid: u32) -> Result<Table, TableError> {
        let open = |uid| Table::open_path(&path_of(&table_file_name(ns, uid)), uid);
        let root = open(0);
        if uid == 0 || root.as_ref().is_ok_and(|table| table.freshness().is_fresh()) {
            return root.map_err(|error| if error.is_not_found() { not_found(ns, uid) } else { error });
        }
        // Anybody may put a file in the place of root's table; it is refused, and must not hide the caller's
        // own.
        match (root, open(uid)) {
            (Ok(root), Ok(own)) if !own.freshness().is_fresh() => Ok(root),
            (_, Ok(own)) => Ok(own),
            (Ok(root), Err(_)) => Ok(root),
            (Err(root), Err(own)) if own.is_not_found() && root.is_not_found() => Err(not_found(ns, uid)),
            (Err(root), Err(own)) if own.is_not_found() => Err(root),
            (Err(_), Err(own)) => Err(own),
        }
    }

    /// Opens the table of a running aggregator: that of [`Table::open`], if it is fresh.
    pub fn open_fresh(ns: &Namespace) -> Option<Table> {
        Table::open(ns).ok().filter(|table| table.freshness().is_fresh())
    }

    /// Opens a table that must belong to `owner`.
    pub fn open_path(path: &Path, owner: u32) -> Result<Table, TableError> {
        let opened = open::open(path, size_of::<TableHeader>() as u64)?;
        if opened.uid != owner {
            return Err(TableError::Owner { path: path.to_owned(), owner: opened.uid, expected: owner });
        }
        Table::from_opened(path, opened)
    }

    /// Opens a table that was opened elsewhere. It must belong to root or to the caller (by effective uid), and
    /// is checked as one that is opened by its path; it may be unlinked.
    pub fn open_fd(fd: OwnedFd) -> Result<Table, TableError> {
        let (path, opened) = open::open_fd(fd, size_of::<TableHeader>() as u64)?;
        let expected = rustix::process::geteuid().as_raw();
        if opened.uid != 0 && opened.uid != expected {
            return Err(TableError::Owner { path, owner: opened.uid, expected });
        }
        Table::from_opened(&path, opened)
    }

    fn from_opened(path: &Path, opened: Opened) -> Result<Table, TableError> {
        let Opened { backing, map, len, inode, .. } = opened;
        let header = TableHeader::read(map.words(), len)
            .map_err(|cause| TableError::Layout { path: path.to_owned(), cause })?;
        let extents = Extents::new(&header);
        extents.control.backed(u64::MAX, &backing);
        let table = Table { header, map, backing, extents, path: path.to_owned(), inode };
        if table.loss().is_none() {
            table.words();
        }
        match table.loss() {
            None => Ok(table),
            Some(Loss::NotBacked(what)) => Err(FileError::NotBacked { path: path.to_owned(), what }.into()),
            Some(Loss::CutShort) => Err(FileError::cut_short(path, len).into()),
        }
    }

    /// Why the table can no longer be read, if so.
    pub(crate) fn loss(&self) -> Option<Loss> {
        if self.map.is_lost() { Some(Loss::CutShort) } else { self.backing.loss() }
    }

    /// The header, as it was when the table was opened. It does not change.
    pub fn header(&self) -> &TableHeader {
        &self.header
    }

    /// The path under which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path no longer names this file, so that it should be opened again. For a table that was
    /// opened by descriptor, that is the path that the file had here then.
    pub fn is_replaced(&self) -> bool {
        match rustix::fs::lstat(&self.path) {
            Ok(stat) => open::inode(&stat) != self.inode,
            Err(errno) => errno == rustix::io::Errno::NOENT,
        }
    }

    /// The blocks as words, for code that runs the protocols of `shm-layout` itself. Each is limited to what
    /// is published by now and backed by memory, so that nothing in it is a hole.
    pub fn words(&self) -> TableWords<'_, AtomicU64> {
        let mut words = TableWords::carve(self.map.words(), &self.header);
        let (extents, backing) = (&self.extents, &self.backing);
        words.devices = &words.devices[..self.published(control::DEVICES, &extents.devices)];
        words.processes = &words.processes[..self.published(control::PROCESSES, &extents.processes)];
        words.usages = &words.usages[..self.published(control::USAGES, &extents.usages)];
        words.failures = &words.failures[..self.published(control::FAILURES, &extents.failures)];
        words.notices = extents.notices.cut(words.notices, self.control(control::NOTICES), backing);
        // A device may have no history yet.
        let histories = extents.history.reach(words.devices.len() as u64, backing);
        words.history = &words.history[..histories.min(words.devices.len())];
        words.regions = &words.regions[..self.published(control::REGIONS, &extents.regions)];
        words.driver = &words.driver[..self.published(control::DRIVER, &extents.driver)];
        words.telemetry = extents.telemetry.cut(words.telemetry, words.driver.len() as u64, backing);
        words
    }

    /// The number of entries that are published and backed; those after them are holes in the file.
    #[inline]
    pub(crate) fn published(&self, word: usize, extent: &Extent) -> usize {
        let count = self.control(word);
        // Acquire: pairs with the release store by which the aggregator publishes a row.
        AtomicU64::fence_acquire();
        extent.backed(count, &self.backing).min(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// The number of notices that may be read, given how many were written.
    pub(crate) fn backed_notices(&self, written: u64) -> usize {
        self.extents.notices.backed(written, &self.backing)
    }

    /// A word of [`shm_layout::table::control`].
    #[inline]
    pub(crate) fn control(&self, word: usize) -> u64 {
        self.block::<1>(&self.header.control).get(word).map_or(0, |[word]| Word::load(word))
    }

    /// One block. [`Table::words`] computes all of them, which takes longer than reading a row.
    #[inline]
    pub(crate) fn block<const N: usize>(&self, block: &Block) -> &[[AtomicU64; N]] {
        block.entries(self.map.words())
    }
}

fn not_found(ns: &Namespace, uid: u32) -> TableError {
    TableError::NotFound { namespace: ns.clone(), uid }
}
