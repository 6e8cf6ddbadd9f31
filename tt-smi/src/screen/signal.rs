//! Sends a signal to a process that the user chose and confirmed.

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::modals::signal_name;

/// Sends it; says what became of that.
pub(crate) fn send(pid: u32, signal: i32) -> String {
    let name = signal_name(signal);
    match try_send(pid, signal) {
        Ok(()) => format!("sent SIG{name} to {pid}"),
        Err(Errno::SRCH) => format!("process {pid} has ended already"),
        Err(Errno::PERM) => format!("process {pid} belongs to another user: not allowed"),
        Err(errno) => format!("cannot send SIG{name} to {pid}: {errno}"),
    }
}

fn try_send(pid: u32, signal: i32) -> Result<(), Errno> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    let signal = Signal::from_named_raw(signal).ok_or(Errno::INVAL)?;
    // A descriptor, not a number: nobody else can get the signal if the process ends now.
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    pidfd_send_signal(&process, signal)
}
