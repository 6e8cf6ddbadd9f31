//! Parsers of argument values.

use std::time::Duration;

use crate::query::{
    ALLOCATION_FIELDS, DEVICE_FIELDS, EVENT_FIELDS, FAILURE_FIELDS, PROCESS_FIELDS, PROGRAM_FIELDS, Query,
    QueryError, size_bytes, time_ns,
};

// Queries are parsed with the arguments, so that a wrong one is refused before anything is read.

pub(super) fn allocation_query(text: &str) -> Result<Query, QueryError> {
    Query::about(text, ALLOCATION_FIELDS)
}

pub(super) fn program_query(text: &str) -> Result<Query, QueryError> {
    Query::about(text, PROGRAM_FIELDS)
}

pub(super) fn event_query(text: &str) -> Result<Query, QueryError> {
    Query::about(text, EVENT_FIELDS)
}

pub(super) fn device_query(text: &str) -> Result<Query, QueryError> {
    Query::about(text, &DEVICE_FIELDS)
}

pub(super) fn failure_query(text: &str) -> Result<Query, QueryError> {
    Query::about(text, FAILURE_FIELDS)
}

pub(super) fn process_query(text: &str) -> Result<Query, QueryError> {
    Query::about(text, &PROCESS_FIELDS)
}

/// `500ms`, `10s`, `2m`, `1h`, `1d`; a bare number is seconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    match time(text)? {
        time if time >= Duration::from_millis(1) => Ok(time),
        _ => Err(format!("{text:?} is out of range: 1ms or more")),
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let nanos = time_ns(text).map_err(|expected| format!("{text:?} is not {expected}"))?;
    Ok(Duration::from_nanos(nanos))
}

/// `64MiB`, `1GiB`: the size of a file.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let allowed = 1 << 20..=1 << 50;
    match size_bytes(text).map_err(|expected| format!("{text:?} is not {expected}"))? {
        size if allowed.contains(&size) => Ok(size),
        _ => Err(format!("{text:?} is out of range: from 1MiB to 1PiB")),
    }
}

/// The size of a black box, which is in several files.
pub(super) fn black_box_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        size if size >= 16 << 20 => Ok(size),
        _ => Err(format!("{text:?} is too small: 16MiB or more")),
    }
}

/// A refresh interval. Shorter ones would only keep a core busy; longer ones would not be live.
pub fn interval(text: &str) -> Result<Duration, String> {
    let allowed = Duration::from_millis(20)..=Duration::from_secs(3600);
    match time(text)? {
        interval if allowed.contains(&interval) => Ok(interval),
        _ => Err(format!("{text:?} is out of range: from 20ms to 1h (3600s)")),
    }
}

/// A command name that needs no quoting in a shell script.
pub(super) fn command_name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match !text.is_empty() && !text.starts_with(['-', '.']) && text.chars().all(plain) {
        true => Ok(text.to_owned()),
        false => Err("a command name consists of letters, digits, '-', '_' and '.'".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_commands() {
        assert!(["tt-smi", "tt-smi-mem", "tt_smi.2"].iter().all(|name| command_name(name).is_ok()));
        assert!(["", "-x", "a b", "a;b", "$(a)", "../a"].iter().all(|name| command_name(name).is_err()));
    }

    #[test]
    fn durations() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("1d"), Ok(Duration::from_secs(86_400)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(interval("1h"), Ok(Duration::from_secs(3600)));
        assert!(interval("19ms").is_err() && interval("2h").is_err());
        for (bad, says) in
            [("0", "from 20ms"), ("1d", "to 1h"), ("5x", "is not a time"), ("x", "is not a time")]
        {
            assert!(interval(bad).unwrap_err().contains(says), "{bad}");
        }
        assert_eq!(duration("3"), Ok(Duration::from_secs(3)));
        for bad in ["", "0s", "s", "1w", "1.s", "-1s", "99999999999999999999s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
