//! Where each byte of a region lies.
//!
//! ```text
//!    0  u32 version             4  u32 used process slots     8  u64 last update, ns of the system clock
//!   16  u32 reference count    24  u64 board serial, always 0
//!   32  u64 chip id            40  u32 logical device id
//!   48  u64 x 5  totals: dram, l1, l1_small, trace, cb
//!   88  16 chips of 48 bytes:      u32 chip (all ones: unused), u32 is remote, u64 x 5 as above
//!  856  64 processes of 120 bytes: i32 pid (+4), u64 x 5 as above, u64 last update, name of 64 bytes
//! 8536  u32 initialisation state, from version 4 on
//! 8576  end
//! ```
//!
//! Versions 2 and 3 differ in nothing that is read here. Version 4 adds the state of the initialisation, and pid -1 for
//! a slot that is being released. Bytes are little-endian, like the machines that tt-metal runs on.

/// Bytes of a region.
pub(crate) const LEN: usize = 8576;

/// Bytes of a region, copied.
pub(crate) type Image = [u8; LEN];

/// The versions that are understood.
pub(crate) const VERSIONS: std::ops::RangeInclusive<u32> = 2..=4;
/// The first version that tells whether its initialisation is complete and which slots are being released.
pub(crate) const WITH_STATES: u32 = 4;
/// The state of a region whose initialisation is complete.
pub(crate) const READY: u32 = 0x5245_4459;
/// The id of a chip slot that nobody uses.
pub(crate) const NO_CHIP: u32 = u32::MAX;
/// The pid of a slot that is being released.
pub(crate) const RELEASING: i32 = -1;

pub(crate) const VERSION: usize = 0;
pub(crate) const PROCESS_COUNT: usize = 4;
pub(crate) const UPDATED: usize = 8;
pub(crate) const REFERENCES: usize = 16;
pub(crate) const CHIP_ID: usize = 32;
pub(crate) const DEVICE_ID: usize = 40;
pub(crate) const TOTALS: usize = 48;
pub(crate) const CHIPS: Slots = Slots { start: 88, stride: 48, count: 16 };
pub(crate) const PROCESSES: Slots = Slots { start: 856, stride: 120, count: 64 };
pub(crate) const STATE: usize = 8536;

/// Inside of a chip's slot.
pub(crate) mod chip {
    pub(crate) const ID: usize = 0;
    pub(crate) const IS_REMOTE: usize = 4;
    pub(crate) const BYTES: usize = 8;
}

/// Inside of a process's slot.
pub(crate) mod process {
    pub(crate) const PID: usize = 0;
    pub(crate) const BYTES: usize = 8;
    pub(crate) const UPDATED: usize = 48;
    pub(crate) const NAME: usize = 56;
    pub(crate) const NAME_LEN: usize = 64;
}

const _: () = {
    assert!(CHIPS.start == TOTALS + 5 * 8 && CHIPS.end() == PROCESSES.start);
    assert!(PROCESSES.end() == STATE && STATE + 4 <= LEN && LEN.is_multiple_of(64));
    assert!(process::NAME + process::NAME_LEN == PROCESSES.stride && chip::BYTES + 5 * 8 == CHIPS.stride);
};

/// Slots of one size, one after another.
pub(crate) struct Slots {
    pub(crate) start: usize,
    pub(crate) stride: usize,
    pub(crate) count: usize,
}

impl Slots {
    const fn end(&self) -> usize {
        self.start + self.stride * self.count
    }

    /// Where each slot begins, with its number.
    pub(crate) fn places(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (start, stride) = (self.start, self.stride);
        (0..self.count).map(move |slot| (slot, start + slot * stride))
    }
}

fn bytes<const N: usize>(image: &Image, offset: usize) -> [u8; N] {
    // Offsets are the constants above, so that this is in range whatever stands in the region.
    std::array::from_fn(|index| image[offset + index])
}

pub(crate) fn u32_at(image: &Image, offset: usize) -> u32 {
    u32::from_le_bytes(bytes(image, offset))
}

pub(crate) fn i32_at(image: &Image, offset: usize) -> i32 {
    i32::from_le_bytes(bytes(image, offset))
}

pub(crate) fn u64_at(image: &Image, offset: usize) -> u64 {
    u64::from_le_bytes(bytes(image, offset))
}
