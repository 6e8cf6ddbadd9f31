//! Who may ask: the host that a request names, and the token that it carries.

use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv6Addr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What a route asks of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// The token, if the server has one.
    TokenIfSet,
    /// The token; nobody is answered by a server that has none.
    Token,
}

/// The names under which the server may be asked.
///
/// A page from anywhere can make a browser ask this machine under a name of its own that it suddenly resolves to a loopback
/// address. So a request must name an IP address, which nobody can resolve to another, `localhost`, or a name that was
/// allowed.
#[derive(Clone, Debug, Default)]
pub struct Hosts(Vec<String>);

impl Hosts {
    /// Allows these names beside addresses and `localhost`.
    pub fn new(names: impl IntoIterator<Item = String>) -> Hosts {
        Hosts(names.into_iter().collect())
    }

    /// Whether a header `Host` names one of them, with any port.
    pub fn allows(&self, host: &str) -> bool {
        if let Some(rest) = host.strip_prefix('[') {
            let Some((address, port)) = rest.split_once(']') else { return false };
            return address.parse::<Ipv6Addr>().is_ok()
                && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
        }
        let (name, port) = host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
        let name = name.strip_suffix('.').unwrap_or(name);
        let is_name = |allowed: &str| allowed.trim_end_matches('.').eq_ignore_ascii_case(name);
        let is_known =
            name.parse::<IpAddr>().is_ok() || is_name("localhost") || self.0.iter().any(|one| is_name(one));
        !name.is_empty() && port.is_none_or(is_port) && is_known
    }
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok()
}

/// Least and most bytes of a token.
const TOKEN_BYTES: std::ops::RangeInclusive<usize> = 16..=4096;

/// A secret that requests carry: `Authorization: Bearer <token>`.
pub struct Token(Vec<u8>);

/// Not the secret.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Why a file is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It cannot be read.
    #[error("cannot read the token in {path}: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// It is a folder, a device or the like.
    #[error("{0} is no regular file: a token is read from one")]
    Kind(PathBuf),
    /// Others than its owner may read or write it.
    #[error("the token in {path} is open to others (mode {mode:04o} of uid {uid}): chmod 0600 it")]
    Mode {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
        /// Its owner.
        uid: u32,
    },
    /// It is not what a header can carry.
    #[error(
        "the token in {0} must be one line of 16 to 4096 visible ASCII characters, such as `head -c 32 /dev/urandom | base64` makes"
    )]
    Text(PathBuf),
}

impl Token {
    /// Reads a file that only its owner may read. Of root's files, a group may read them, too: that is how systemd and
    /// Kubernetes hand secrets to a service that is not root.
    pub fn read(path: &Path) -> Result<Token, TokenError> {
        let refuse = |error| TokenError::Read { path: path.to_owned(), error };
        // Without waiting for a pipe's writer. Links are followed: Kubernetes makes them.
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC;
        let file =
            rustix::fs::open(path, flags, rustix::fs::Mode::empty()).map_err(|error| refuse(error.into()))?;
        let file = File::from(file);
        let stat = file.metadata().map_err(refuse)?;
        if !stat.is_file() {
            return Err(TokenError::Kind(path.to_owned()));
        }
        let own = rustix::process::geteuid().as_raw();
        let open_to = if stat.uid() == 0 { 0o037 } else { 0o077 };
        if stat.mode() & open_to != 0 || ![0, own].contains(&stat.uid()) {
            let (mode, uid) = (stat.mode() & 0o7777, stat.uid());
            return Err(TokenError::Mode { path: path.to_owned(), mode, uid });
        }
        let mut text = Vec::new();
        file.take(*TOKEN_BYTES.end() as u64 + 2).read_to_end(&mut text).map_err(refuse)?;
        Token::new(text.trim_ascii_end()).ok_or_else(|| TokenError::Text(path.to_owned()))
    }

    /// A token; `None` if it is too short, too long or not visible ASCII.
    pub fn new(text: &[u8]) -> Option<Token> {
        let fits = TOKEN_BYTES.contains(&text.len()) && text.iter().all(u8::is_ascii_graphic);
        fits.then(|| Token(text.to_vec()))
    }

    /// Whether a header `Authorization` carries it. The time that takes does not depend on where it differs.
    pub fn is_in(&self, authorization: &[u8]) -> bool {
        const SCHEME: &[u8] = b"bearer ";
        let Some((scheme, offered)) = authorization.split_at_checked(SCHEME.len()) else { return false };
        scheme.eq_ignore_ascii_case(SCHEME) && self.is_same(offered.trim_ascii())
    }

    fn is_same(&self, offered: &[u8]) -> bool {
        let byte = |place: usize| offered.get(place).copied().unwrap_or_default();
        let different = self.0.iter().enumerate().fold(0, |different, (place, own)| {
            // Opaque to the compiler, which might leave the loop at the first difference otherwise.
            std::hint::black_box(different | (own ^ byte(place)))
        });
        different == 0 && offered.len() == self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_name_that_somebody_else_resolves_is_no_host() {
        let hosts = Hosts::new(["node17.cluster".to_owned()]);
        for good in [
            "127.0.0.1",
            "127.0.0.1:9400",
            "[::1]:9400",
            "[::1]",
            "10.1.2.3:80",
            "LocalHost:1",
            "localhost.",
            "node17.Cluster:9400",
        ] {
            assert!(hosts.allows(good), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost:x",
            "localhost:99999",
            "[::1",
            "[a]:1",
            ":80",
            "node17",
            "::1",
            "a b",
            "localhost:1:2",
        ] {
            assert!(!hosts.allows(bad), "{bad}");
        }
    }

    #[test]
    fn a_token_is_all_of_it() {
        let token = Token::new(b"0123456789abcdef").unwrap();
        assert!(token.is_in(b"Bearer 0123456789abcdef") && token.is_in(b"bearer  0123456789abcdef "));
        for bad in [
            "",
            "Bearer ",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdeF",
            "Bearer 0123456789abcdef0",
            "Basic 0123456789abcdef",
            "0123456789abcdef",
        ] {
            assert!(!token.is_in(bad.as_bytes()), "{bad:?}");
        }
        for bad in ["short", "0123456789 abcdef", "0123456789abcdef\u{7f}"] {
            assert!(Token::new(bad.as_bytes()).is_none(), "{bad:?}");
        }
        assert!(!format!("{token:?}").contains("0123"));
    }

    #[test]
    fn a_file_that_others_may_read_is_no_secret() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "0123456789abcdef\n").unwrap();
        let with = |mode: u32| {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            Token::read(&path)
        };
        assert!(with(0o600).unwrap().is_in(b"Bearer 0123456789abcdef"));
        assert!(with(0o400).is_ok());
        for mode in [0o604, 0o620, 0o602, 0o644] {
            let error = with(mode).unwrap_err().to_string();
            assert!(error.contains("open to others") && error.contains("chmod 0600"), "{error}");
        }
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!(with(0o440).is_ok(), is_root, "a group may read only what root gave it");
        assert!(matches!(Token::read(folder.path()), Err(TokenError::Kind(_))));
        assert!(matches!(Token::read(&folder.path().join("none")), Err(TokenError::Read { .. })));
        std::fs::write(&path, "short").unwrap();
        assert!(matches!(with(0o600), Err(TokenError::Text(_))));
    }
}
