//! What can be wrong with a record, and where.

use std::io;
use std::path::PathBuf;

use shm_layout::Implausible;

/// Why some bytes are not a frame or not an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// No frame begins there.
    #[error("no frame begins here")]
    Magic,
    /// The header is damaged.
    #[error("the checksum of the frame's header is wrong")]
    HeaderChecksum,
    /// What follows the header is damaged.
    #[error("the checksum of the frame's content is wrong")]
    PayloadChecksum,
    /// A later version wrote it.
    #[error(
        "it has version {found} of the record format; this program reads version {known}: use a newer one"
    )]
    Version {
        /// The version of the frame.
        found: u32,
        /// The version of this library.
        known: u32,
    },
    /// A length that no frame has.
    #[error("the frame claims {raw} bytes in {stored}, more than any frame has")]
    FrameLength {
        /// Claimed bytes before compression.
        raw: usize,
        /// Claimed bytes in the file.
        stored: usize,
    },
    /// It could not be decompressed.
    #[error("the frame could not be decompressed: {0}")]
    Compression(String),
    /// It is shorter than its header says.
    #[error("the frame has {found} bytes after decompression, its header says {expected}")]
    RawLength {
        /// The bytes that it has.
        found: usize,
        /// The bytes that its header says.
        expected: usize,
    },
    /// An entry is shorter than what it must have.
    #[error("an entry has {found} bytes left where {expected} are needed")]
    EntryTooShort {
        /// The bytes that are left.
        found: usize,
        /// The bytes that are needed.
        expected: usize,
    },
    /// A count that no process has.
    #[error("an entry claims {0} of something, more than there can be")]
    Count(u64),
    /// A code that has no meaning.
    #[error("an entry has the unknown {what} code {code}")]
    Code {
        /// What it is a code of.
        what: &'static str,
        /// The code.
        code: u64,
    },
    /// Facts in JSON that could not be read.
    #[error("the facts of an entry could not be read: {0}")]
    Facts(String),
    /// A segment header that no segment has.
    #[error("the header of a process's segment is not one: {0}")]
    SegmentHeader(String),
    /// Events whose positions do not follow one another.
    #[error("event {found} is in the place of event {expected}")]
    Position {
        /// The position of the event.
        found: u64,
        /// The position that it should have.
        expected: u64,
    },
    /// Counters that honest events cannot lead to.
    #[error("the counters of device {device} in a checkpoint are not possible")]
    Counters {
        /// The index of the device.
        device: usize,
    },
}

/// Why a record cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file cannot be read.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The file is no record.
    #[error("{}: not a record of tt-smi ({cause})", path.display())]
    NotARecord {
        /// The file.
        path: PathBuf,
        /// What is wrong with its beginning.
        cause: DecodeError,
    },
    /// The file has no whole frame.
    #[error("{}: the record has no whole frame: the recorder ended before it had written any", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// What the record tells of its processes does not fit into memory that is reasonable.
    #[error(
        "{}: the record has more than {limit} {what}: no recorder writes that, so the file is damaged or hostile",
        path.display()
    )]
    TooMuch {
        /// The file.
        path: PathBuf,
        /// What there is too much of.
        what: &'static str,
        /// The most that is accepted.
        limit: u64,
    },
}

/// Why a part of a record that was opened cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be read any more.
    #[error("frame {sequence} of the record: {cause}")]
    Io {
        /// The number of the frame.
        sequence: u64,
        /// Why.
        cause: io::Error,
    },
    /// The file has changed since it was opened.
    #[error("frame {sequence} of the record has changed since the file was opened: {cause}")]
    Changed {
        /// The number of the frame.
        sequence: u64,
        /// What is wrong with it now.
        cause: DecodeError,
    },
    /// There is no such process in the record.
    #[error("the record has no process {number}: it has {count}")]
    NoProcess {
        /// The number that was asked for.
        number: u32,
        /// How many processes there are.
        count: usize,
    },
    /// An event that honest processes cannot have.
    #[error("process {number} of the record has an impossible event: {cause}")]
    Implausible {
        /// The process.
        number: u32,
        /// The event.
        cause: Implausible,
    },
    /// An event of a device that the process never listed.
    #[error("process {number} of the record has an event of device {device}, which it never listed")]
    UnlistedDevice {
        /// The process.
        number: u32,
        /// The index of the device.
        device: u8,
    },
    /// More than can be live.
    #[error("process {number} of the record has more live rows than a process can have")]
    TooManyRows {
        /// The process.
        number: u32,
    },
}

/// What is wrong with a record that can be read nonetheless. Everything else in it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// The length of the file.
    pub file_len: u64,
    /// The number of bytes at its end that are not a whole frame.
    pub cut_bytes: u64,
    /// The number of bytes between frames that belong to none.
    pub skipped_bytes: u64,
    /// The number of frames whose content could not be decoded, or that are missing.
    pub lost_frames: u64,
    /// The first thing that was wrong, apart from the cut.
    pub first: Option<DecodeError>,
    /// Where that was, in bytes from the beginning of the file.
    pub first_at: u64,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts = Vec::new();
        if self.cut_bytes > 0 {
            parts.push(format!(
                "the last {} bytes are not a whole frame; everything before is used",
                self.cut_bytes
            ));
        }
        if self.lost_frames > 0 {
            parts.push(format!("{} frames are damaged or missing", self.lost_frames));
        }
        if self.skipped_bytes > 0 {
            parts.push(format!("{} bytes belong to no frame", self.skipped_bytes));
        }
        if let Some(first) = &self.first {
            parts.push(format!("at byte {}: {first}", self.first_at));
        }
        f.write_str(&parts.join("; "))
    }
}
