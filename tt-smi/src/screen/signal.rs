//! Sends a signal to a process that the user chose and confirmed.

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::modals::{SignalTarget, signal_name};
use tt_shm_os::is_process_of;

/// Sends it; returns a message about the result.
pub(crate) fn send(to: &SignalTarget, signal: i32) -> String {
    let (pid, name) = (to.pid, signal_name(signal));
    match try_send(to, signal) {
        Ok(()) => format!("sent SIG{name} to {pid}"),
        Err(Errno::SRCH) => format!("process {pid} has already ended"),
        Err(Errno::PERM) => format!("not permitted: process {pid} belongs to another user"),
        Err(errno) => format!("cannot send SIG{name} to {pid}: {errno}"),
    }
}

fn try_send(to: &SignalTarget, signal: i32) -> Result<(), Errno> {
    let pid = i32::try_from(to.pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    let signal = Signal::from_named_raw(signal).ok_or(Errno::INVAL)?;
    // A pidfd, not a pid: no other process can get the signal if this one ends now.
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    // Checked after opening the pidfd, which thus refers to the process checked here, or to none.
    if !is_process_of(to.pid, to.start_ticks, to.uid) {
        return Err(Errno::SRCH);
    }
    pidfd_send_signal(&process, signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_got_the_pid_of_a_process_that_ended_gets_no_signal_for_it() {
        let (pid, uid) = (std::process::id(), rustix::process::getuid().as_raw());
        let start_ticks = tt_shm_os::start_time_of(pid).unwrap();
        let own = SignalTarget { pid, start_ticks, uid, user: "me".into(), command: "test".into() };
        // Does nothing to a running process.
        let signal = Signal::CONT.as_raw();
        assert_eq!(try_send(&own, signal), Ok(()));
        let before = SignalTarget { start_ticks: start_ticks - 1, ..own.clone() };
        let of_another = SignalTarget { uid: uid + 1, ..own };
        assert_eq!([before, of_another].map(|to| try_send(&to, signal)), [Err(Errno::SRCH); 2]);
    }
}
