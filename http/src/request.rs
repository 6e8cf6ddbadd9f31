//! What a client may ask: one `GET` or `HEAD` of a path, without a body.

use crate::Status;

/// Most header lines of a request.
const MAX_HEADERS: usize = 64;

/// What is to be done with a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Send it.
    Get,
    /// Send only what stands before it.
    Head,
}

/// A complete request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is to be done.
    pub method: Method,
    /// The path, without what follows a question mark. Never decoded: routes are plain.
    pub path: String,
    /// The header `Host`.
    pub host: String,
    /// The header `Accept`; empty if there is none.
    pub accept: String,
    /// The header `Authorization`.
    pub authorization: Option<Vec<u8>>,
}

/// What the bytes of a client are so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The beginning of a request.
    Partial,
    /// A request; what follows it is not looked at.
    Complete(Request),
}

/// Reads a request; the status to refuse it with if it is none that can be answered.
pub fn parse(bytes: &[u8]) -> Result<Parsed, Status> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Ok(Parsed::Partial),
        Err(httparse::Error::TooManyHeaders) => return Err(Status::HeadTooLarge),
        Err(_) => return Err(Status::BadRequest),
    }
    let (Some(method), Some(target)) = (request.method, request.path) else { return Err(Status::BadRequest) };
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        _ => return Err(Status::MethodNotAllowed),
    };
    // Not the whole address that is sent to a proxy.
    let path = target.split('?').next().filter(|path| path.starts_with('/')).ok_or(Status::BadRequest)?;
    refuse_body(request.headers)?;
    let text =
        |name| Ok(only(request.headers, name)?.map(|value| String::from_utf8_lossy(value).into_owned()));
    Ok(Parsed::Complete(Request {
        method,
        path: path.to_owned(),
        host: text("host")?.ok_or(Status::BadRequest)?,
        accept: text("accept")?.unwrap_or_default(),
        authorization: only(request.headers, "authorization")?.map(<[u8]>::to_vec),
    }))
}

/// A body would be read as the next request by whoever stands between, so a request with one is not answered at all.
fn refuse_body(headers: &[httparse::Header<'_>]) -> Result<(), Status> {
    let has_body = |header: &httparse::Header<'_>| {
        header.name.eq_ignore_ascii_case("transfer-encoding")
            || header.name.eq_ignore_ascii_case("content-length") && header.value != b"0"
    };
    if headers.iter().any(has_body) { Err(Status::BodyTooLarge) } else { Ok(()) }
}

/// The value of a header that may be there once: of two, one would be checked and the other believed.
fn only<'a>(headers: &[httparse::Header<'a>], name: &str) -> Result<Option<&'a [u8]>, Status> {
    let mut values =
        headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value);
    let first = values.next();
    if values.next().is_some() { Err(Status::BadRequest) } else { Ok(first) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Status {
        parse(text.as_bytes()).expect_err(text)
    }

    #[test]
    fn a_request_is_complete_with_its_empty_line() {
        let whole =
            b"GET /metrics?x=1 HTTP/1.1\r\nHost: a:1\r\naccept: */*\r\nAuthorization: Bearer x\r\n\r\nrest";
        for end in 0..whole.len() - 4 {
            assert_eq!(parse(&whole[..end]), Ok(Parsed::Partial), "{end}");
        }
        let expected = Request {
            method: Method::Get,
            path: "/metrics".to_owned(),
            host: "a:1".to_owned(),
            accept: "*/*".to_owned(),
            authorization: Some(b"Bearer x".to_vec()),
        };
        assert_eq!(parse(whole), Ok(Parsed::Complete(expected)));
    }

    #[test]
    fn what_cannot_be_answered_is_refused() {
        for (text, status) in [
            ("POST / HTTP/1.1\r\nHost: a\r\n\r\n", Status::MethodNotAllowed),
            ("GET / HTTP/1.1\r\n\r\n", Status::BadRequest),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", Status::BadRequest),
            ("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: x\r\nauthorization: y\r\n\r\n", Status::BadRequest),
            ("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", Status::BadRequest),
            ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", Status::BadRequest),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n", Status::BodyTooLarge),
            ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", Status::BodyTooLarge),
            ("\u{16}\u{3}\u{1}", Status::BadRequest),
        ] {
            assert_eq!(refused(text), status, "{text:?}");
        }
        let many = "x: y\r\n".repeat(MAX_HEADERS + 1);
        assert_eq!(refused(&format!("GET / HTTP/1.1\r\n{many}\r\n")), Status::HeadTooLarge);
    }
}
