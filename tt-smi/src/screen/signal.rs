//! Sends a signal to a process that the user chose and confirmed.

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::modals::{Chosen, signal_name};
use crate::procinfo::Procfs;

/// Sends it; says what became of that.
pub(crate) fn send(to: Chosen, signal: i32) -> String {
    let (pid, name) = (to.pid, signal_name(signal));
    match try_send(to, signal) {
        Ok(()) => format!("sent SIG{name} to {pid}"),
        Err(Errno::SRCH) => format!("process {pid} has ended already"),
        Err(Errno::PERM) => format!("process {pid} belongs to another user: not allowed"),
        Err(errno) => format!("cannot send SIG{name} to {pid}: {errno}"),
    }
}

fn try_send(to: Chosen, signal: i32) -> Result<(), Errno> {
    let pid = i32::try_from(to.pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    let signal = Signal::from_named_raw(signal).ok_or(Errno::INVAL)?;
    // A descriptor, not a number: nobody else can get the signal if the process ends now.
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    // Asked behind the descriptor: it is of this process, or of nobody any more.
    let is_another =
        |started: u64| Procfs::default().read(to.pid).is_none_or(|now| now.start_ticks != started);
    if to.start_ticks.is_some_and(is_another) {
        return Err(Errno::SRCH);
    }
    pidfd_send_signal(&process, signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_got_the_pid_of_a_process_that_ended_gets_no_signal_for_it() {
        let pid = std::process::id();
        let start_ticks = Procfs::default().read(pid).map(|process| process.start_ticks);
        // Does nothing to a process that runs.
        let signal = Signal::CONT.as_raw();
        assert_eq!(try_send(Chosen { pid, start_ticks }, signal), Ok(()));
        assert_eq!(try_send(Chosen { pid, start_ticks: None }, signal), Ok(()));
        let before = start_ticks.map(|ticks| ticks - 1);
        assert_eq!(try_send(Chosen { pid, start_ticks: before }, signal), Err(Errno::SRCH));
    }
}
