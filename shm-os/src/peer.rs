//! The process at the other end of a unix socket.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Who connected, as the kernel noted it at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its pid; `None` if it cannot be seen from this PID namespace.
    pub pid: Option<u32>,
    /// Its effective user.
    pub uid: u32,
}

/// Who connected to, or was connected by, this unix socket.
///
/// Not rustix's call for it: that has no value for a process of another PID namespace, whose pid is 0.
pub fn peer_of(socket: impl AsFd) -> io::Result<Peer> {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open, and the kernel writes at most `len` bytes of the struct, which has no
    // invalid values.
    let result = unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut credentials).cast(), &raw mut len)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let pid = u32::try_from(credentials.pid).ok().filter(|pid| *pid != 0);
    Ok(Peer { pid, uid: credentials.uid })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_other_end_of_a_pair_is_this_process() {
        let (one, _two) = UnixStream::pair().unwrap();
        let uid = rustix::process::geteuid().as_raw();
        assert_eq!(peer_of(&one).unwrap(), Peer { pid: Some(std::process::id()), uid });
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(peer_of(&file).is_err(), "it is not a socket");
    }
}
