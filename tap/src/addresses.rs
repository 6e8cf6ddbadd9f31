//! Maps by address: a few multiplications to find something, where the standard library guards against keys that an
//! attacker chose.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map whose keys are addresses.
pub(crate) type Addresses<Key, Value> = HashMap<Key, Value, BuildHasherDefault<AddressHasher>>;

/// Spreads addresses, whose lowest bits are all alike.
#[derive(Default)]
pub(crate) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_usize(usize::from(*byte)));
    }

    fn write_usize(&mut self, address: usize) {
        // An odd number with no pattern; the map uses the upper bits as well.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        self.0 = (self.0 ^ address as u64).wrapping_mul(SPREAD).rotate_left(32);
    }
}
