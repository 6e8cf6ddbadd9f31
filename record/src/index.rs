//! The index: where the frames of a record are, and what is in them.

use bytemuck::{Pod, Zeroable};

use crate::error::DecodeError;
use crate::pod::{Reader, padded, put};

/// What an index says of a frame before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// Where the frame begins, in bytes from the beginning of the file.
    pub offset: u64,
    /// The number of the frame.
    pub sequence: u64,
    /// The earliest time in it, 0 if there is none.
    pub first_ns: u64,
    /// The latest time in it, 0 if there is none.
    pub last_ns: u64,
    /// Its [flags](crate::frame_flags).
    pub flags: u32,
    /// The processes that it is about.
    pub processes: Vec<u32>,
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Head {
    offset: u64,
    sequence: u64,
    first_ns: u64,
    last_ns: u64,
    flags: u32,
    processes: u32,
}

impl IndexEntry {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let IndexEntry { offset, sequence, first_ns, last_ns, flags, ref processes } = *self;
        put(out, &Head { offset, sequence, first_ns, last_ns, flags, processes: processes.len() as u32 });
        out.extend_from_slice(bytemuck::cast_slice(processes));
        out.resize(padded(out.len()), 0);
    }

    /// The length of the entry in an index.
    pub(crate) fn len(&self) -> usize {
        size_of::<Head>() + padded(4 * self.processes.len())
    }

    /// The entries of an index frame.
    pub(crate) fn decode_all(bytes: &[u8]) -> Result<Vec<IndexEntry>, DecodeError> {
        let (mut reader, mut left) = (Reader::new(bytes), bytes.len());
        let mut entries = Vec::new();
        while left > 0 {
            let Head { offset, sequence, first_ns, last_ns, flags, processes } = reader.pod()?;
            let listed: Vec<u32> = reader.pods(processes as usize)?;
            reader.take(padded(4 * listed.len()) - 4 * listed.len())?;
            let entry = IndexEntry { offset, sequence, first_ns, last_ns, flags, processes: listed };
            left -= entry.len();
            entries.push(entry);
        }
        Ok(entries)
    }
}
