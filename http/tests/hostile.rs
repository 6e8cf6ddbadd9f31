//! Clients that want to do harm, each against a server of its own.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tt_shm_http::{
    Answer, Dropped, Feed, FeedLimits, Hosts, Limits, Need, Route, Running, Server, Stats, Status, Token,
};

const TOKEN: &str = "0123456789abcdef";
/// What a test waits for at most: far longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(20);
const LARGE: usize = 32 << 20;

struct Served {
    address: SocketAddr,
    stats: Arc<Stats>,
    feed: Arc<Feed>,
    running: Option<Running>,
}

impl Served {
    fn new(limits: Limits, token: Option<&str>) -> Served {
        let feed = Arc::new(Feed::new(FeedLimits { clients: 2, bytes: 1 << 20 }));
        let (large, source) = (Arc::new(vec![b'x'; LARGE]), Arc::clone(&feed));
        let events = move |_: &tt_shm_http::Request| match source.subscribe(&["data: hello\n\n".into()], tell)
        {
            Some(subscription) => Answer::events(subscription),
            None => Answer::failed(Status::Unavailable, "too many streams\n"),
        };
        let routes = vec![
            Route::new("/open", Need::Nothing, |_| Answer::text("open\n")),
            Route::new("/metrics", Need::TokenIfSet, |_| Answer::text("metrics\n")),
            Route::new("/large", Need::Nothing, move |_| Answer::whole("text/plain", Arc::clone(&large))),
            Route::new("/events", Need::Token, events),
        ];
        let token = token.map(|token| Token::new(token.as_bytes()).unwrap());
        let hosts = Hosts::new(["node1".to_owned()]);
        let server = Server::bind(&["127.0.0.1:0".parse().unwrap()], limits, hosts, token, routes).unwrap();
        let (address, stats) = (server.addresses()[0], server.stats());
        Served { address, stats, feed, running: Some(server.start().unwrap()) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// All that comes back for these bytes.
    fn ask(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // It may be refused before all of it is sent.
        let _ = stream.write_all(bytes);
        all(&mut stream)
    }

    fn get(&self, path: &str, more: &str) -> String {
        self.ask(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n").as_bytes())
    }

    #[track_caller]
    fn assert_serves(&self) {
        assert!(self.get("/open", "").ends_with("\r\n\r\nopen\n"), "it serves no more");
    }

    #[track_caller]
    fn await_dropped(&self, why: Dropped, least: u64) {
        until(&format!("{least} dropped as {}", why.word()), || self.stats.dropped(why) >= least);
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.feed.close();
        self.running.take().unwrap().stop();
    }
}

fn tell(count: u64) -> String {
    format!("event: lost\ndata: {count}\n\n")
}

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What is to be read, also if the connection is reset after it.
fn all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Err(error) if !matches!(error.kind(), io::ErrorKind::ConnectionReset) => panic!("{error}"),
        _ => String::from_utf8(bytes).unwrap(),
    }
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

fn quick() -> Limits {
    Limits {
        head_time: Duration::from_millis(300),
        answer_time: Duration::from_millis(300),
        linger: Duration::from_millis(300),
        ..Limits::default()
    }
}

#[test]
fn an_answer_is_whole_and_the_connection_ends() {
    let served = Served::new(Limits::default(), None);
    let answer = served.get("/open", "");
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("Content-Length: 5\r\n"),
        "{answer}"
    );
    assert!(answer.contains("Connection: close\r\n") && answer.contains("nosniff"), "{answer}");
    let head = served.ask(b"HEAD /open HTTP/1.1\r\nHost: [::1]:1\r\n\r\n");
    assert!(head.contains("Content-Length: 5\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    assert_eq!(status(&served.get("/nothing", "")), "404");
    assert_eq!(
        served.get("/large", "").len(),
        LARGE + served.get("/large", "").find("\r\n\r\n").unwrap() + 4
    );
}

#[test]
fn a_trickle_is_cut_off_and_counted() {
    let served = Served::new(quick(), None);
    let mut slow = served.connect();
    // Never silent for long, and never done.
    for byte in "GET /open HTTP/1.1\r\nHost: localhost\r\nX: ".bytes().chain(std::iter::repeat(b'a')) {
        if slow.write_all(&[byte]).is_err() || served.stats.dropped(Dropped::SlowRequest) > 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    served.await_dropped(Dropped::SlowRequest, 1);
    assert_eq!(all(&mut slow), "");
    served.assert_serves();
}

#[test]
fn who_does_not_read_is_cut_off_and_counted() {
    let served = Served::new(quick(), None);
    let mut deaf = served.connect();
    deaf.write_all(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    served.await_dropped(Dropped::SlowAnswer, 1);
    served.assert_serves();
}

#[test]
fn long_requests_are_refused_and_not_kept() {
    let served = Served::new(Limits::default(), None);
    let long = "a".repeat(1 << 20);
    assert_eq!(status(&served.get("/open", &format!("X: {long}\r\n"))), "431");
    assert_eq!(status(&served.get(&format!("/{long}"), "")), "431");
    assert_eq!(status(&served.get("/open", &"X: y\r\n".repeat(100))), "431");
    served.assert_serves();
}

#[test]
fn bodies_are_refused_whatever_they_claim() {
    let served = Served::new(Limits::default(), None);
    let body = "x".repeat(1 << 20);
    for length in ["1048576", "18446744073709551616", "-1", "0, 1048576"] {
        let request =
            format!("GET /open HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}");
        assert_eq!(status(&served.ask(request.as_bytes())), "413", "{length}");
    }
    assert_eq!(status(&served.get("/open", "Transfer-Encoding: chunked\r\n")), "413");
    assert_eq!(status(&served.ask(b"POST /open HTTP/1.1\r\nHost: localhost\r\n\r\n")), "405");
    assert_eq!(status(&served.ask(b"DELETE /open HTTP/1.1\r\nHost: localhost\r\n\r\n")), "405");
    served.assert_serves();
}

#[test]
fn of_many_requests_at_once_the_first_is_answered() {
    let served = Served::new(Limits::default(), None);
    let one = "GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let answer = served.ask(one.repeat(200).as_bytes());
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 1, "{answer}");
    assert!(answer.ends_with("open\n"));
}

#[test]
fn a_host_of_somebody_else_is_refused() {
    let served = Served::new(Limits::default(), None);
    let with =
        |host: &str| status(&served.ask(format!("GET /open HTTP/1.1\r\n{host}\r\n").as_bytes())).to_owned();
    for good in ["Host: 127.0.0.1:9400\r\n", "host: NODE1:1\r\n"] {
        assert_eq!(with(good), "200", "{good}");
    }
    for (bad, expected) in [
        ("Host: rebound.example:9400\r\n", "421"),
        ("Host: \r\n", "421"),
        ("", "400"),
        ("Host: localhost\r\nHost: rebound.example\r\n", "400"),
    ] {
        assert_eq!(with(bad), expected, "{bad}");
    }
    assert_eq!(status(&served.ask(b"GET http://localhost/open HTTP/1.1\r\nHost: localhost\r\n\r\n")), "400");
}

#[test]
fn without_the_token_there_is_nothing() {
    let served = Served::new(Limits::default(), Some(TOKEN));
    let with = |path: &str, header: &str| status(&served.get(path, header)).to_owned();
    for path in ["/metrics", "/events"] {
        for bad in
            ["", "Authorization: Bearer 0123456789abcdeX\r\n", "Authorization: Basic 0123456789abcdef\r\n"]
        {
            assert_eq!(with(path, bad), "401", "{path} {bad}");
        }
    }
    assert_eq!(with("/metrics", &format!("Authorization: Bearer {TOKEN}\r\n")), "200");
    assert_eq!(with("/open", ""), "200");
    let without = Served::new(Limits::default(), None);
    assert_eq!(status(&without.get("/metrics", "")), "200");
    assert_eq!(status(&without.get("/events", &format!("Authorization: Bearer {TOKEN}\r\n"))), "403");
}

#[test]
fn a_thousand_that_say_nothing_keep_nobody_out() {
    let limits = Limits { clients: 16, grace: Duration::ZERO, head_time: PATIENCE, ..Limits::default() };
    let served = Served::new(limits, None);
    let silent: Vec<TcpStream> = (0..1000).map(|_| served.connect()).collect();
    until("somebody is served beside them", || served.get("/open", "").ends_with("open\n"));
    // Closed in favour of others or, while the threads of those that were had not ended yet, turned away.
    let dropped = || served.stats.dropped(Dropped::MadeRoom) + served.stats.dropped(Dropped::NoRoom);
    until("the others are dropped and counted", || dropped() >= 1000 - 16);
    assert!(served.stats.dropped(Dropped::MadeRoom) > 0);
    drop(silent);
}

#[test]
fn who_answers_is_not_cut_off_for_others_and_those_are_told() {
    let limits = Limits { clients: 2, grace: Duration::ZERO, answer_time: PATIENCE, ..Limits::default() };
    let served = Served::new(limits, None);
    let mut busy: Vec<TcpStream> = (0..2).map(|_| served.connect()).collect();
    for stream in &mut busy {
        stream.write_all(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    }
    until("both are answered", || served.stats.answers(Status::Ok) == 2);
    let mut late = served.connect();
    assert_eq!(status(&all(&mut late)), "503");
    assert_eq!(served.stats.dropped(Dropped::NoRoom), 1);
    for stream in &mut busy {
        assert!(all(stream).len() > LARGE, "it got all of it");
    }
    drop(busy);
    until("their places are free", || served.get("/open", "").ends_with("open\n"));
}

#[test]
fn a_client_that_closes_its_side_gets_its_answer() {
    let served = Served::new(Limits::default(), None);
    let mut stream = served.connect();
    stream.write_all(b"GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(all(&mut stream).ends_with("open\n"));
    let mut half = served.connect();
    half.write_all(b"GET /open HT").unwrap();
    half.shutdown(Shutdown::Write).unwrap();
    assert_eq!(all(&mut half), "");
    served.await_dropped(Dropped::Gone, 1);
    served.assert_serves();
}

#[test]
fn noise_is_refused() {
    let served = Served::new(quick(), None);
    for noise in
        [&b"\x16\x03\x01\x02\x00\x01\x00"[..], b"\0\0\0\0", b"SSH-2.0-x\r\n", b"GET\r\n\r\n", b"\r\n\r\n\r\n"]
    {
        let answer = served.ask(noise);
        assert!(["400", "none"].contains(&status(&answer)), "{noise:?}: {answer}");
    }
    served.assert_serves();
}

#[test]
fn streams_are_few_and_told_what_they_lost() {
    let limits = Limits { answer_time: PATIENCE, ..Limits::default() };
    let served = Served::new(limits, Some(TOKEN));
    let ask = || {
        let mut stream = served.connect();
        let request =
            format!("GET /events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    let mut reader = ask();
    until("a stream", || served.feed.clients() == 1);
    // More than the queues and the sockets' buffers hold, while nobody reads.
    let line: Arc<str> = format!("data: {}\n\n", "x".repeat(1000)).into();
    let mut sent = 0_u64;
    while served.feed.lost() < 2000 {
        served.feed.publish(&[Arc::clone(&line)]);
        sent += 1;
    }
    let other = ask();
    until("two streams", || served.feed.clients() == 2);
    assert_eq!(status(&all(&mut ask())), "503", "there is room for two");
    drop(other);
    served.feed.close();
    let text = all(&mut reader);
    let lost: u64 = text
        .split("event: lost\ndata: ")
        .skip(1)
        .map(|rest| rest.lines().next().unwrap().parse::<u64>().unwrap())
        .sum();
    assert!(text.contains("data: hello\n\n") && lost > 0);
    assert_eq!(text.matches(&*line).count() as u64 + lost, sent, "what is not there is told");
}

#[test]
fn a_stream_that_is_not_read_is_cut_off() {
    let served = Served::new(quick(), Some(TOKEN));
    let mut deaf = served.connect();
    let request = format!("GET /events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
    deaf.write_all(request.as_bytes()).unwrap();
    until("a stream", || served.feed.clients() == 1);
    let line: Arc<str> = format!("data: {}\n\n", "x".repeat(1000)).into();
    until("it is cut off", || {
        served.feed.publish(&vec![Arc::clone(&line); 100]);
        served.stats.dropped(Dropped::SlowAnswer) == 1
    });
    until("its place is free", || served.feed.clients() == 0);
    served.assert_serves();
}
