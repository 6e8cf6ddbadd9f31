//! Why a file is not accepted as a segment or table.

/// What is wrong with a file that claims to be a segment or table. Always carries what was found and what was
/// expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Too short to hold even the header.
    #[error("{len} bytes are too few for a header of {needed} bytes")]
    TooShort {
        /// Length of the file.
        len: u64,
        /// Length needed.
        needed: u64,
    },
    /// Not a segment or table at all.
    #[error("magic is {found:#018x}, not {expected:#018x}: not a file of the memory monitor")]
    Magic {
        /// Magic found.
        found: u64,
        /// Magic expected.
        expected: u64,
    },
    /// Written by a version with another layout.
    #[error(
        "layout {found_major}.{found_minor} cannot be read by layout {major}.{minor}: update the older side"
    )]
    Version {
        /// Major version in the file.
        found_major: u32,
        /// Minor version in the file.
        found_minor: u32,
        /// Major version of this build.
        major: u32,
        /// Minor version of this build.
        minor: u32,
    },
    /// Uses a feature that this version does not know and must not ignore.
    #[error(
        "layout {found_major}.{found_minor} uses features {unknown:#x} that layout {major}.{minor} does not know: update this tool"
    )]
    Features {
        /// Feature bits that are not known here.
        unknown: u64,
        /// Major version in the file.
        found_major: u32,
        /// Minor version in the file.
        found_minor: u32,
        /// Major version of this build.
        major: u32,
        /// Minor version of this build.
        minor: u32,
    },
    /// A block lies outside the file, is misaligned, or has an impossible capacity.
    #[error("block {block}: {capacity} entries at offset {offset} do not fit a file of {len} bytes")]
    Block {
        /// Name of the block.
        block: &'static str,
        /// Its offset in bytes.
        offset: u64,
        /// Its capacity in entries.
        capacity: u64,
        /// Length of the file.
        len: u64,
    },
    /// The header contradicts itself or the file.
    #[error("header says {what} = {found}, expected {expected}")]
    Header {
        /// Name of the field.
        what: &'static str,
        /// Value found.
        found: u64,
        /// Value expected.
        expected: u64,
    },
}
