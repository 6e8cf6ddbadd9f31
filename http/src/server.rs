//! Accepts connections and finds the answer to each.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::connection;
use crate::slots::{Admission, Slots};
use crate::{Answer, Dropped, Hosts, Limits, Method, Need, Request, Stats, Status, Token};

/// How long the server may take to notice that it is to stop.
const NOTICE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Pause after a connection could not be accepted, such as for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);
/// Time that connections get to end when the server stops.
const END: Duration = Duration::from_secs(2);
/// Stack of a connection's thread.
const STACK: usize = 512 << 10;

/// Gives the answer to a request.
type Answers = Box<dyn Fn(&Request) -> Answer + Send + Sync>;

/// A path, and who gets which answer there.
pub struct Route {
    path: &'static str,
    need: Need,
    answer: Answers,
}

impl Route {
    /// Answers requests of a path.
    pub fn new(
        path: &'static str,
        need: Need,
        answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> Route {
        Route { path, need, answer: Box::new(answer) }
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Route({}, {:?})", self.path, self.need)
    }
}

/// A server that is bound to its addresses.
#[derive(Debug)]
pub struct Server {
    listeners: Vec<TcpListener>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limits: Limits,
    hosts: Hosts,
    token: Option<Token>,
    routes: Vec<Route>,
    slots: Slots,
    stats: Arc<Stats>,
    stop: AtomicBool,
}

/// A server that answers.
#[derive(Debug)]
pub struct Running {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

impl Server {
    /// Binds the addresses; port 0 is any that is free.
    pub fn bind(
        addresses: &[SocketAddr],
        limits: Limits,
        hosts: Hosts,
        token: Option<Token>,
        routes: Vec<Route>,
    ) -> io::Result<Server> {
        let bind = |address: &SocketAddr| {
            let listener = TcpListener::bind(address)
                .map_err(|error| io::Error::new(error.kind(), format!("{address}: {error}")))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listeners = addresses.iter().map(bind).collect::<io::Result<Vec<TcpListener>>>()?;
        let slots = Slots::new(limits.clients, limits.grace);
        let stats = Arc::default();
        let shared = Shared { limits, hosts, token, routes, slots, stats, stop: AtomicBool::new(false) };
        Ok(Server { listeners, shared: Arc::new(shared) })
    }

    /// The addresses, with their ports.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }

    /// What happened so far.
    pub fn stats(&self) -> Arc<Stats> {
        Arc::clone(&self.shared.stats)
    }

    /// Answers from now on, in threads of its own.
    pub fn start(self) -> io::Result<Running> {
        let Server { listeners, shared } = self;
        let own = Arc::clone(&shared);
        let thread =
            std::thread::Builder::new().name("http".to_owned()).spawn(move || accept(&listeners, &own))?;
        Ok(Running { shared, thread })
    }
}

impl Running {
    /// Ends all connections.
    pub fn stop(self) {
        // Relaxed: the flag guards no other memory.
        self.shared.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
        self.shared.slots.close(END);
    }
}

fn accept(listeners: &[TcpListener], shared: &Arc<Shared>) {
    while !shared.stop.load(Ordering::Relaxed) {
        let mut ready: Vec<PollFd<'_>> =
            listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN)).collect();
        if poll(&mut ready, Some(&NOTICE)).is_err() {
            continue;
        }
        for (listener, fd) in listeners.iter().zip(&ready) {
            if fd.revents().is_empty() {
                continue;
            }
            match listener.accept() {
                Ok((stream, _)) => admit(stream, shared),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                // Out of descriptors or memory: connections that end give some back.
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }
}

/// Gives a connection a thread, if there is room.
fn admit(stream: TcpStream, shared: &Arc<Shared>) {
    let Ok(copy) = stream.set_nonblocking(false).and_then(|()| stream.try_clone()) else {
        return shared.stats.drop_one(Dropped::NoRoom);
    };
    let id = match shared.slots.admit(copy) {
        Admission::Free(id) => id,
        Admission::MadeRoom(id) => {
            shared.stats.drop_one(Dropped::MadeRoom);
            id
        }
        Admission::None => return turn_away(&stream, shared),
    };
    let own = Arc::clone(shared);
    let work = move || {
        let result = talk(&stream, id, &own);
        // One that had to make room was counted as such.
        let had_place = own.slots.end(id);
        if let (Err(why), true) = (result, had_place) {
            own.stats.drop_one(why);
        }
    };
    let thread = std::thread::Builder::new().name("http client".to_owned()).stack_size(STACK).spawn(work);
    if thread.is_err() {
        shared.slots.end(id);
        shared.stats.drop_one(Dropped::NoRoom);
    }
}

/// Tells a client that there is no room for it, without waiting for it.
fn turn_away(mut stream: &TcpStream, shared: &Shared) {
    shared.stats.drop_one(Dropped::NoRoom);
    shared.stats.answered(Status::Unavailable);
    let answer = Answer::failed(Status::Unavailable, "too many clients\n");
    let text = answer.head() + "too many clients\n";
    // A few hundred bytes fit into the socket's buffer, or the client does without.
    let _ = stream.set_nonblocking(true).and_then(|()| stream.write_all(text.as_bytes()));
}

fn talk(stream: &TcpStream, id: u64, shared: &Shared) -> Result<(), Dropped> {
    let _ = stream.set_nodelay(true);
    let asked = connection::read(stream, &shared.limits)?;
    if !shared.slots.asked(id) {
        return Err(Dropped::MadeRoom);
    }
    let (answer, method) = match asked {
        Ok(request) => (shared.answer(&request), request.method),
        Err(status) => (Answer::failed(status, refusal(status)), Method::Get),
    };
    shared.stats.answered(answer.status);
    connection::write(stream, answer, method, &shared.limits)
}

fn refusal(status: Status) -> &'static str {
    match status {
        Status::MethodNotAllowed => "read-only: GET and HEAD\n",
        Status::BodyTooLarge => "a request has no body here\n",
        Status::HeadTooLarge => "the request is too long\n",
        _ => "this is no request that can be answered\n",
    }
}

impl Shared {
    fn answer(&self, request: &Request) -> Answer {
        if !self.hosts.allows(&request.host) {
            let why = "the request names a host that is not this one: use an IP address, localhost, or a name that was allowed\n";
            return Answer::failed(Status::Misdirected, why);
        }
        let Some(route) = self.routes.iter().find(|route| route.path == request.path) else {
            let paths: Vec<&str> = self.routes.iter().map(|route| route.path).collect();
            return Answer::failed(Status::NotFound, format!("there is {}\n", paths.join(", ")));
        };
        match self.check(route.need, request.authorization.as_deref()) {
            Ok(()) => (route.answer)(request),
            Err(refused) => refused,
        }
    }

    fn check(&self, need: Need, authorization: Option<&[u8]>) -> Result<(), Answer> {
        match (need, &self.token) {
            (Need::Nothing, _) | (Need::TokenIfSet, None) => Ok(()),
            (Need::Token, None) => {
                let why = "this needs a token, and the server was started without one\n";
                Err(Answer::failed(Status::Forbidden, why))
            }
            (Need::Token | Need::TokenIfSet, Some(token)) => {
                let is_known = authorization.is_some_and(|offered| token.is_in(offered));
                let why = "this needs the token: Authorization: Bearer ...\n";
                if is_known { Ok(()) } else { Err(Answer::failed(Status::Unauthorized, why)) }
            }
        }
    }
}
