//! How many bytes of loaded kernels are copies of a binary that is also loaded elsewhere.

use std::collections::{BTreeMap, HashMap};

use shm_layout::{Row, RowKind};

use crate::programs::hash;

/// Kernel bytes on a device, distinguished by the hash of the binary. `loaded` is the sum of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelSharing {
    /// The index into the segment's device list.
    pub device: u8,
    /// The bytes of all loaded kernels.
    pub loaded: u64,
    /// The bytes if every binary were loaded once, on the most cores that one of its kernels has.
    pub unique: u64,
    /// The bytes of further copies of those binaries.
    pub shared: u64,
    /// The bytes of kernels without a hash: whether they are copies is not known.
    pub unhashed: u64,
}

/// Distinguishes unique from shared kernel bytes, by device index. Rows other than kernels are ignored.
pub fn kernel_sharing(rows: &[Row]) -> Vec<KernelSharing> {
    let mut devices: BTreeMap<u8, (KernelSharing, HashMap<u64, u64>)> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.kind() == Some(RowKind::Kernel)) {
        let (sharing, largest) = devices.entry(row.device).or_default();
        sharing.device = row.device;
        sharing.loaded = sharing.loaded.saturating_add(row.size);
        match hash(row) {
            None => sharing.unhashed = sharing.unhashed.saturating_add(row.size),
            Some(hash) => {
                let bytes = largest.entry(hash).or_default();
                *bytes = row.size.max(*bytes);
            }
        }
    }
    let finish = |(mut sharing, largest): (KernelSharing, HashMap<u64, u64>)| {
        sharing.unique = largest.into_values().fold(0, u64::saturating_add);
        sharing.shared = sharing.loaded.saturating_sub(sharing.unhashed).saturating_sub(sharing.unique);
        sharing
    };
    devices.into_values().map(finish).collect()
}
