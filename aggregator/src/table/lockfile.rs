//! The lock that allows one aggregator per namespace and user.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use tt_shm_os::{Namespace, check_file_size_limit, path_of, table_lock_file_name, try_lock_exclusive};

use crate::error::PublishError;
use crate::table::adopt::Adopted;
use crate::table::place;

/// The maximum length of a lock file: a pid.
const MAX_NOTE: u64 = 16;

/// The right to publish the table of a namespace and user. Held until it is dropped or the process ends.
///
/// The file stays when the lock is released: another process may already have it open and would lock a file
/// without a name, while a third one creates a new file.
#[derive(Debug)]
pub struct Claim {
    /// Holds the lock.
    file: File,
    path: PathBuf,
    pub(crate) namespace: Namespace,
    pub(crate) uid: u32,
}

impl Claim {
    /// Takes the lock for the caller's effective uid.
    pub fn take(namespace: &Namespace) -> Result<Claim, PublishError> {
        let uid = rustix::process::geteuid().as_raw();
        let path = path_of(&table_lock_file_name(namespace, uid));
        // Checked before the file is created: writing beyond the limit would kill the process.
        check_file_size_limit(MAX_NOTE)?;
        let mut file = open(&path, uid)?;
        let system = |action, cause| PublishError::System { action, path: path.clone(), cause };
        if !try_lock_exclusive(file.as_fd()).map_err(|cause| system("lock", cause))? {
            return Err(PublishError::Running { pid: holder(&mut file), path });
        }
        shm_layout::point!(ClaimLocked);
        note_holder(&mut file).map_err(|cause| system("write", cause))?;
        shm_layout::point!(ClaimNoted);
        Ok(Claim { file, path, namespace: namespace.clone(), uid })
    }

    /// The lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path still names the locked file, so that nobody else can hold the claim.
    pub(crate) fn is_in_place(&self) -> bool {
        let (Ok(own), Ok(there)) = (rustix::fs::fstat(&self.file), rustix::fs::lstat(&self.path)) else {
            return false;
        };
        (own.st_dev, own.st_ino) == (there.st_dev, there.st_ino)
    }

    /// Reads what the table of an earlier aggregator still tells, if there is one of this boot.
    pub fn adopt(&self) -> Option<Adopted> {
        let adopted = Adopted::read(&self.namespace, self.uid);
        shm_layout::point!(AdoptRead);
        adopted
    }

    /// Releases the lock and removes its file. Only safe where nobody else can be about to take it: in a
    /// private namespace, at the end of a demo or a test.
    pub fn remove_lock_file_while_held(self) -> io::Result<()> {
        let result = rustix::fs::unlink(&self.path).map_err(io::Error::from);
        drop(self.file);
        result
    }
}

fn open(path: &Path, uid: u32) -> Result<File, PublishError> {
    let system = |cause: rustix::io::Errno| PublishError::System {
        action: "open",
        path: path.to_owned(),
        cause: cause.into(),
    };
    // A file that is not a regular file of this user was never locked by an aggregator of this user.
    place::clear(path, uid)?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600)).map_err(system)?;
    let owner = rustix::fs::fstat(&fd).map_err(system)?.st_uid;
    if owner != uid {
        // It was put there between the two calls.
        let cause = io::ErrorKind::AlreadyExists.into();
        return Err(PublishError::Taken { path: path.to_owned(), kind: "a file", owner, uid, cause });
    }
    Ok(File::from(fd))
}

/// The pid in the file, for the error message only.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(MAX_NOTE).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn note_holder(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}
