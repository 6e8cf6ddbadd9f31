//! The table's file: made under another name, complete, then put in place.
//!
//! rustix and [`WriteMap`], not the crate `shared_memory`: that one keeps a mapping of its own behind a raw
//! pointer (so it is not `Send`, and reading it takes `unsafe`), opens without O_NOFOLLOW, and leaves a full
//! /dev/shm to SIGBUS.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use shm_layout::table::TableHeader;
use shm_layout::{Block, store_pod};
use tt_shm_os::{
    Namespace, SHM_DIR, WriteMap, boot_id, check_file_size_limit, monotonic_ns, path_of, random_u64,
    realtime_ns, table_file_name,
};

use crate::error::PublishError;

/// Header and control words, byte by byte.
const HEAD: Block = Block { offset: 0, capacity: 0 };

/// A mapped table that has its name.
#[derive(Debug)]
pub(crate) struct TableFile {
    pub(crate) map: WriteMap,
    pub(crate) header: TableHeader,
    pub(crate) path: PathBuf,
    /// Device and inode, to remove no file but this.
    inode: (u64, u64),
    temporary: bool,
}

impl TableFile {
    /// Makes a table under a temporary name, with nothing in it.
    pub(crate) fn create(namespace: &Namespace, uid: u32) -> Result<TableFile, PublishError> {
        let final_name = table_file_name(namespace, uid);
        sweep(&final_name, uid);
        let path = path_of(&format!("{final_name}-{:016x}", random(&final_name)?));
        let header = plan();
        check_file_size_limit(header.total_len)?;
        let file = create(&path)?;
        let made = TableFile::map(&file, &path, header);
        // Without the map nobody else would remove it.
        let table = made.inspect_err(|_| rustix::fs::unlink(&path).unwrap_or_default())?;
        table.populate(&HEAD, 0, header.devices.offset as usize, 1)?;
        store_pod(table.map.words(), &header);
        Ok(table)
    }

    fn map(file: &File, path: &Path, header: TableHeader) -> Result<TableFile, PublishError> {
        let system = |action, cause| PublishError::System { action, path: path.to_owned(), cause };
        file.set_len(header.total_len).map_err(|cause| system("size", cause))?;
        // The umask may have taken bits away that readers need.
        rustix::fs::fchmod(file, Mode::from_raw_mode(0o644))
            .map_err(|errno| system("chmod", errno.into()))?;
        let stat = rustix::fs::fstat(file).map_err(|errno| system("look at", errno.into()))?;
        let map = WriteMap::new(file, header.total_len as usize)
            .map_err(|cause| PublishError::Map { path: path.to_owned(), cause })?;
        let inode = (stat.st_dev, stat.st_ino);
        Ok(TableFile { map, header, path: path.to_owned(), inode, temporary: true })
    }

    /// Allocates entries `from..to` of a block, so that no later store faults or fails.
    pub(crate) fn populate(
        &self,
        block: &Block,
        from: usize,
        to: usize,
        entry_bytes: usize,
    ) -> Result<(), PublishError> {
        let offset = block.offset as usize + from * entry_bytes;
        self.map
            .populate(offset, (to - from) * entry_bytes)
            .map_err(|cause| PublishError::Full { path: self.path.clone(), cause })
    }

    /// Puts the table in the place of the one before, if there is one, at once.
    pub(crate) fn put_in_place(&mut self, namespace: &Namespace, uid: u32) -> Result<(), PublishError> {
        let place = path_of(&table_file_name(namespace, uid));
        rustix::fs::rename(&self.path, &place).map_err(|errno| PublishError::System {
            action: "replace",
            path: place.clone(),
            cause: errno.into(),
        })?;
        (self.path, self.temporary) = (place, false);
        Ok(())
    }

    /// Removes the file, unless its name is another's by now.
    pub(crate) fn unlink(&self) -> std::io::Result<()> {
        if crate::reap::inode_at(&self.path) == Some(self.inode) {
            rustix::fs::unlink(&self.path)?;
        }
        Ok(())
    }
}

impl Drop for TableFile {
    fn drop(&mut self) {
        // A table that never came into its place is of use to nobody.
        if self.temporary {
            let _ = self.unlink();
        }
    }
}

fn plan() -> TableHeader {
    TableHeader {
        boot_id: boot_id().unwrap_or_default(),
        identity: random_u64().unwrap_or(0),
        pid: u64::from(std::process::id()),
        started: monotonic_ns(),
        started_realtime_ns: realtime_ns(),
        ..TableHeader::plan()
    }
}

fn random(name: &str) -> Result<u64, PublishError> {
    random_u64().map_err(|cause| PublishError::System { action: "name", path: path_of(name), cause })
}

fn create(path: &Path) -> Result<File, PublishError> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::from_raw_mode(0o644));
    let file = fd.map_err(|errno| match errno {
        Errno::NOSPC => PublishError::Full { path: path.to_owned(), cause: errno.into() },
        errno => PublishError::System { action: "create", path: path.to_owned(), cause: errno.into() },
    });
    file.map(File::from)
}

/// Removes temporary files that an aggregator killed in the middle left. The caller holds the lock, so none
/// of them is anybody's.
fn sweep(final_name: &str, uid: u32) {
    let prefix = format!("{final_name}-");
    let Ok(entries) = std::fs::read_dir(SHM_DIR) else { return };
    for entry in entries.flatten() {
        let ours = rustix::fs::lstat(entry.path()).is_ok_and(|stat| stat.st_uid == uid);
        if ours && entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)) {
            let _ = rustix::fs::unlink(entry.path());
        }
    }
}
