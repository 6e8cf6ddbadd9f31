//! One connection: a request, its answer, and the end, each within its time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

use crate::answer::{Answer, Body};
use crate::request::{Method, Parsed, Request, parse};
use crate::{Dropped, Limits, Status, Subscription};

/// Bytes of a stream that are sent at once.
const STREAM_BYTES: usize = 64 << 10;
/// Bytes that a client may send after its request before it is cut off.
const LINGER_BYTES: usize = 64 << 10;

/// A stream whose every read and write ends by a deadline, however little each moves.
struct Timed<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl Timed<'_> {
    fn left(&self) -> io::Result<Option<std::time::Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a request. The inner error is the status to refuse it with.
pub(crate) fn read(stream: &TcpStream, limits: &Limits) -> Result<Result<Request, Status>, Dropped> {
    let mut timed = Timed { stream, deadline: Instant::now() + limits.head_time };
    let mut bytes = vec![0; limits.head_bytes];
    let mut filled = 0;
    loop {
        match timed.read(&mut bytes[filled..]) {
            Ok(0) => return Err(Dropped::Gone),
            Ok(count) => filled += count,
            Err(error) => match error.kind() {
                ErrorKind::Interrupted => continue,
                ErrorKind::TimedOut | ErrorKind::WouldBlock => return Err(Dropped::SlowRequest),
                _ => return Err(Dropped::Gone),
            },
        }
        match parse(&bytes[..filled]) {
            Ok(Parsed::Complete(request)) => return Ok(Ok(request)),
            Ok(Parsed::Partial) if filled == bytes.len() => return Ok(Err(Status::HeadTooLarge)),
            Ok(Parsed::Partial) => {}
            Err(status) => return Ok(Err(status)),
        }
    }
}

/// Sends an answer, and ends the connection so that the client can read all of it.
pub(crate) fn write(
    stream: &TcpStream,
    answer: Answer,
    method: Method,
    limits: &Limits,
) -> Result<(), Dropped> {
    send(stream, answer.head().as_bytes(), limits)?;
    if method == Method::Get {
        match answer.body {
            Body::Whole(body) => send(stream, &body, limits)?,
            Body::Events(subscription) => stream_events(stream, &subscription, limits)?,
        }
    }
    linger(stream, limits);
    Ok(())
}

fn send(stream: &TcpStream, bytes: &[u8], limits: &Limits) -> Result<(), Dropped> {
    let mut timed = Timed { stream, deadline: Instant::now() + limits.answer_time };
    timed.write_all(bytes).map_err(|error| match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => Dropped::SlowAnswer,
        _ => Dropped::Gone,
    })
}

fn stream_events(stream: &TcpStream, events: &Subscription, limits: &Limits) -> Result<(), Dropped> {
    while let Some(items) = events.next(STREAM_BYTES, limits.keep_alive) {
        // A comment: clients ignore it, and a client that is gone is noticed.
        let text = if items.is_empty() { ":\n\n".to_owned() } else { events.text(&items) };
        send(stream, text.as_bytes(), limits)?;
    }
    Ok(())
}

/// Closing a connection with unread bytes resets it, and the client may lose the answer. So they are read first, within
/// bounds.
fn linger(stream: &TcpStream, limits: &Limits) {
    let _ = stream.shutdown(Shutdown::Write);
    let mut timed = Timed { stream, deadline: Instant::now() + limits.linger };
    let (mut buffer, mut total) = ([0; 4096], 0);
    while total < LINGER_BYTES {
        match timed.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => total += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
