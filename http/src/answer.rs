//! What a client gets.

use std::fmt::Write;
use std::sync::Arc;

use crate::Subscription;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// 200
    Ok,
    /// 400
    BadRequest,
    /// 401
    Unauthorized,
    /// 403
    Forbidden,
    /// 404
    NotFound,
    /// 405
    MethodNotAllowed,
    /// 413
    BodyTooLarge,
    /// 421: the host that the request names is none of ours.
    Misdirected,
    /// 431
    HeadTooLarge,
    /// 503
    Unavailable,
}

impl Status {
    /// Every status, in order.
    pub const ALL: [Status; 10] = [
        Status::Ok,
        Status::BadRequest,
        Status::Unauthorized,
        Status::Forbidden,
        Status::NotFound,
        Status::MethodNotAllowed,
        Status::BodyTooLarge,
        Status::Misdirected,
        Status::HeadTooLarge,
        Status::Unavailable,
    ];

    /// Its number and its name.
    pub fn line(self) -> (u16, &'static str) {
        match self {
            Status::Ok => (200, "OK"),
            Status::BadRequest => (400, "Bad Request"),
            Status::Unauthorized => (401, "Unauthorized"),
            Status::Forbidden => (403, "Forbidden"),
            Status::NotFound => (404, "Not Found"),
            Status::MethodNotAllowed => (405, "Method Not Allowed"),
            Status::BodyTooLarge => (413, "Content Too Large"),
            Status::Misdirected => (421, "Misdirected Request"),
            Status::HeadTooLarge => (431, "Request Header Fields Too Large"),
            Status::Unavailable => (503, "Service Unavailable"),
        }
    }
}

/// What a client gets.
#[derive(Debug)]
pub struct Answer {
    pub(crate) status: Status,
    content_type: &'static str,
    pub(crate) body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    Whole(Arc<Vec<u8>>),
    Events(Subscription),
}

/// Plain text, which no browser takes for a page.
const TEXT: &str = "text/plain; charset=utf-8";

impl Answer {
    /// A text.
    pub fn text(text: impl Into<String>) -> Answer {
        Answer::whole(TEXT, Arc::new(text.into().into_bytes()))
    }

    /// Something of another type.
    pub fn whole(content_type: &'static str, body: Arc<Vec<u8>>) -> Answer {
        Answer { status: Status::Ok, content_type, body: Body::Whole(body) }
    }

    /// Server-sent events, for as long as the client reads them.
    pub fn events(subscription: Subscription) -> Answer {
        Answer { status: Status::Ok, content_type: "text/event-stream", body: Body::Events(subscription) }
    }

    /// A refusal, or bad news: the reason is its text.
    pub fn failed(status: Status, why: impl Into<String>) -> Answer {
        Answer { status, ..Answer::text(why) }
    }

    /// What stands before the body. Nothing is to be kept by anybody, and each connection has one request.
    pub(crate) fn head(&self) -> String {
        let (number, name) = self.status.line();
        let mut head = format!("HTTP/1.1 {number} {name}\r\nContent-Type: {}\r\n", self.content_type);
        if let Body::Whole(body) = &self.body {
            // Writing to a string cannot fail.
            let _ = write!(head, "Content-Length: {}\r\n", body.len());
        }
        head += match self.status {
            Status::Unauthorized => "WWW-Authenticate: Bearer\r\n",
            Status::MethodNotAllowed => "Allow: GET, HEAD\r\n",
            Status::Unavailable => "Retry-After: 5\r\n",
            _ => "",
        };
        head + "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_counted_in_their_own_places() {
        for (place, status) in Status::ALL.into_iter().enumerate() {
            assert_eq!(status as usize, place);
        }
    }
}
