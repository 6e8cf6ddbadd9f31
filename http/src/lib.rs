//! A small HTTP/1.1 server for one machine's figures: `GET` and `HEAD`, one request per connection.
//!
//! Everything that a client can ask for is bounded by [`Limits`]: connections, bytes and time of a request, time of an
//! answer, streams and what waits in them. When all connections are taken, the one that has been sending its request for
//! longest makes room; if none has, the new one gets 503. Who is dropped is counted ([`Stats`]). A request must name a
//! host that is meant ([`Hosts`]), and carry the token where its route needs one ([`Token`]). There is no TLS, no
//! compression, no body of a request and no keep-alive: a proxy has these.
//!
//! ```
//! use tt_shm_http::{Answer, Hosts, Limits, Need, Route, Server};
//!
//! let routes = vec![Route::new("/healthz", Need::Nothing, |_| Answer::text("ok\n"))];
//! let server = Server::bind(&["127.0.0.1:0".parse().unwrap()], Limits::default(), Hosts::default(), None, routes)?;
//! let address = server.addresses()[0];
//! let running = server.start()?;
//! # use std::io::{Read, Write};
//! let mut client = std::net::TcpStream::connect(address)?;
//! client.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
//! let mut answer = String::new();
//! client.read_to_string(&mut answer)?;
//! assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("ok\n"));
//! running.stop();
//! # Ok::<(), std::io::Error>(())
//! ```

#![forbid(unsafe_code)]

mod access;
mod answer;
mod connection;
mod feed;
mod limits;
mod request;
mod server;
mod slots;

pub use access::{Hosts, Need, Token, TokenError};
pub use answer::{Answer, Status};
pub use feed::{Feed, FeedLimits, Next, Subscription};
pub use limits::{Dropped, Limits, Stats};
pub use request::{Method, Parsed, Request, parse};
pub use server::{Route, Running, Server};
