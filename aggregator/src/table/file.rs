//! The table's file: created complete under a temporary name, then renamed into place.

use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use shm_layout::table::TableHeader;
use shm_layout::{Block, point, store_pod};
use tt_shm_os::{
    Namespace, SHM_DIR, SharedObject, boot_id, check_file_size_limit, monotonic_ns, path_of, random_u64,
    realtime_ns, table_file_name,
};

use crate::error::PublishError;
use crate::table::place;

/// Header and control words, counted in bytes.
const HEAD: Block = Block { offset: 0, capacity: 0 };

/// How often to remove a directory that somebody keeps putting in the table's place.
const PUT_TRIES: u32 = 64;

/// A mapped table file.
#[derive(Debug)]
pub(crate) struct TableFile {
    pub(crate) map: SharedObject,
    pub(crate) header: TableHeader,
    pub(crate) path: PathBuf,
    /// Device and inode, so that no other file is removed.
    inode: (u64, u64),
    temporary: bool,
}

impl TableFile {
    /// Creates an empty table under a temporary name.
    pub(crate) fn create(namespace: &Namespace, uid: u32) -> Result<TableFile, PublishError> {
        let final_name = table_file_name(namespace, uid);
        sweep(&final_name, uid);
        let name = format!("{final_name}-{:016x}", random(&final_name)?);
        let header = plan();
        check_file_size_limit(header.total_len)?;
        let path = path_of(&name);
        let map = SharedObject::create(&name, header.total_len as usize)
            .map_err(|cause| PublishError::System { action: "create", path: path.clone(), cause })?;
        point!(TableFile);
        let table = TableFile { map, header, inode: open_to_all(&path)?, path, temporary: true };
        point!(TableReadable);
        table.populate(&HEAD, 0, header.devices.offset as usize, 1)?;
        store_pod(table.map.words(), &header);
        Ok(table)
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
            .map_err(|cause| PublishError::Full { path: self.path.clone(), cause })?;
        point!(TablePopulated);
        Ok(())
    }

    /// Renames the table into place, atomically replacing an earlier one.
    pub(crate) fn put_in_place(&mut self, namespace: &Namespace, uid: u32) -> Result<(), PublishError> {
        let place = path_of(&table_file_name(namespace, uid));
        let mut tries = 1..=PUT_TRIES;
        loop {
            // A rename replaces a file, but not a directory.
            place::clear(&place, uid)?;
            match rustix::fs::rename(&self.path, &place) {
                Ok(()) => break,
                // Somebody put another one there meanwhile.
                Err(Errno::ISDIR) if tries.next().is_some() => {}
                Err(errno) => {
                    let (path, cause) = (place, errno.into());
                    return Err(PublishError::System { action: "replace", path, cause });
                }
            }
        }
        point!(TableRenamed);
        (self.path, self.temporary) = (place, false);
        Ok(())
    }

    /// Whether the path still names this file, at its full length.
    pub(crate) fn is_in_place(&self) -> bool {
        let whole = |stat: rustix::fs::Stat| {
            (stat.st_dev, stat.st_ino) == self.inode && stat.st_size as u64 == self.header.total_len
        };
        !self.temporary && rustix::fs::lstat(&self.path).is_ok_and(whole)
    }

    /// Removes the file, unless the path names another one by now.
    pub(crate) fn unlink(&self) -> std::io::Result<()> {
        if crate::segments::reap::inode_at(&self.path) == Some(self.inode) {
            rustix::fs::unlink(&self.path)?;
        }
        Ok(())
    }
}

impl Drop for TableFile {
    fn drop(&mut self) {
        // A table that was never renamed into place is of no use.
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

/// Makes the new file readable to everybody; returns its device and inode.
fn open_to_all(path: &Path) -> Result<(u64, u64), PublishError> {
    let open = || {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::empty())?;
        rustix::fs::fchmod(&file, Mode::from_raw_mode(0o644))?;
        let stat = rustix::fs::fstat(&file)?;
        Ok((stat.st_dev, stat.st_ino))
    };
    open().map_err(|errno: Errno| {
        // Nobody else would remove it.
        let _ = rustix::fs::unlink(path);
        PublishError::System { action: "open to readers", path: path.to_owned(), cause: errno.into() }
    })
}

/// Removes temporary files that a killed aggregator left. The caller holds the lock, so none of them is in
/// use.
fn sweep(final_name: &str, uid: u32) {
    let prefix = format!("{final_name}-");
    let Ok(entries) = std::fs::read_dir(SHM_DIR) else { return };
    for entry in entries.flatten() {
        let ours = rustix::fs::lstat(entry.path()).is_ok_and(|stat| stat.st_uid == uid);
        if ours && entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)) {
            let _ = rustix::fs::unlink(entry.path());
            point!(TableSwept);
        }
    }
}
