//! The /dev/shm of another process, which a container may have to itself.
//!
//! Whoever controls a container controls what is at /dev/shm in it: a symbolic link, a file system that never
//! answers, a bind mount, a FIFO. So the folder is reached by `openat2` below the root of the process, without
//! following any link, and only through what the kernel has cached (`RESOLVE_CACHED`), which no file system can delay.
//! Before anything is listed or opened in it, [`ShmFolder::is_tmpfs`] has to be asked: a tmpfs always answers.
//! Nothing is ever created, changed, locked or removed through it.

use std::ffi::CStr;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, ResolveFlags, Stat, StatxFlags};
use rustix::io::Errno;

use crate::SHM_DIR;
use crate::procfs::Procfs;

/// Of the mounts of a process, which may be many.
const MAX_MOUNT_BYTES: u64 = 1 << 20;
/// What is not cached, or changes while it is looked up, is tried again so often.
const TRIES: usize = 4;

/// A folder at /dev/shm, as a process sees it.
#[derive(Debug)]
pub struct ShmFolder {
    folder: OwnedFd,
    /// Its folder in procfs, which stays that of this very process: a later one with its pid is not reached by it.
    process: OwnedFd,
    path: PathBuf,
    id: (u64, u64),
    mount: u64,
}

impl ShmFolder {
    /// The folder as a process sees it. Needs the rights of a debugger: the same user, or root.
    ///
    /// [`io::ErrorKind::PermissionDenied`] if this user may not look; other errors if the process has ended, or has no
    /// folder there: a link is not followed.
    pub fn of(procfs: &Procfs, pid: u32) -> io::Result<ShmFolder> {
        let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let process = rustix::fs::open(procfs.path(pid, ""), folder, Mode::empty())?;
        // A link of procfs, which leads there without any path. What is opened below it is not outside of it.
        let root = rustix::fs::openat(&process, c"root", folder, Mode::empty())?;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let resolve = resolve | ResolveFlags::CACHED;
        let inside = SHM_DIR.trim_start_matches('/');
        let open = || rustix::fs::openat2(&root, inside, folder | OFlags::NOFOLLOW, Mode::empty(), resolve);
        let mut opened = open();
        for _ in 1..TRIES {
            if opened.as_ref().err() != Some(&Errno::AGAIN) {
                break;
            }
            opened = open();
        }
        let path = procfs.path(pid, "root").join(inside);
        ShmFolder::new(opened?, process, path)
    }

    fn new(folder: OwnedFd, process: OwnedFd, path: PathBuf) -> io::Result<ShmFolder> {
        // DONT_SYNC: a file system that has to ask somebody is not waited for.
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let stat = rustix::fs::statx(&folder, c"", flags, StatxFlags::INO | StatxFlags::MNT_ID)?;
        let device = rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor);
        Ok(ShmFolder { folder, process, path, id: (device, stat.stx_ino), mount: stat.stx_mnt_id })
    }

    /// Device and inode: equal for two processes that share the folder.
    #[must_use]
    pub fn id(&self) -> (u64, u64) {
        self.id
    }

    /// Device and inode of the folder of this process; `None` if it has none.
    #[must_use]
    pub fn own_id() -> Option<(u64, u64)> {
        let stat = rustix::fs::stat(SHM_DIR).ok()?;
        Some((stat.st_dev, stat.st_ino))
    }

    /// Whether a tmpfs is mounted there, as procfs lists it. Does not ask the file system.
    #[must_use]
    pub fn is_tmpfs(&self) -> bool {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::openat(&self.process, c"mountinfo", flags, Mode::empty()) else {
            return false;
        };
        let mut mounts = Vec::new();
        let read = std::fs::File::from(file).take(MAX_MOUNT_BYTES).read_to_end(&mut mounts);
        read.is_ok()
            && type_of_mount(&String::from_utf8_lossy(&mounts), self.mount)
                .is_some_and(|kind| kind == "tmpfs")
    }

    /// The names in the folder, of `most` entries, and whether these are all. Not followed, not opened.
    pub fn names(&self, most: usize) -> io::Result<(Vec<String>, bool)> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let listed = rustix::fs::openat2(&self.folder, c".", flags, Mode::empty(), below())?;
        let mut names = Vec::new();
        for (number, entry) in Dir::new(listed)?.enumerate() {
            let entry = entry?;
            if number >= most {
                return Ok((names, false));
            }
            names.extend(CStr::to_str(entry.file_name()).ok().map(str::to_owned));
        }
        Ok((names, true))
    }

    /// A file of the folder, held by a descriptor that can neither be read nor written; a link is held itself. It is for
    /// the caller to check what it is before it is opened: opening a device or a FIFO may have an effect.
    pub fn hold(&self, name: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat2(&self.folder, name, flags, Mode::empty(), below())?)
    }

    /// What a file of the folder is; a link is not followed.
    pub fn stat(&self, name: &str) -> io::Result<Stat> {
        Ok(rustix::fs::fstat(self.hold(name)?.as_fd())?)
    }

    /// A path that leads to this very folder, while it is open here.
    #[must_use]
    pub fn descriptor_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_raw_fd()))
    }

    /// The path of a file of the folder as root would type it. For messages: what it leads to is for the container to say.
    #[must_use]
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// Nothing but what is in the folder itself: not what is mounted over a name, not what a link leads to.
fn below() -> ResolveFlags {
    let links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    ResolveFlags::BENEATH | ResolveFlags::NO_XDEV | links
}

