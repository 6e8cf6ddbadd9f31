//! The frame: a header of fixed size, and compressed bytes that can be decoded without anything else.

use bytemuck::{Pod, Zeroable};

use crate::error::DecodeError;

/// The first eight bytes of every frame.
pub(crate) const FRAME_MAGIC: [u8; 8] = *b"TTSHMREC";
/// The version of the format, which readers must know exactly.
pub const FORMAT_VERSION: u32 = 1;
/// The number of bytes of entries after which a frame is closed.
pub const FRAME_LEN: usize = 1 << 20;
/// The most bytes that a frame may have before compression.
pub const MAX_RAW: usize = 2 << 20;
/// The most bytes that a frame may have after compression: more than zstd makes of anything.
pub(crate) const MAX_STORED: usize = MAX_RAW + (1 << 16);
/// The length of a frame's header in bytes.
pub const FRAME_HEADER_LEN: usize = size_of::<FrameHeader>();

/// The kind of a frame; the discriminant is its code.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// [Entries](crate::Entry).
    Entries = 1,
    /// [Where the frames before it are](crate::IndexEntry).
    Index = 2,
}

/// Bits of [`FrameHeader::flags`].
pub mod frame_flags {
    /// A checkpoint begins in the frame.
    pub const CHECKPOINT: u32 = 1 << 0;
    /// The frame has entries other than events and rows.
    pub const CATALOG: u32 = 1 << 1;
    /// The frame is the last one that the recorder meant to write.
    pub const LAST: u32 = 1 << 2;
}

/// The first 64 bytes of a frame. All numbers are little-endian.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct FrameHeader {
    /// The bytes `TTSHMREC`.
    pub magic: [u8; 8],
    /// Version of the format.
    pub version: u32,
    /// [Kind](FrameKind) code.
    pub kind: u32,
    /// Number of the frame in its file, from 0.
    pub sequence: u64,
    /// The earliest time in the frame, as the recorder's clock had it; 0 if there is none.
    pub first_ns: u64,
    /// The latest time in the frame; 0 if there is none.
    pub last_ns: u64,
    /// Length before compression.
    pub raw_len: u32,
    /// Length of what follows the header.
    pub stored_len: u32,
    /// [Flags](frame_flags).
    pub flags: u32,
    /// CRC-32 of what follows the header.
    pub payload_crc: u32,
    /// A random number that all frames of a file share: frames of another file are not mistaken for its own.
    pub record: u32,
    /// CRC-32 of the bytes before it.
    pub header_crc: u32,
}

const _: () = assert!(size_of::<FrameHeader>() == 64 && std::mem::offset_of!(FrameHeader, header_crc) == 60);

impl FrameHeader {
    /// The header with its magic, version and checksum filled in.
    pub(crate) fn sealed(self) -> FrameHeader {
        let mut header = FrameHeader { magic: FRAME_MAGIC, version: FORMAT_VERSION, ..self };
        header.header_crc = header.own_crc();
        header
    }

    fn own_crc(&self) -> u32 {
        crc32fast::hash(&bytemuck::bytes_of(self)[..FRAME_HEADER_LEN - 4])
    }

    /// Reads and checks a header.
    pub(crate) fn read(bytes: &[u8; FRAME_HEADER_LEN]) -> Result<FrameHeader, DecodeError> {
        let header: FrameHeader = bytemuck::pod_read_unaligned(bytes);
        if header.magic != FRAME_MAGIC {
            return Err(DecodeError::Magic);
        }
        if header.header_crc != header.own_crc() {
            return Err(DecodeError::HeaderChecksum);
        }
        if header.version != FORMAT_VERSION {
            return Err(DecodeError::Version { found: header.version, known: FORMAT_VERSION });
        }
        let (raw, stored) = (header.raw_len as usize, header.stored_len as usize);
        if raw > MAX_RAW || stored > MAX_STORED {
            return Err(DecodeError::FrameLength { raw, stored });
        }
        Ok(header)
    }

    /// The kind; `None` if this version does not know the code.
    pub fn kind(&self) -> Option<FrameKind> {
        [FrameKind::Entries, FrameKind::Index].into_iter().find(|kind| *kind as u32 == self.kind)
    }

    /// Checks and decompresses what follows the header.
    pub(crate) fn unpack(&self, stored: &[u8]) -> Result<Vec<u8>, DecodeError> {
        if crc32fast::hash(stored) != self.payload_crc {
            return Err(DecodeError::PayloadChecksum);
        }
        let expected = self.raw_len as usize;
        let raw = zstd::bulk::decompress(stored, expected)
            .map_err(|error| DecodeError::Compression(error.to_string()))?;
        if raw.len() != expected {
            return Err(DecodeError::RawLength { found: raw.len(), expected });
        }
        Ok(raw)
    }
}
