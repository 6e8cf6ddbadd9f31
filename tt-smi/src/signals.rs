//! SIGINT, SIGTERM and SIGHUP as a flag that loops check, or as a descriptor that they poll.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The signals that end the program in order.
const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Set once the program should end.
#[derive(Clone, Debug)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// From now on SIGINT, SIGTERM and SIGHUP set the flag instead of ending the process.
    pub(crate) fn on_signals() -> io::Result<Stop> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in SIGNALS {
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        Ok(Stop(flag))
    }

    /// Whether to end.
    pub(crate) fn is_set(&self) -> bool {
        // Relaxed: the flag guards no other memory.
        self.0.load(Ordering::Relaxed)
    }

    /// Ends, as if a signal had come.
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.0
    }
}

/// From now on SIGINT, SIGTERM and SIGHUP make this descriptor readable instead of ending the process. Nobody reads it:
/// it stays readable for all threads that poll it.
pub(crate) fn readable_on_signals() -> io::Result<OwnedFd> {
    let (read, write) = UnixStream::pair()?;
    for signal in SIGNALS {
        signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
    }
    Ok(read.into())
}
