//! What a client may take, and how often one took too much.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::Status;

/// What a client may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time.
    pub clients: usize,
    /// Bytes of a request.
    pub head_bytes: usize,
    /// Time for a whole request, however it trickles in.
    pub head_time: Duration,
    /// Time for a whole answer, however slowly it is read; of a stream, for what is sent at once.
    pub answer_time: Duration,
    /// Time that a client gets to close its side after the answer, so that no reset destroys what it has not read yet.
    pub linger: Duration,
    /// A connection that has been sending its request for this long may be closed in favour of a new one.
    pub grace: Duration,
    /// Time between signs of life of a stream.
    pub keep_alive: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            clients: 64,
            head_bytes: 8 << 10,
            head_time: Duration::from_secs(5),
            answer_time: Duration::from_secs(10),
            linger: Duration::from_secs(1),
            grace: Duration::from_millis(200),
            keep_alive: Duration::from_secs(15),
        }
    }
}

/// Why a client was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Its request took too long.
    SlowRequest,
    /// It read the answer too slowly.
    SlowAnswer,
    /// Others waited, and it had not sent its request.
    MadeRoom,
    /// There was no room for it.
    NoRoom,
    /// It was gone before its request was complete, or before it had the answer.
    Gone,
}

impl Dropped {
    /// Every reason.
    pub const ALL: [Dropped; 5] =
        [Dropped::SlowRequest, Dropped::SlowAnswer, Dropped::MadeRoom, Dropped::NoRoom, Dropped::Gone];

    /// A word for it.
    pub fn word(self) -> &'static str {
        match self {
            Dropped::SlowRequest => "slow_request",
            Dropped::SlowAnswer => "slow_answer",
            Dropped::MadeRoom => "made_room",
            Dropped::NoRoom => "no_room",
            Dropped::Gone => "gone",
        }
    }
}

/// What happened since the server was bound.
#[derive(Debug, Default)]
pub struct Stats {
    answers: [AtomicU64; Status::ALL.len()],
    dropped: [AtomicU64; Dropped::ALL.len()],
}

// Relaxed everywhere: the counts guard no other memory.
impl Stats {
    pub(crate) fn answered(&self, status: Status) {
        self.answers[status as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn drop_one(&self, why: Dropped) {
        self.dropped[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Answers that were begun with a status.
    pub fn answers(&self, status: Status) -> u64 {
        self.answers[status as usize].load(Ordering::Relaxed)
    }

    /// Clients that were dropped for a reason.
    pub fn dropped(&self, why: Dropped) -> u64 {
        self.dropped[why as usize].load(Ordering::Relaxed)
    }
}
