//! The socket: created for this user alone, never taken from a server that runs, removed at the end.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};

/// Clients that may wait to be accepted.
const BACKLOG: i32 = 128;

/// Why the socket could not be created.
#[derive(Debug)]
pub(crate) enum BindError {
    /// A server answers there.
    InUse(PathBuf),
    /// There is something else under its name.
    NotASocket(PathBuf),
    /// A step failed.
    Failed(PathBuf, io::Error),
}

impl std::error::Error for BindError {}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BindError::InUse(path) => write!(
                f,
                "a server listens on {}: stop it (another `tt-smi bridge`, or the proof of concept's), or choose another path with --socket",
                path.display()
            ),
            BindError::NotASocket(path) => {
                write!(f, "{} exists and is not a socket: choose another path with --socket", path.display())
            }
            BindError::Failed(path, error) => write!(f, "cannot listen on {}: {error}", path.display()),
        }
    }
}

/// A socket that clients can connect to; removed when dropped.
#[derive(Debug)]
pub(crate) struct Listening {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of its name.
    file: Option<(u64, u64)>,
}

impl Listening {
    /// Creates it, in place of one whose server has ended.
    pub(crate) fn bind(path: &Path) -> Result<Listening, BindError> {
        remove_stale(path)?;
        let listener = private_listener(path).map_err(|error| match error.kind() {
            // Another server came first.
            io::ErrorKind::AddrInUse => BindError::InUse(path.to_owned()),
            _ => BindError::Failed(path.to_owned(), error),
        })?;
        Ok(Listening { listener, path: path.to_owned(), file: file_of(path) })
    }

    /// The next client.
    pub(super) fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().map(|(stream, _)| stream)
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // Not if somebody else has put another there meanwhile.
        if self.file.is_some() && file_of(&self.path) == self.file {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Removes a socket that nobody listens on.
fn remove_stale(path: &Path) -> Result<(), BindError> {
    let Ok(found) = path.symlink_metadata() else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(BindError::NotASocket(path.to_owned()));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|error| BindError::Failed(path.to_owned(), error))
        }
        // One that may not be asked is in use, too: another user's.
        Ok(_) | Err(_) => Err(BindError::InUse(path.to_owned())),
    }
}

fn private_listener(path: &Path) -> io::Result<UnixListener> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // Before it has a name: its file gets this mode.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    listen(&socket, BACKLOG)?;
    Ok(UnixListener::from(socket))
}

fn file_of(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_socket_is_private_and_gone_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listening = Listening::bind(&path).unwrap();
        assert_eq!(path.symlink_metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(Listening::bind(&path), Err(BindError::InUse(_))), "it is in use");
        drop(listening);
        assert!(!path.exists());
    }

    #[test]
    fn a_stale_socket_is_replaced_and_a_file_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "std leaves it");
        let first = Listening::bind(&path).unwrap();
        // Taken away by somebody: what another puts there is not ours to remove.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "mine").unwrap();
        drop(first);
        assert!(matches!(Listening::bind(&path), Err(BindError::NotASocket(_))));
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    }
}
