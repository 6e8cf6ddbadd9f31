//! The kernel-config rings: where in L1 the kernels and arguments of the programs that were launched last lie.
//!
//! tt-metal keeps one for each sub-device of a command queue. Shown is that of Tensix cores, the first of its buffers.

use std::collections::VecDeque;

use tt_shm_os::ForkMutex;

use crate::accounts::Accounts;
use crate::addresses::Addresses;
use crate::doing::{self, Taking};
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

/// What a ring is like now, if that is not what was told last.
pub(crate) struct News {
    total: u64,
    used: u64,
    programs: u64,
}

/// The room is taken, until the count reaches this.
pub(crate) fn taken(of: metal::Ring, until: u32) {
    let Taking { bytes, freed, launch } = doing::ring_taken(of);
    let news = with_rings(|rings| {
        if let Some((ring, count)) = freed {
            rings.get_mut(&ring).into_iter().for_each(|ring| ring.free(count));
        }
        let ring = rings.get_mut(&of)?;
        ring.mesh = launch.map(|launch| launch.mesh).or(ring.mesh);
        if bytes > 0 {
            ring.push(u64::from(bytes), until);
        }
        ring.news().zip(ring.mesh)
    });
    if let Some((news, mesh)) = news {
        doing::ring_changed(mesh, news);
    }
}

/// Everything up to a count is free again.
pub(crate) fn freed(of: metal::Ring, count: u32) {
    if let Some((ring, count)) = doing::ring_freed(of, count) {
        free_now(ring, count);
    }
}

/// Frees what was left to be done later.
pub(crate) fn free_now(of: metal::Ring, count: u32) {
    with(of, |ring| ring.free(count));
}

/// All of it counts as taken, until the count reaches this.
pub(crate) fn filled(of: metal::Ring, until: u32) {
    if let Some((ring, count)) = doing::ring_taken(of).freed {
        free_now(ring, count);
    }
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

    fn free(&mut self, count: u32) {
        while let Some((bytes, _)) = self.entries.pop_front_if(|(_, until)| count >= *until) {
            self.used -= bytes;
        }
    }

    fn news(&mut self) -> Option<News> {
        let (used, programs) = (self.used, self.entries.len() as u64);
        let is_new = self.told.replace((used, programs)) != Some((used, programs));
        is_new.then_some(News { total: self.total, used, programs })
    }
}

impl News {
    /// Reports it on the chips of the mesh.
    pub(crate) fn report(self, accounts: &Accounts) {
        accounts.ring(self.total, self.used, self.programs);
    }
}
