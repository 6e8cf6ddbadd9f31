//! The proof of concept's server, for its clients: what they send over its socket becomes segments in shared memory.
//!
//! Each client has a thread and, from its first report on, a segment of its own. A client that stalls or sends nonsense
//! affects nobody else. Questions are answered from the segments of all processes, not only of clients.

mod answers;
mod client;
mod form;
mod reports;
mod socket;

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use crate::escape::escape;
use crate::settings::Settings;
use client::Client;
pub(crate) use form::Form;
pub(crate) use socket::Listening;

/// Clients served at the same time; each costs a thread and up to two descriptors.
const MAX_CLIENTS: usize = 512;

/// What all clients share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Where their segments go, and how lists are printed.
    pub settings: Settings,
    /// The form of all messages; told apart per connection if `None`.
    pub form: Option<Form>,
    /// Whether an application kernel of a known size counts as a fabric or dispatch kernel.
    pub guess_kernel_type: bool,
    /// Readable once everything is to end.
    pub stop: OwnedFd,
}

/// Serves clients until `shared.stop` is readable, and then waits for their threads: their segments are closed.
pub(crate) fn serve(listening: &Listening, shared: &Arc<Shared>) -> io::Result<()> {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    while wait(listening, &shared.stop)? {
        threads.retain(|thread| !thread.is_finished());
        match listening.accept() {
            Ok(stream) if threads.len() >= MAX_CLIENTS => {
                drop(stream);
                log(format_args!("a client was refused: {MAX_CLIENTS} are connected"));
            }
            Ok(stream) => threads.extend(start(stream, shared)),
            Err(error) => {
                log(format_args!("cannot accept a client: {error}"));
                // Most likely out of descriptors, which end only with a client.
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
    for thread in threads {
        // A panic was printed by its own thread.
        let _ = thread.join();
    }
    Ok(())
}

/// Waits for a client; `false` if it is time to end.
fn wait(listening: &Listening, stop: &OwnedFd) -> io::Result<bool> {
    let mut waited =
        [PollFd::new(stop, PollFlags::IN), PollFd::from_borrowed_fd(listening.as_fd(), PollFlags::IN)];
    loop {
        match poll(&mut waited, None) {
            Ok(_) => return Ok(waited[0].revents().is_empty()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Starts the thread of a client; `None` if it is refused.
fn start(stream: UnixStream, shared: &Arc<Shared>) -> Option<JoinHandle<()>> {
    let client = match Client::new(stream, Arc::clone(shared)) {
        Ok(client) => client,
        Err(why) => {
            log(format_args!("a client was refused: {why}"));
            return None;
        }
    };
    let thread = std::thread::Builder::new().name("bridge client".into()).spawn(move || client.run());
    thread.inspect_err(|error| log(format_args!("a client was refused: cannot start a thread: {error}"))).ok()
}

/// One line to stderr. Names of clients are in it, so it is escaped.
fn log(line: fmt::Arguments<'_>) {
    eprintln!("tt-smi bridge: {}", escape(&line.to_string()));
}
