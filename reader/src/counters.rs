//! The exact counters of a process at one position of its ring.

use shm_layout::Counters;
use shm_layout::protocol::observe::{Attached, CatchUpError};

use crate::error::ReadError;
use crate::segment::Segment;

/// Attempts to get ahead of a process that overwrites its ring faster than it is read.
const ATTEMPTS: usize = 16;

/// The counters of every device of a process at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Position of the last event counted in.
    pub position: u64,
    /// By device index.
    pub counters: Vec<Counters>,
}

/// What one attempt came to.
enum Attempt {
    Done(Snapshot),
    /// The writer was faster, and why that was noticed.
    Again(String),
}

impl Segment {
    /// The exact counters of all devices, all at the same position: those before or after the one
    /// operation that the process may be in the middle of, also if it was killed there.
    ///
    /// Takes a bounded time. Refuses figures that honest events cannot lead to.
    pub fn counters(&self) -> Result<Snapshot, ReadError> {
        let mut cause = String::new();
        for _ in 0..ATTEMPTS {
            match self.attempt()? {
                Attempt::Done(snapshot) => return Ok(snapshot),
                Attempt::Again(why) => cause = why,
            }
            // Where cores are few, the writer may be waiting for this one.
            std::thread::yield_now();
        }
        Err(ReadError::Busy { file: self.file_name().to_owned(), attempts: ATTEMPTS, cause })
    }

    fn attempt(&self) -> Result<Attempt, ReadError> {
        let words = self.words();
        let mut attached = match Attached::new(&words) {
            Ok(attached) => attached,
            Err(busy) => return Ok(Attempt::Again(busy.to_string())),
        };
        // Before anything is added to them: sums of plausible counters do not overflow.
        self.check(&attached)?;
        match attached.catch_up(&words) {
            Ok(()) => {}
            Err(CatchUpError::Implausible(cause)) => {
                return Err(ReadError::ImplausibleEvent { file: self.file_name().to_owned(), cause });
            }
            Err(lapped) => return Ok(Attempt::Again(lapped.to_string())),
        }
        self.check(&attached)?;
        let position = attached.cursor.position();
        let counters = attached.devices.iter().map(|(counters, _)| *counters);
        // Asked now: a device is listed before its first event.
        let listed = self.words().device_count();
        if attached.devices.len() > listed {
            return Err(ReadError::UnlistedDevice { file: self.file_name().to_owned(), listed });
        }
        let counters = counters.take(words.device_count()).collect();
        Ok(Attempt::Done(Snapshot { position, counters }))
    }

    fn check(&self, attached: &Attached) -> Result<(), ReadError> {
        match attached.devices.iter().position(|(counters, _)| !counters.is_plausible()) {
            None => Ok(()),
            Some(device) => Err(ReadError::ImplausibleCounters { file: self.file_name().to_owned(), device }),
        }
    }
}
