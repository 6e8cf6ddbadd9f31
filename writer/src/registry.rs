//! What handles refer to: devices and names, by number.
//!
//! Kept outside the lock and only ever appended to, so that a forked child can read it even if another thread
//! of the parent was in the middle of a change. The child's own segment then gives the same numbers to the
//! same things, and handles made before the fork stay valid.
//!
//! Each entry is set by one store of a pointer. A `OnceLock` would be "being set" forever in a child that was
//! forked meanwhile, and the child would hang when it sets that number itself.

use once_cell::race::OnceBox;
use shm_layout::{DeviceEntry, MAX_DEVICES, MAX_NAMES};

const CHUNK: usize = 256;
type Chunk = Box<[OnceBox<Box<[u8]>>]>;

/// A device is described again at most once for each bit of its entry's `known` word that is in use.
const VERSIONS: usize = 16;

pub struct Registry {
    /// For each device, the versions of its entry; the last one that is set counts.
    devices: Box<[[OnceBox<DeviceEntry>; VERSIONS]]>,
    names: Box<[OnceBox<Chunk>]>,
}

impl Registry {
    pub(crate) fn new() -> Registry {
        let devices = (0..MAX_DEVICES).map(|_| [const { OnceBox::new() }; VERSIONS]).collect();
        Registry { devices, names: empty(MAX_NAMES as usize / CHUNK) }
    }

    pub(crate) fn devices(&self) -> impl Iterator<Item = &DeviceEntry> {
        self.devices.iter().map_while(|versions| versions.iter().map_while(OnceBox::get).last())
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &[u8]> {
        // Number 0 is no name.
        (1..MAX_NAMES as usize)
            .map_while(|number| Some(&**self.names[number / CHUNK].get()?[number % CHUNK].get()?))
    }

    /// Remembers a device, or what is known of it by now. Called under the lock, so each version is set once.
    pub(crate) fn set_device(&self, number: usize, entry: DeviceEntry) {
        if let Some(free) = self.devices[number].iter().find(|version| version.get().is_none()) {
            let _ = free.set(Box::new(entry));
        }
    }

    /// Remembers a name. Called under the lock; a known name changes nothing.
    pub(crate) fn set_name(&self, number: u16, name: &[u8]) {
        let number = usize::from(number);
        let chunk = self.names[number / CHUNK].get_or_init(|| Box::new(empty(CHUNK)));
        let _ = chunk[number % CHUNK].set(Box::new(name.into()));
    }
}

fn empty<T>(len: usize) -> Box<[OnceBox<T>]> {
    (0..len).map(|_| OnceBox::new()).collect()
}