/// The type of the file system of a mount: `36 35 98:0 / /dev/shm rw shared:1 - tmpfs shm rw`.
fn type_of_mount(mounts: &str, id: u64) -> Option<&str> {
    let line = mounts
        .lines()
        .find(|line| line.split(' ').next().and_then(|first| first.parse().ok()) == Some(id))?;
    // Blanks in paths are escaped, so nothing before the separator has one.
    line.split(' ').skip_while(|field| *field != "-").nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A made-up procfs with one process, whose root has this at `dev/shm`.
    fn process(make: impl FnOnce(&std::path::Path)) -> (tempfile::TempDir, Procfs) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("proc/42/root/dev")).unwrap();
        make(&folder.path().join("proc/42/root/dev/shm"));
        let procfs = Procfs::at(folder.path().join("proc"));
        (folder, procfs)
    }

    #[test]
    fn our_own_folder_is_ours() {
        let own = ShmFolder::of(&Procfs::default(), std::process::id()).unwrap();
        assert_eq!(Some(own.id()), ShmFolder::own_id());
        assert!(ShmFolder::of(&Procfs::default(), u32::MAX).is_err());
    }

    #[test]
    fn links_are_not_followed() {
        for target in ["/etc", "../../../../..", "/proc/self/root", ".", "/dev"] {
            let (_folder, procfs) = process(|shm| symlink(target, shm).unwrap());
            assert!(ShmFolder::of(&procfs, 42).is_err(), "{target}");
        }
        let (_folder, procfs) = process(|shm| fs::write(shm, "").unwrap());
        assert!(ShmFolder::of(&procfs, 42).is_err(), "a file");
        let (_folder, procfs) = process(|_| {});
        assert!(ShmFolder::of(&procfs, 42).is_err(), "nothing");
    }

    #[test]
    fn names_are_listed_and_held_without_being_opened() {
        let (folder, procfs) = process(|shm| {
            fs::create_dir_all(shm.join("folder")).unwrap();
            fs::write(shm.join("file"), "x").unwrap();
            symlink("/etc/passwd", shm.join("link")).unwrap();
        });
        let shm = ShmFolder::of(&procfs, 42).unwrap();
        assert!(!shm.is_tmpfs(), "it has no mounts");
        let (mut names, complete) = shm.names(100).unwrap();
        names.sort();
        assert!(complete && names == [".", "..", "file", "folder", "link"], "{names:?}");
        assert!(!shm.names(2).unwrap().1);
        let kind = |name: &str| shm.stat(name).map(|stat| stat.st_mode & 0o170_000);
        assert_eq!((kind("file").unwrap(), kind("link").unwrap()), (0o100_000, 0o120_000));
        for outside in ["../shm/file", "/etc/passwd", "link/x", ".."] {
            assert!(kind(outside).is_err(), "{outside}");
        }
        assert!(shm.path_of("file").starts_with(folder.path().join("proc/42/root/dev/shm")));
    }

    #[test]
    fn the_type_of_a_mount_stands_behind_the_dash() {
        let mounts = "361 35 0:98 / /dev/shm rw - fuse x rw\n36 35 0:99 / /dev/shm rw,nosuid shared:1 - tmpfs shm rw\n";
        assert_eq!(type_of_mount(mounts, 36), Some("tmpfs"));
        assert_eq!(type_of_mount(mounts, 361), Some("fuse"));
        assert_eq!((type_of_mount(mounts, 3), type_of_mount("36 -", 36)), (None, None));
    }
}
