//! What all JSON documents have in common: exact bytes, `null` for unknown, never 0.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};

use crate::escape::is_harmful;
use crate::model::Clock;

/// Version of what is written; raised when a key changes its meaning or goes away.
pub const SCHEMA: u32 = 1;

/// Writes a value and a newline.
pub fn write(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(&mut *out, Harmless(PrettyFormatter::new())))?;
    writeln!(out)
}

/// Writes a value in one line.
pub fn write_line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(&mut *out, Harmless(CompactFormatter)))?;
    writeln!(out)
}

/// JSON that a terminal may be shown. Names in it are exactly what other processes wrote; what a terminal
/// might obey and JSON would let through, such as U+009B, is written as `\u009b`, which is the same text.
struct Harmless<F>(F);

impl<F: Formatter> Formatter for Harmless<F> {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, out: &mut W, mut text: &str) -> io::Result<()> {
        while let Some((at, harmful)) = text.char_indices().find(|(_, c)| is_harmful(*c)) {
            out.write_all(&text.as_bytes()[..at])?;
            for unit in harmful.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            text = &text[at + harmful.len_utf8()..];
        }
        out.write_all(text.as_bytes())
    }

    fn begin_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }

    fn end_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }

    fn end_array_value<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }

    fn begin_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }

    fn end_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }

    fn end_object_value<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
}

/// What every document begins with.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Envelope {
    /// Version of this format; raised when a key changes its meaning or goes away. A later tt-smi may have more keys;
    /// this file has those of its own.
    #[cfg_attr(test, schemars(schema_with = "crate::schema::version"))]
    pub schema: u32,
    /// When, RFC 3339, UTC, to the microsecond.
    #[cfg_attr(test, schemars(schema_with = "crate::schema::timestamp"))]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_exact_and_harmless() {
        let hostile = "a\\b\u{1b}]0;x\u{7}\u{9b}31m\n\u{7f}\u{202e}\u{e0041}ä\"";
        let texts = [hostile];
        for write in [write, write_line] {
            let mut out = Vec::new();
            write(&mut out, &texts).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(!text.chars().any(|c| c != '\n' && is_harmful(c)), "{text:?}");
            assert_eq!(serde_json::from_str::<Vec<String>>(&text).unwrap(), [hostile]);
        }
    }
}
