//! An aggregator's table, opened and checked.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use shm_layout::table::{TableHeader, TableWords};
use shm_layout::{Block, Word};
use tt_shm_os::{Namespace, ReadMap, path_of, table_file_name};

use crate::error::TableError;
use crate::open::{self, Opened};

/// What an aggregator knows of all devices and processes, mapped read-only.
///
/// Rows are read in place, each whole and of one moment. The aggregator may be gone for long: ask
/// [`Table::freshness`]. A new aggregator publishes a new file: ask [`Table::is_replaced`] now and then.
#[derive(Debug)]
pub struct Table {
    header: TableHeader,
    map: ReadMap,
    path: PathBuf,
    inode: (u64, u64),
}

impl Table {
    /// Opens root's table, else the caller's own (by effective uid), and no other's. If root's
    /// aggregator is not running and the caller's is, the caller's.
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

    /// Opens the table that a process of `uid` would read: root's, else that user's.
    pub fn open_for(ns: &Namespace, uid: u32) -> Result<Table, TableError> {
        let open = |uid| Table::open_path(&path_of(&table_file_name(ns, uid)), uid);
        let root = open(0);
        if uid == 0 || root.as_ref().is_ok_and(|table| table.freshness().is_fresh()) {
            return root.map_err(|error| if error.is_not_found() { not_found(ns, uid) } else { error });
        }
        // Anyone may put a file in root's place; it is refused, and must not hide the caller's own.
        match (root, open(uid)) {
            (Ok(root), Ok(own)) if !own.freshness().is_fresh() => Ok(root),
            (_, Ok(own)) => Ok(own),
            (Ok(root), Err(_)) => Ok(root),
            (Err(root), Err(own)) if own.is_not_found() && root.is_not_found() => Err(not_found(ns, uid)),
            (Err(root), Err(own)) if own.is_not_found() => Err(root),
            (Err(_), Err(own)) => Err(own),
        }
    }

    /// Opens a table that must belong to `owner`.
    pub fn open_path(path: &Path, owner: u32) -> Result<Table, TableError> {
        let Opened { map, len, uid, inode, .. } = open::open(path, size_of::<TableHeader>() as u64)?;
        if uid != owner {
            return Err(TableError::Owner { path: path.to_owned(), owner: uid, expected: owner });
        }
        let header = TableHeader::read(map.words(), len)
            .map_err(|cause| TableError::Layout { path: path.to_owned(), cause })?;
        Ok(Table { header, map, path: path.to_owned(), inode })
    }

    /// The header, as it was when the table was opened. It does not change.
    pub fn header(&self) -> &TableHeader {
        &self.header
    }

    /// The path that it was opened under.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path no longer names this file, but another one or none: time to open it again.
    pub fn is_replaced(&self) -> bool {
        match rustix::fs::lstat(&self.path) {
            Ok(stat) => open::inode(&stat) != self.inode,
            Err(errno) => errno == rustix::io::Errno::NOENT,
        }
    }

    /// The blocks as words, for those who run the protocols of `shm-layout` themselves.
    pub fn words(&self) -> TableWords<'_, AtomicU64> {
        TableWords::carve(self.map.words(), &self.header)
    }

    /// A word of [`shm_layout::table::control`].
    #[inline]
    pub(crate) fn control(&self, word: usize) -> u64 {
        self.block::<1>(&self.header.control).get(word).map_or(0, |[word]| Word::load(word))
    }

    /// One block. [`Table::words`] finds all of them, which takes longer than reading a row.
    #[inline]
    pub(crate) fn block<const N: usize>(&self, block: &Block) -> &[[AtomicU64; N]] {
        block.entries(self.map.words())
    }
}

fn not_found(ns: &Namespace, uid: u32) -> TableError {
    TableError::NotFound { namespace: ns.clone(), uid }
}
