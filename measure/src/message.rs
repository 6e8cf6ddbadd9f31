//! A 144-byte message about one allocation or release, as a server on a socket takes it.

use bytemuck::{Pod, Zeroable};

/// Bytes of a message.
pub const MESSAGE_LEN: usize = 144;

/// What a message is about.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A buffer was allocated.
    Alloc = 1,
    /// A buffer was freed.
    Free = 2,
    /// Asks for a device's statistics.
    Query = 3,
    /// Tells them.
    Response = 4,
    /// A kernel was loaded.
    KernelLoad = 10,
    /// A kernel was unloaded.
    KernelUnload = 11,
}

impl Kind {
    /// The kind with this code.
    pub fn from_code(code: u8) -> Option<Kind> {
        let all =
            [Kind::Alloc, Kind::Free, Kind::Query, Kind::Response, Kind::KernelLoad, Kind::KernelUnload];
        all.into_iter().find(|kind| *kind as u8 == code)
    }
}

/// One message, as it goes over the socket.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Message {
    /// [`Kind`].
    pub kind: u8,
    pad0: [u8; 3],
    /// The host's number of the device.
    pub device: i32,
    /// Bytes.
    pub size: u64,
    /// 0 is DRAM.
    pub buffer_type: u8,
    pad1: [u8; 3],
    /// Sender.
    pub pid: i32,
    /// Id of the buffer or kernel.
    pub id: u64,
    /// Nanoseconds.
    pub timestamp: u64,
    /// Response: bytes in use: DRAM, L1, small L1, trace, circular buffers, kernels.
    pub allocated: [u64; 6],
    /// Response: capacities of DRAM and L1.
    pub totals: [u64; 2],
    /// Architecture, channels, sizes and the like; of no interest here.
    pub details: [u32; 10],
}

const _: () = assert!(size_of::<Message>() == MESSAGE_LEN);
const _: () = assert!(std::mem::offset_of!(Message, timestamp) == 32);
const _: () = assert!(std::mem::offset_of!(Message, allocated) == 40);
const _: () = assert!(std::mem::offset_of!(Message, details) == 104);

/// Places in [`Message::allocated`].
pub mod place {
    /// DRAM buffers.
    pub const DRAM: usize = 0;
    /// Kernels.
    pub const KERNEL: usize = 5;
}

impl Message {
    /// A message of this kind, now.
    #[inline]
    pub fn new(kind: Kind, pid: i32, device: i32, id: u64, size: u64) -> Message {
        let timestamp = tt_shm_os::monotonic_ns();
        Message { kind: kind as u8, device, size, pid, id, timestamp, ..Message::zeroed() }
    }
}
