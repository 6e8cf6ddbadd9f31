//! The exact counters of a process at one position of its ring.

use shm_layout::Counters;
use shm_layout::protocol::observe::{Attached, CatchUpError};

use crate::error::ReadError;
use crate::segment::Segment;

/// The number of attempts to read a process that overwrites its ring faster than it is read.
const ATTEMPTS: usize = 16;

/// The counters of every device of a process at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The position of the last event counted.
    pub position: u64,
    /// The counters, by device index.
    pub counters: Vec<Counters>,
}

/// The failure of one attempt.
enum Attempt {
    Done(Snapshot),
    /// The writer was faster, with how that was detected.
    Again(String),
}

impl Segment {
    /// The exact counters of all devices at one position: those before or after the one operation that the
    /// process may be in the middle of, even if it was killed there.
    ///
    /// Takes bounded time. Returns an error for figures that honest events cannot lead to.
    pub fn counters(&self) -> Result<Snapshot, ReadError> {
        let mut cause = String::new();
        for _ in 0..ATTEMPTS {
            match self.attempt()? {
                Attempt::Done(snapshot) => return Ok(snapshot),
                Attempt::Again(why) => cause = why,
            }
            // With few cores, the writer may be waiting for this one.
            std::thread::yield_now();
        }
        Err(ReadError::Busy { file: self.file_name().to_owned(), attempts: ATTEMPTS, cause })
    }

    /// [`Segment::counters`] into a buffer that was used before: what is in it is replaced. Returns the
    /// position.
    pub fn counters_into(&self, counters: &mut Vec<Counters>) -> Result<u64, ReadError> {
        let snapshot = self.counters()?;
        counters.clear();
        counters.extend_from_slice(&snapshot.counters);
        Ok(snapshot.position)
    }

    fn attempt(&self) -> Result<Attempt, ReadError> {
        let words = self.words();
        let mut attached = match Attached::new(&words) {
            Ok(attached) => attached,
            Err(busy) => return Ok(Attempt::Again(busy.to_string())),
        };
        // Checked before anything is added: sums of plausible counters do not overflow.
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
        // Checked now: a device is listed before its first event.
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
