//! Every parser of text from outside: names of files, the command line, queries, procfs, /etc/passwd.

use std::hint::black_box;

use clap::Parser;
use shm_layout::text::{decode, encode};
use tt_shm_os::{Namespace, Stat, Status, describe, parse_segment_name, parse_uuid, segment_file_name};
use tt_smi::cli::Cli;
use tt_smi::escape::{columns, escape, fit};
use tt_smi::query::Query;

/// See [`super::BODIES`].
pub(super) fn run(data: &[u8]) {
    let Some((kind, bytes)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(bytes);
    match kind % 9 {
        0 => segment_name(&text),
        1 => namespace(&text),
        2 => arguments(&text),
        3 => process(&text),
        4 => {
            let comm = text.split('\0').next().unwrap_or_default();
            black_box((describe(comm, bytes), describe("python3", bytes)));
        }
        5 => drop(black_box(tt_smi::users::parse(&text))),
        6 => shown(&text),
        7 => field(bytes, &text),
        _ => query(&text),
    }
}

fn process(text: &str) {
    let status = Status::new(text);
    black_box((Stat::parse(text), parse_uuid(text), status.owners(), status.innermost_pid()));
    black_box((status.ignored_signals(), status.bytes("VmHWM")));
}

/// There is one spelling of each name.
fn segment_name(text: &str) {
    if let Some(name) = parse_segment_name(text) {
        assert_eq!(segment_file_name(&name.namespace, name.pid, name.random), text);
    }
}

/// A namespace cannot leave its place in a path.
fn namespace(text: &str) {
    if let Ok(namespace) = Namespace::new(text) {
        assert!(!namespace.as_str().contains(['/', '.', '\0']));
    }
}

/// The whole command line: commands, durations, devices, classes, numbers.
fn arguments(text: &str) {
    let arguments = ["tt-smi"].into_iter().chain(text.split('\n'));
    black_box(Cli::try_parse_from(arguments).is_ok());
}

/// What is understood can be written, and is understood again as the same.
fn query(text: &str) {
    if let Ok(query) = text.parse::<Query>() {
        let written = query.to_string();
        assert_eq!(written.parse::<Query>().as_ref(), Ok(&query), "{written:?}");
    }
}

fn shown(text: &str) {
    let escaped = escape(text);
    assert!(!escaped.contains(char::is_control), "{escaped:?}");
    // Columns, not characters: a mark that goes above another takes none.
    let fitted = fit(&escaped, 12);
    assert!(columns(&fitted) <= 12, "{fitted:?}");
    assert!(fitted == escaped || fitted.strip_suffix('…').is_some_and(|start| escaped.starts_with(start)));
}

fn field(bytes: &[u8], text: &str) {
    let decoded = decode(bytes);
    assert!(!decoded.contains('\0'));
    let encoded: [u8; 16] = encode(text);
    assert!(
        text.as_bytes().starts_with(&encoded[..encoded.iter().position(|b| *b == 0).unwrap_or(16)])
            || text.contains('\0')
    );
}
