//! The kernel-config rings: where in L1 the kernels and arguments of the programs that were launched last lie.
//!
//! tt-metal keeps one for each sub-device of a command queue. Shown is that of Tensix cores, the first of its buffers.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use crate::accounts::Accounts;
use crate::addresses::Addresses;
use crate::doing;
use crate::metal::{Device, programs as metal};
use crate::shield::PerProcess;

#[derive(Default)]
struct Ring {
    total: u64,
    /// Bytes of each program, and the count at which it may be freed.
    entries: VecDeque<(u64, u32)>,
    /// What the next program will take.
    reserved: u64,
    /// The mesh that it was last used for.
    mesh: Option<Device>,
    told: Option<(u64, u64)>,
}

static RINGS: PerProcess<Mutex<Addresses<metal::Ring, Ring>>> = PerProcess::new();

fn rings() -> MutexGuard<'static, Addresses<metal::Ring, Ring>> {
    let rings = RINGS.get_or_make(Mutex::default);
    rings.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A ring was made.
pub(crate) fn made(of: metal::Ring) {
    rings().insert(of, Ring::default());
}

/// A buffer of a ring was told; the first is that of Tensix cores.
pub(crate) fn buffer(of: metal::Ring, bytes: u32) {
    let mut rings = rings();
    let ring = rings.entry(of).or_default();
    if ring.total == 0 {
        ring.total = u64::from(bytes);
    }
}

/// Room is reserved for a program.
pub(crate) fn reserved(of: metal::Ring, bytes: u32) {
    let mesh = doing::launching().map(|launch| launch.mesh);
    if let Some(ring) = rings().get_mut(&of) {
        ring.reserved = u64::from(bytes);
        ring.mesh = mesh.or(ring.mesh);
    }
}

/// The room is taken, until the count reaches this.
pub(crate) fn taken(of: metal::Ring, until: u32) {
    if let Some(ring) = rings().get_mut(&of).filter(|ring| ring.reserved > 0) {
        ring.entries.push_back((ring.reserved, until));
    }
}

/// Everything up to a count is free again.
pub(crate) fn freed(of: metal::Ring, count: u32) {
    if let Some(ring) = rings().get_mut(&of) {
        while ring.entries.front().is_some_and(|(_, until)| count >= *until) {
            ring.entries.pop_front();
        }
    }
}

/// All of it counts as taken, until the count reaches this.
pub(crate) fn filled(of: metal::Ring, until: u32) {
    if let Some(ring) = rings().get_mut(&of) {
        ring.entries = VecDeque::from([(ring.total, until)]);
    }
}

/// Reports the ring that a launch on this mesh used.
pub(crate) fn report(accounts: &Accounts, mesh: Device) {
    let mut rings = rings();
    let Some(ring) = rings.values_mut().find(|ring| ring.mesh == Some(mesh)) else { return };
    let used = ring.entries.iter().map(|(bytes, _)| bytes).sum();
    let programs = ring.entries.len() as u64;
    if ring.told.replace((used, programs)) != Some((used, programs)) {
        accounts.ring(ring.total, used, programs);
    }
}
