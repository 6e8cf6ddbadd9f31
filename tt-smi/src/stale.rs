//! Files in /dev/shm that no process will write again: `clean` removes them and `doctor` reports them.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use tt_shm_os::{
    Namespace, is_write_locked, monotonic_ns, parse_segment_name, table_file_name, table_lock_file_name,
};
use tt_shm_reader::Segment;

/// A file that no process will write again.
#[derive(Debug)]
pub(crate) struct StaleFile {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
    /// Device and inode: the path may name another file when it is removed.
    inode: (u64, u64),
}

impl StaleFile {
    /// The pid in a segment's name, in the process's own namespace.
    pub(crate) fn pid(&self) -> Option<u32> {
        parse_segment_name(&self.name).map(|name| name.pid)
    }

    /// Removes it, unless the path names another file by now.
    pub(crate) fn remove(&self) -> io::Result<bool> {
        match rustix::fs::lstat(&self.path) {
            Ok(stat) if (stat.st_dev, stat.st_ino) == self.inode => {
                rustix::fs::unlink(&self.path)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

/// The stale files in a folder, of one namespace or all, by name.
pub(crate) fn stale_files(folder: &Path, only: Option<&Namespace>) -> io::Result<Vec<StaleFile>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        let wanted = |namespace: &Namespace| only.is_none_or(|only| only == namespace);
        let inode = match (parse_segment_name(&name), temporary_table(&name)) {
            (Some(segment), _) if wanted(&segment.namespace) => dead_segment(&entry.path()),
            (None, Some(namespace)) if wanted(&namespace) => abandoned_table(&namespace, &entry.path()),
            _ => None,
        };
        files.extend(inode.map(|inode| StaleFile { path: entry.path(), name, inode }));
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

/// Device and inode of a segment whose process is dead. A segment has its name only while its lock is held or after its
/// process ended: no lock, no process. A segment left to a run is not stale yet.
fn dead_segment(path: &Path) -> Option<(u64, u64)> {
    let file = open(path)?;
    let dead = is_write_locked(file.as_fd()).is_ok_and(|locked| !locked);
    let stat = rustix::fs::fstat(&file).ok()?;
    let left = |segment: Segment| segment.header().is_left_to_run(monotonic_ns());
    (dead && !Segment::open(path).is_ok_and(left)).then_some((stat.st_dev, stat.st_ino))
}

/// The namespace of a table that never got its name: `tt-shm.v2.<namespace>.<uid>.table-<random>`, of this user.
fn temporary_table(name: &str) -> Option<Namespace> {
    let (table, random) = name.rsplit_once('-')?;
    let namespace = Namespace::new(table.strip_prefix("tt-shm.v2.")?.split('.').next()?).ok()?;
    let own = table_file_name(&namespace, own_uid());
    (table == own && random.len() == 16).then_some(namespace)
}

/// Device and inode of such a table, if no aggregator of this user is about to name it: one that runs holds its lock.
fn abandoned_table(namespace: &Namespace, path: &Path) -> Option<(u64, u64)> {
    let lock = open(&path.with_file_name(table_lock_file_name(namespace, own_uid())));
    let is_free = lock.is_none_or(|lock| is_write_locked(lock.as_fd()).is_ok_and(|locked| !locked));
    let stat = rustix::fs::lstat(path).ok()?;
    is_free.then_some((stat.st_dev, stat.st_ino))
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn open(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tables_that_never_got_their_name_are_temporary() {
        let uid = own_uid();
        let namespace = Namespace::new("ci-1").unwrap();
        let name = format!("tt-shm.v2.ci-1.{uid}.table-0123456789abcdef");
        assert_eq!(temporary_table(&name), Some(namespace));
        for other in [
            format!("tt-shm.v2.ci-1.{uid}.table"),
            format!("tt-shm.v2.ci-1.{uid}.lock"),
            format!("tt-shm.v2.ci-1.{}.table-0123456789abcdef", uid + 1),
            "tt-shm.v2.ci-1.42-0123456789abcdef".to_owned(),
            "something-else".to_owned(),
        ] {
            assert_eq!(temporary_table(&other), None, "{other}");
        }
    }
}
