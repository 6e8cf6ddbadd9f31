//! The proof of concept's message about one allocation or release: 144 bytes, as a server on a socket takes them.
//!
//! `tt-smi bridge` serves clients that send it, and the benchmarks send it to measure what a socket costs. Two shorter
//! forms were in use as well; what differs in them is known to the bridge. The first [`HEAD_LEN`] bytes are the same in
//! all of them.

use bytemuck::{Pod, Zeroable};

/// Bytes of a message.
pub const MESSAGE_LEN: usize = 144;

/// Bytes that all forms of the message begin with: the report or question, and the first four sums.
pub const HEAD_LEN: usize = 72;

/// Where the proof of concept's server listens.
pub const SOCKET_PATH: &str = "/tmp/tt_allocation_server.sock";

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
    /// Asks the server to print what is live.
    DumpRemaining = 5,
    /// Asks for a device's capacities, or with device -1 for the number of devices.
    DeviceInfoQuery = 6,
    /// Tells them.
    DeviceInfoResponse = 7,
    /// A circular buffer was allocated.
    CbAlloc = 8,
    /// A circular buffer was freed.
    CbFree = 9,
    /// A kernel was loaded.
    KernelLoad = 10,
    /// A kernel was unloaded.
    KernelUnload = 11,
    /// Asks the server to print which kernels are loaded.
    DumpKernels = 12,
}

impl Kind {
    /// All kinds; the place of each is its code minus one.
    pub const ALL: [Kind; 12] = [
        Kind::Alloc,
        Kind::Free,
        Kind::Query,
        Kind::Response,
        Kind::DumpRemaining,
        Kind::DeviceInfoQuery,
        Kind::DeviceInfoResponse,
        Kind::CbAlloc,
        Kind::CbFree,
        Kind::KernelLoad,
        Kind::KernelUnload,
        Kind::DumpKernels,
    ];

    /// The kind with this code.
    #[inline]
    pub fn from_code(code: u8) -> Option<Kind> {
        Kind::ALL.get(usize::from(code).checked_sub(1)?).copied()
    }
}

/// One message, as it goes over the socket.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Message {
    /// [`Kind`].
    pub kind: u8,
    pad0: [u8; 3],
    /// The host's number of the device.
    pub device: i32,
    /// Bytes.
    pub size: u64,
    /// tt-metal's code of the buffer type, 0 is DRAM; of a kernel: 0 application, 1 fabric, 2 dispatch.
    pub buffer_type: u8,
    pad1: [u8; 3],
    /// Sender.
    pub pid: i32,
    /// Id of the buffer, circular buffer or kernel.
    pub id: u64,
    /// Nanoseconds.
    pub timestamp: u64,
    /// Response: bytes in use: DRAM, L1, small L1, trace, circular buffers, kernels.
    pub allocated: [u64; 6],
    /// Response: capacities of DRAM and L1.
    pub totals: [u64; 2],
    /// Response: what the device is.
    pub info: Info,
    /// Response: the kernel ring buffer: size, bytes used, programs in it.
    pub ring: [u32; 3],
    pad2: u32,
}

/// What a device is; the end of the 112-byte form, and part of the 144-byte form.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Info {
    /// 1 Grayskull, 2 Wormhole, 3 Blackhole, 4 Quasar.
    pub arch: u32,
    /// DRAM channels.
    pub dram_channels: u32,
    /// Bytes of each.
    pub dram_channel_bytes: u32,
    /// L1 bytes of each core.
    pub l1_per_core: u32,
    /// 1 if there is such a device.
    pub is_available: u32,
    /// Number of devices, if that was asked for.
    pub num_devices: u32,
}

const _: () = assert!(size_of::<Message>() == MESSAGE_LEN);
const _: () = assert!(std::mem::offset_of!(Message, pid) == 20);
const _: () = assert!(std::mem::offset_of!(Message, timestamp) == 32);
const _: () = assert!(std::mem::offset_of!(Message, allocated) == 40);
const _: () = assert!(std::mem::offset_of!(Message, allocated) + 4 * 8 == HEAD_LEN);
const _: () = assert!(std::mem::offset_of!(Message, totals) == 88);
const _: () = assert!(std::mem::offset_of!(Message, info) == 104);
const _: () = assert!(std::mem::offset_of!(Message, ring) == 128);

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

    /// An answer about a device, with nothing known yet.
    pub fn answer(kind: Kind, device: i32) -> Message {
        Message { kind: kind as u8, device, ..Message::zeroed() }
    }

    /// A message of which only the head was sent.
    #[inline]
    pub fn from_head(head: &[u8; HEAD_LEN]) -> Message {
        let mut message = Message::zeroed();
        bytemuck::bytes_of_mut(&mut message)[..HEAD_LEN].copy_from_slice(head);
        message
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8; MESSAGE_LEN] {
        bytemuck::must_cast_ref(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_places() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_code(kind as u8), Some(kind));
        }
        assert_eq!((Kind::from_code(0), Kind::from_code(13), Kind::from_code(255)), (None, None, None));
    }

    #[test]
    fn a_head_is_the_beginning_of_a_message() {
        let message = Message { allocated: [1, 2, 3, 4, 0, 0], ..Message::new(Kind::Alloc, 7, 3, 5, 4096) };
        let (head, rest) = message.bytes().split_first_chunk().unwrap();
        assert_eq!(Message::from_head(head), message);
        assert!(rest.iter().all(|byte| *byte == 0));
    }
}
