//! What a thread is in the middle of: tt-metal's functions tell what they do in pieces, one call inside another.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};

use tt_shm_writer::NameId;

use crate::accounts::Accounts;
use crate::metal::Device;
use crate::metal::programs::{Ring, Workload};
use crate::programs::{Region, Regions};

/// What a thread is in the middle of.
#[derive(Default)]
struct Doing {
    /// The regions of L1 that are being given to a program.
    regions: Option<(Regions, Vec<Region>)>,
    /// A workload is being launched: which, and on which mesh, once that is known.
    launch: Option<Option<Launch>>,
    /// Whether an operation was seen to begin.
    in_operation: bool,
    /// The buffers that were allocated since: its launch will tell what they are for.
    nameless: Vec<(&'static Accounts, u64)>,
    /// The name of the operation that is about to be launched.
    operation: NameId,
    /// The binaries that were read since the last kernel was complete.
    binaries: u32,
    /// The bytes of a kernel ring that were reserved last.
    reserved: Option<(Ring, u32)>,
}

/// A workload on its way.
#[derive(Clone, Copy)]
pub(crate) struct Launch {
    pub(crate) workload: Workload,
    pub(crate) mesh: Device,
}

/// No operation makes more than these.
const MOST_NAMELESS: usize = 64;

thread_local! {
    static DOING: RefCell<Doing> = const { RefCell::new(Doing {
        regions: None,
        launch: None,
        in_operation: false,
        nameless: Vec::new(),
        operation: NameId::NONE,
        binaries: 0,
        reserved: None,
    }) };
}

/// Nothing, if the thread is at its end, or in here already.
fn with<R: Default>(work: impl FnOnce(&mut Doing) -> R) -> R {
    let done = DOING.try_with(|doing| doing.try_borrow_mut().map(|mut doing| work(&mut doing)));
    done.ok().and_then(Result::ok).unwrap_or_default()
}

/// From here on regions of L1 are given to a program.
pub(crate) fn regions_begin(kind: Regions) {
    with(|doing| doing.regions = Some((kind, Vec::new())));
}

/// A region was given.
pub(crate) fn region(region: Region) {
    with(|doing| {
        if let Some((_, regions)) = &mut doing.regions {
            regions.push(region);
        }
    });
}

/// What kind of regions are being given.
pub(crate) fn regions_kind() -> Option<Regions> {
    with(|doing| doing.regions.as_ref().map(|(kind, _)| *kind))
}

/// All regions of that kind are given.
pub(crate) fn regions_end() -> Vec<Region> {
    with(|doing| doing.regions.take().map(|(_, regions)| regions).unwrap_or_default())
}

/// A workload is about to be launched.
pub(crate) fn launch_begin() {
    with(|doing| doing.launch = Some(None));
}

/// Which workload it is, and on which mesh.
pub(crate) fn launch_is(workload: Workload, mesh: Device) {
    with(|doing| {
        if let Some(launch) = &mut doing.launch {
            *launch = Some(Launch { workload, mesh });
        }
    });
}

/// Bytes of a kernel ring are reserved for what comes next.
pub(crate) fn ring_reserved(ring: Ring, bytes: u32) {
    with(|doing| doing.reserved = Some((ring, bytes)));
}

/// What was reserved last of this ring, and the workload that is being launched.
pub(crate) fn ring_taken(ring: Ring) -> (u32, Option<Launch>) {
    with(|doing| {
        let bytes = doing.reserved.filter(|(of, _)| *of == ring).map_or(0, |(_, bytes)| bytes);
        (bytes, doing.launch.flatten())
    })
}

/// The launch has ended: what it was, and the name of its operation.
pub(crate) fn launch_end() -> (Option<Launch>, NameId) {
    with(|doing| {
        doing.in_operation = false;
        doing.nameless.clear();
        (doing.launch.take().flatten(), std::mem::take(&mut doing.operation))
    })
}

/// Whether an operation ever began: a host without ttnn need not look up what its threads do.
static ANY_OPERATION: AtomicBool = AtomicBool::new(false);

/// A buffer was allocated.
#[inline]
pub(crate) fn allocated(accounts: &'static Accounts, buffer: u64) {
    // Relaxed: a thread knows of the operations that it began itself.
    if !ANY_OPERATION.load(Ordering::Relaxed) {
        return;
    }
    with(|doing| {
        if doing.in_operation && doing.nameless.len() < MOST_NAMELESS {
            doing.nameless.push((accounts, buffer));
        }
    });
}

/// An operation begins: what was allocated before is not its own.
pub(crate) fn operation_begins() {
    if !ANY_OPERATION.load(Ordering::Relaxed) {
        ANY_OPERATION.store(true, Ordering::Relaxed);
    }
    with(|doing| {
        doing.in_operation = true;
        doing.nameless.clear();
    });
}

/// An operation is about to be launched: `each` gets the buffers that were allocated for it.
pub(crate) fn operation_is(name: NameId, mut each: impl FnMut(&'static Accounts, u64)) {
    with(|doing| {
        doing.operation = name;
        doing.in_operation = false;
        doing.nameless.drain(..).for_each(|(accounts, buffer)| each(accounts, buffer));
    });
}

/// A binary of a kernel was read.
pub(crate) fn binary_read() {
    with(|doing| doing.binaries += 1);
}

/// A kernel is complete: the number of its binaries.
pub(crate) fn binaries() -> u32 {
    with(|doing| std::mem::take(&mut doing.binaries))
}

/// Regions that were given in vain are forgotten: the function ended with an exception.
pub(crate) fn regions_forget() {
    with(|doing| doing.regions = None);
}
