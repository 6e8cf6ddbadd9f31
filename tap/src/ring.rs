//! The kernel-config rings: where in L1 the kernels and arguments of the programs that were launched last lie.
//!
//! tt-metal keeps one for each sub-device of a command queue. Shown is that of Tensix cores, the first of its buffers.

use std::collections::VecDeque;

use tt_shm_os::ForkMutex;

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
    /// The sum of these bytes.
    used: u64,
    /// The mesh that it was last used for.
    mesh: Option<Device>,
    told: Option<(u64, u64)>,
}

type Rings = Addresses<metal::Ring, Ring>;

static RINGS: PerProcess<ForkMutex<Rings>> = PerProcess::new();

fn with_rings<R: Default>(work: impl FnOnce(&mut Rings) -> R) -> R {
    RINGS.lock().map(|mut rings| work(&mut rings)).unwrap_or_default()
}

/// Does something with a ring that is known.
fn with<R: Default>(of: metal::Ring, work: impl FnOnce(&mut Ring) -> R) -> R {
    with_rings(|rings| rings.get_mut(&of).map(work).unwrap_or_default())
}

/// A ring was made.
pub(crate) fn made(of: metal::Ring) {
    with_rings(|rings| _ = rings.insert(of, Ring::default()));
}

/// A buffer of a ring was told; the first is that of Tensix cores.
pub(crate) fn buffer(of: metal::Ring, bytes: u32) {
    with_rings(|rings| {
        let ring = rings.entry(of).or_default();
        if ring.total == 0 {
            ring.total = u64::from(bytes);
        }
    });
}

/// Room is reserved for a program, by several calls of which the last counts. Nobody else looks at it before it is taken,
/// on the same thread.
pub(crate) fn reserved(of: metal::Ring, bytes: u32) {
    doing::ring_reserved(of, bytes);
}

/// The room is taken, until the count reaches this.
pub(crate) fn taken(of: metal::Ring, until: u32) {
    let (bytes, launch) = doing::ring_taken(of);
    with(of, |ring| {
        ring.mesh = launch.map(|launch| launch.mesh).or(ring.mesh);
        if bytes > 0 {
            ring.push(u64::from(bytes), until);
        }
    });
}

/// Everything up to a count is free again.
pub(crate) fn freed(of: metal::Ring, count: u32) {
    with(of, |ring| {
        while let Some((bytes, _)) = ring.entries.pop_front_if(|(_, until)| count >= *until) {
            ring.used -= bytes;
        }
    });
}

/// All of it counts as taken, until the count reaches this.
pub(crate) fn filled(of: metal::Ring, until: u32) {
    with(of, |ring| {
        ring.entries.clear();
        ring.used = 0;
        ring.push(ring.total, until);
    });
}

impl Ring {
    fn push(&mut self, bytes: u64, until: u32) {
        self.entries.push_back((bytes, until));
        self.used += bytes;
    }
}

/// Reports the ring that a launch on this mesh used.
pub(crate) fn report(accounts: &Accounts, mesh: Device) {
    let news = with_rings(|rings| {
        let ring = rings.values_mut().find(|ring| ring.mesh == Some(mesh))?;
        let (used, programs) = (ring.used, ring.entries.len() as u64);
        (ring.told.replace((used, programs)) != Some((used, programs)))
            .then_some((ring.total, used, programs))
    });
    if let Some((total, used, programs)) = news {
        accounts.ring(total, used, programs);
    }
}
