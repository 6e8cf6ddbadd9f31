//! One client: its connection, from the first byte to its end or the end of its process.

use std::fmt;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tt_shm_measure::message::{HEAD_LEN, Kind, Message};
use tt_shm_os::Peer;
use tt_shm_writer::OpenError;

use super::answers::Devices;
use super::form::{Form, Malformed, decode};
use super::reports::{MAX_LIVE, Outcome, Reports};
use super::{Shared, log};
use crate::commands::allocations;
use crate::units::plural;

/// Bytes read at a time, at most.
const BUFFER: usize = 64 * 1024;
/// How long a client is quiet before the length of a single message tells its form.
const QUIET: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// Reads after the end of its process, which are more than a socket holds. A child that has the connection could go on.
const LAST_READS: u32 = 64;
/// How long a client may take to make room for an answer.
const ANSWER_TIME: Duration = Duration::from_secs(2);

/// A connected client.
pub(super) struct Client {
    stream: UnixStream,
    peer: Peer,
    /// Readable once its process has ended: a child may keep the connection open. `None` if it cannot be watched.
    process: Option<OwnedFd>,
    shared: Arc<Shared>,
    form: Option<Form>,
    reports: Option<Reports>,
    messages: u64,
    /// Whether it was told that some of its reports are not recorded.
    has_ignored: bool,
    has_no_room: bool,
}

/// Why a connection ended.
enum End {
    /// The client closed it.
    Closed,
    /// The client closed it in the middle of a message.
    Cut(usize),
    /// Its process ended.
    Process,
    /// The bridge ends.
    Stop,
    /// It sent what is no message.
    Malformed(Malformed),
    /// It does not read its answers.
    Unread,
    /// It could not be read or written.
    Failed(io::Error),
    /// No segment could be opened.
    NoSegment(OpenError),
}

/// What happened while waiting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    Readable,
    /// Nothing, for as long as was to be waited.
    Quiet,
    /// There may be something left to read.
    ProcessEnded,
    Stop,
}

/// What reading gave.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    Some,
    Nothing,
    Closed,
}

impl Client {
    /// Checks who connected: only this user and root may.
    pub(super) fn new(stream: UnixStream, shared: Arc<Shared>) -> Result<Client, String> {
        let failed = |error: io::Error| format!("cannot prepare its connection: {error}");
        let peer = tt_shm_os::peer_of(&stream).map_err(failed)?;
        let own = rustix::process::geteuid().as_raw();
        if peer.uid != own && peer.uid != 0 {
            return Err(format!("it belongs to user {}, not {own}", peer.uid));
        }
        stream.set_write_timeout(Some(ANSWER_TIME)).map_err(failed)?;
        let process = peer.pid.and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let process = process.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let (form, reports) = (shared.form, None);
        let (messages, has_ignored, has_no_room) = (0, false, false);
        Ok(Client { stream, peer, process, shared, form, reports, messages, has_ignored, has_no_room })
    }

    /// Serves it until its end.
    pub(super) fn run(mut self) {
        let end = self.serve().unwrap_or_else(|end| end);
        if self.reports.is_some() || !matches!(end, End::Closed | End::Stop | End::Process) {
            self.log(format_args!("{end} after {}", plural(self.messages, "message")));
        }
    }

    fn log(&self, what: fmt::Arguments<'_>) {
        match self.peer.pid {
            Some(pid) => log(format_args!("client {pid}: {what}")),
            None => log(format_args!("client: {what}")),
        }
    }

    /// Reads and takes messages until the end.
    fn serve(&mut self) -> Result<End, End> {
        let mut buffer = vec![0; BUFFER];
        let mut filled = 0;
        let mut reads_after_death = 0;
        loop {
            // A single message whose form is not known yet is not held back for long.
            let is_waiting = self.form.is_none() && Form::of_len(filled).is_some();
            let event = self.wait(is_waiting.then_some(&QUIET))?;
            let read = match event {
                Event::Stop => return Ok(End::Stop),
                Event::Readable | Event::ProcessEnded => self.read(&mut buffer, &mut filled)?,
                Event::Quiet => Read::Nothing,
            };
            reads_after_death += u32::from(event == Event::ProcessEnded);
            let is_dead =
                event == Event::ProcessEnded && (read != Read::Some || reads_after_death > LAST_READS);
            let is_quiet = event == Event::Quiet || is_dead || read == Read::Closed;
            let taken = self.take(&buffer[..filled], is_quiet)?;
            buffer.copy_within(taken..filled, 0);
            filled -= taken;
            match read {
                Read::Closed if filled > 0 => return Ok(End::Cut(filled)),
                Read::Closed => return Ok(End::Closed),
                _ if is_dead => return Ok(End::Process),
                _ => {}
            }
        }
    }

