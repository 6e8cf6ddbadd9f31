//! The connections there are, and which of them makes room for a new one.

use std::collections::HashMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The connections there are.
#[derive(Debug)]
pub(crate) struct Slots {
    most: usize,
    grace: Duration,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    open: HashMap<u64, Slot>,
    /// Threads, also of connections that were closed and whose thread has not noticed yet.
    threads: usize,
}

#[derive(Debug)]
struct Slot {
    stream: TcpStream,
    since: Instant,
    is_asking: bool,
}

/// Whether there is room for a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// In this place.
    Free(u64),
    /// In this place, after another connection was closed.
    MadeRoom(u64),
    None,
}

impl Slots {
    pub(crate) fn new(most: usize, grace: Duration) -> Slots {
        Slots { most, grace, state: Mutex::default(), ended: Condvar::new() }
    }

    // Every change is complete before the lock is given back.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for a connection. If none is free, the connection that has been sending its request for longest is
    /// closed, unless it has only begun.
    pub(crate) fn admit(&self, stream: TcpStream) -> Admission {
        let mut state = self.lock();
        let mut made_room = false;
        if state.open.len() >= self.most {
            let is_slow = |(_, slot): &(&u64, &Slot)| slot.is_asking && slot.since.elapsed() >= self.grace;
            let slowest =
                state.open.iter().filter(is_slow).min_by_key(|(_, slot)| slot.since).map(|(id, _)| *id);
            // Closed threads end at once; if they do not, there are not to be ever more of them.
            let Some(id) = slowest.filter(|_| state.threads < 2 * self.most) else { return Admission::None };
            if let Some(slot) = state.open.remove(&id) {
                let _ = slot.stream.shutdown(Shutdown::Both);
            }
            made_room = true;
        }
        state.next += 1;
        state.threads += 1;
        let id = state.next;
        state.open.insert(id, Slot { stream, since: Instant::now(), is_asking: true });
        if made_room { Admission::MadeRoom(id) } else { Admission::Free(id) }
    }

    /// The request of a connection is there; whether the connection still has its place.
    pub(crate) fn asked(&self, id: u64) -> bool {
        self.lock().open.get_mut(&id).map(|slot| slot.is_asking = false).is_some()
    }

    /// The thread of a connection has ended; whether the connection still had its place.
    pub(crate) fn end(&self, id: u64) -> bool {
        let mut state = self.lock();
        state.threads -= 1;
        self.ended.notify_all();
        state.open.remove(&id).is_some()
    }

    /// Closes all connections, and waits a while for their threads.
    pub(crate) fn close(&self, most: Duration) {
        let state = self.lock();
        state.open.values().for_each(|slot| drop(slot.stream.shutdown(Shutdown::Both)));
        // Threads that are still there end with the process.
        drop(self.ended.wait_timeout_while(state, most, |state| state.threads > 0));
    }
}
