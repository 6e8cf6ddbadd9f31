//! What all JSON documents have in common: exact bytes, `null` for unknown, never 0.

use std::io::{self, Write};

use serde::Serialize;

use crate::model::{Clock, Peak};

/// Version of what is written; raised when a key changes its meaning or goes away.
pub const SCHEMA: u32 = 1;

/// Writes a value and a newline.
pub fn write(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

/// What every document begins with.
#[derive(Debug, Serialize)]
pub struct Envelope {
    /// [`SCHEMA`].
    pub schema: u32,
    /// RFC 3339, UTC.
    pub timestamp: String,
    /// Name of the machine.
    pub host: String,
    /// The namespace that was looked at.
    pub namespace: String,
}

impl Envelope {
    /// Of this moment.
    pub fn new(clock: Clock, host: &str, namespace: &str) -> Envelope {
        let (timestamp, host, namespace) = (clock.timestamp(), host.to_owned(), namespace.to_owned());
        Envelope { schema: SCHEMA, timestamp, host, namespace }
    }
}

/// A largest value, with what is known of it.
#[derive(Debug, Serialize)]
pub struct PeakJson {
    low_bytes: u64,
    high_bytes: u64,
    exact: bool,
    time: Option<String>,
    count: Option<u64>,
}

impl PeakJson {
    /// Of a peak.
    pub fn new(peak: &Peak, clock: Clock) -> PeakJson {
        PeakJson {
            low_bytes: peak.low,
            high_bytes: peak.high,
            exact: peak.is_exact(),
            time: peak.time.map(|time| clock.rfc3339(time)),
            count: peak.count,
        }
    }
}