    /// Waits for bytes, for the end of the process or of the bridge, or for the time to pass.
    fn wait(&self, time: Option<&Timespec>) -> Result<Event, End> {
        let mut waited =
            vec![PollFd::new(&self.shared.stop, PollFlags::IN), PollFd::new(&self.stream, PollFlags::IN)];
        waited.extend(self.process.as_ref().map(|process| PollFd::new(process, PollFlags::IN)));
        let count = loop {
            match poll(&mut waited, time) {
                Err(Errno::INTR) => {}
                result => break result.map_err(|error| End::Failed(error.into()))?,
            }
        };
        let has = |place: usize| waited.get(place).is_some_and(|fd| !fd.revents().is_empty());
        Ok(match count {
            0 => Event::Quiet,
            _ if has(0) => Event::Stop,
            _ if has(2) => Event::ProcessEnded,
            _ => Event::Readable,
        })
    }

    /// Reads what there is, without waiting; returns whether that was the end of the connection.
    fn read(&self, buffer: &mut [u8], filled: &mut usize) -> Result<Read, End> {
        match recv(&self.stream, &mut buffer[*filled..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => Ok(Read::Closed),
            Ok((more, _)) => {
                *filled += more;
                Ok(Read::Some)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(Read::Nothing),
            // It left an answer unread.
            Err(Errno::CONNRESET) => Ok(Read::Closed),
            Err(error) => Err(End::Failed(error.into())),
        }
    }

    /// Takes all whole messages; returns their length.
    fn take(&mut self, bytes: &[u8], is_quiet: bool) -> Result<usize, End> {
        if self.form.is_none() {
            self.form = Form::detect(bytes, is_quiet).map_err(End::Malformed)?;
        }
        let Some(form) = self.form else { return Ok(0) };
        let messages = bytes.chunks_exact(form.len());
        let rest = messages.remainder().len();
        for message in messages {
            let head = message.first_chunk::<HEAD_LEN>().expect("every form has a head");
            let (kind, message) = decode(head).map_err(End::Malformed)?;
            self.messages += 1;
            self.take_one(form, kind, &message)?;
        }
        Ok(bytes.len() - rest)
    }

    fn take_one(&mut self, form: Form, kind: Kind, message: &Message) -> Result<(), End> {
        let namespace = &self.shared.settings.namespace;
        let answer = match kind {
            Kind::Query => Devices::read(namespace).map(|devices| devices.statistics(message.device)),
            Kind::DeviceInfoQuery => Devices::read(namespace).map(|devices| devices.info(message.device)),
            Kind::DumpRemaining | Kind::DumpKernels => {
                self.dump(kind == Kind::DumpKernels);
                return Ok(());
            }
            _ => return self.report(form, kind, message),
        };
        self.answer(&form.encode(&answer.map_err(End::Failed)?))
    }

    /// Prints what is live to stdout, as the proof of concept's server did; nothing goes to the client.
    fn dump(&self, kernels_only: bool) {
        if let Err(error) = allocations::print_all(&self.shared.settings, kernels_only) {
            self.log(format_args!("cannot print what is live: {error:#}"));
        }
    }

    fn report(&mut self, form: Form, kind: Kind, message: &Message) -> Result<(), End> {
        if self.reports.is_none() {
            let Shared { settings, guess_kernel_type, .. } = &*self.shared;
            let opened = Reports::open(&settings.namespace, self.peer.pid, *guess_kernel_type);
            self.reports = Some(opened.map_err(End::NoSegment)?);
            self.log(format_args!("reports, in messages of {} bytes", form.len()));
        }
        let Some(reports) = &mut self.reports else { return Ok(()) };
        match reports.record(kind, message) {
            Outcome::Recorded => {}
            Outcome::Ignored if self.has_ignored => {}
            Outcome::Ignored => {
                self.has_ignored = true;
                self.log(format_args!("a report of {} bytes is ignored, and others like it", message.size));
            }
            Outcome::NoRoom if self.has_no_room => {}
            Outcome::NoRoom => {
                self.has_no_room = true;
                self.log(format_args!(
                    "holds more than can be recorded ({MAX_LIVE} allocations, or /dev/shm is full): the rest is missing"
                ));
            }
        }
        Ok(())
    }

    /// Sends an answer; a client that does not read is given up after a while.
    fn answer(&mut self, answer: &[u8]) -> Result<(), End> {
        self.stream.write_all(answer).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => End::Closed,
            io::ErrorKind::WouldBlock => End::Unread,
            _ => End::Failed(error),
        })
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Closed => f.write_str("disconnected"),
            End::Cut(bytes) => write!(f, "disconnected, with {bytes} bytes of an incomplete message"),
            End::Process => f.write_str("its process has ended"),
            End::Stop => f.write_str("the bridge ends"),
            End::Malformed(why) => write!(f, "disconnected because it sent {why}"),
            End::Unread => f.write_str("disconnected because it does not read answers"),
            End::Failed(error) => write!(f, "disconnected: {error}"),
            End::NoSegment(error) => write!(f, "disconnected: {error}"),
        }
    }
}
