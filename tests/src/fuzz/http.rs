//! What a client sends to `tt-smi serve`: the request, the host it names, the token it carries.

use tt_shm_http::{Hosts, Parsed, Token, parse};

const SECRET: &[u8] = b"0123456789abcdef";

/// See [`super::BODIES`].
pub(super) fn run(data: &[u8]) {
    let Ok(Parsed::Complete(request)) = parse(data) else { return };
    assert!(request.path.starts_with('/') && !request.path.contains('?'));
    // Whatever follows a request changes nothing about it.
    for more in [&b"\r\n\r\n"[..], b"GET /other HTTP/1.1\r\nHost: other\r\n\r\n", b"\0"] {
        assert_eq!(parse(&[data, more].concat()), Ok(Parsed::Complete(request.clone())));
    }
    let hosts = Hosts::new(["node1".to_owned()]);
    if hosts.allows(&request.host) {
        let name = request.host.trim_start_matches('[').split([']', ':']).next().unwrap_or_default();
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let is_address = request.host.contains('[') || name.parse::<std::net::IpAddr>().is_ok();
        assert!(is_address || name == "localhost" || name == "node1", "{:?}", request.host);
    }
    let token = Token::new(SECRET).expect("long enough");
    if request.authorization.as_deref().is_some_and(|offered| token.is_in(offered)) {
        let offered = request.authorization.unwrap_or_default();
        assert!(offered.windows(SECRET.len()).any(|part| part == SECRET));
    }
}
