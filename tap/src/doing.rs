//! What a thread is in the middle of: tt-metal's functions tell what they do in pieces, one call inside another.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tt_shm_os::this_thread;
use tt_shm_writer::NameId;

use crate::accounts::Accounts;
use crate::calls;
use crate::metal::Device;
use crate::metal::programs::{Ring, Workload};
use crate::programs::{Region, Regions, RunsOn};
use crate::ring;

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
    /// What a launch has freed of a kernel ring, up to a count: done together with what it takes, under one lock.
    freed: Option<(Ring, u32)>,
    /// What the launch has changed in a kernel ring.
    news: Option<(Device, ring::News)>,
    /// The sub-devices that were determined in the launch, for the one look at its programs at its end.
    runs_on: Vec<RunsOn>,
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
        freed: None,
        news: None,
        runs_on: Vec::new(),
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

/// A workload is about to be launched. What is left of an earlier launch, which ended with an exception, is done at the
/// end of this one.
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

/// Everything up to a count was freed of a ring. Returns what has to be done now: nothing, as long as a launch goes on,
/// which is about to take something.
pub(crate) fn ring_freed(ring: Ring, count: u32) -> Option<(Ring, u32)> {
    with(|doing| {
        if doing.launch.is_none() {
            return Some((ring, count));
        }
        // A higher count of the same ring frees all that a lower one would have.
        doing.freed.replace((ring, count)).filter(|(of, before)| *of != ring || *before > count)
    })
}

/// What a thread is about to take of a ring.
#[derive(Clone, Copy, Default)]
pub(crate) struct Taking {
    /// What was reserved last of it.
    pub(crate) bytes: u32,
    /// What was freed before, perhaps of another ring.
    pub(crate) freed: Option<(Ring, u32)>,
    /// The workload that is being launched.
    pub(crate) launch: Option<Launch>,
}

/// Bytes of a ring are about to be taken.
pub(crate) fn ring_taken(ring: Ring) -> Taking {
    with(|doing| Taking {
        bytes: doing.reserved.filter(|(of, _)| *of == ring).map_or(0, |(_, bytes)| bytes),
        freed: doing.freed.take(),
        launch: doing.launch.flatten(),
    })
}

/// A launch has changed the ring of a mesh.
pub(crate) fn ring_changed(mesh: Device, news: ring::News) {
    with(|doing| doing.news = Some((mesh, news)));
}

/// The sub-devices of a program were determined. Returns what has to be looked at now: nothing, as long as a launch goes on.
pub(crate) fn runs_on(found: RunsOn) -> Option<RunsOn> {
    with(|doing| {
        if doing.launch.is_none() {
            return Some(found);
        }
        doing.runs_on.push(found);
        None
    })
}

/// A launch that has ended.
#[derive(Default)]
pub(crate) struct Launched {
    /// What was launched, if that was seen.
    pub(crate) launch: Option<Launch>,
    /// The name of its operation.
    pub(crate) operation: NameId,
    /// What it freed of a ring and did not take.
    pub(crate) freed: Option<(Ring, u32)>,
    /// What it changed in the ring of a mesh.
    pub(crate) news: Option<(Device, ring::News)>,
    /// The sub-devices that were determined meanwhile. To be given back by [`runs_on_done`].
    pub(crate) runs_on: Vec<RunsOn>,
}

/// The launch has ended.
pub(crate) fn launch_end() -> Launched {
    with(|doing| {
        doing.forget_operation();
        Launched {
            launch: doing.launch.take().flatten(),
            operation: std::mem::take(&mut doing.operation),
            freed: doing.freed.take(),
            news: doing.news.take(),
            runs_on: std::mem::take(&mut doing.runs_on),
        }
    })
}

/// Keeps the room of a list for the next launch.
pub(crate) fn runs_on_done(mut list: Vec<RunsOn>) {
    list.clear();
    with(|doing| doing.runs_on = list);
}

/// Whether an operation ever began: a host without ttnn need not look up what its threads do.
static ANY_OPERATION: AtomicBool = AtomicBool::new(false);

/// Threads in whose operation nothing was allocated yet, each in the place that its number says. An operation asks for each
/// of its inputs whether it is allocated, and only the first time tells something new. A thread that another has pushed
/// out of its place, or that has the number of one that ended, is told apart by what it is in the middle of.
static FRESH: [Fresh; calls::PLACES] = [const { Fresh(AtomicU64::new(0)) }; calls::PLACES];

/// On a cache line of its own.
#[repr(align(64))]
struct Fresh(AtomicU64);

impl Fresh {
    /// The place of this thread, and its number.
    #[inline]
    fn of_this_thread() -> (&'static AtomicU64, u64) {
        let thread = this_thread();
        (&FRESH[calls::place_of(thread)].0, thread)
    }
}

impl Doing {
    /// What is allocated from here on is not known to be an operation's.
    fn forget_operation(&mut self) {
        self.in_operation = false;
        self.nameless.clear();
        Doing::is_not_fresh();
    }

    fn is_not_fresh() {
        let (fresh, thread) = Fresh::of_this_thread();
        // Relaxed: each thread looks for its own number only, which nobody else stores.
        if fresh.load(Ordering::Relaxed) == thread {
            fresh.store(0, Ordering::Relaxed);
        }
    }
}

impl Drop for Doing {
    fn drop(&mut self) {
        // A later thread may have the same number.
        Doing::is_not_fresh();
    }
}

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
            Doing::is_not_fresh();
        }
    });
}

/// Whether this thread has begun an operation and allocated nothing since: then another beginning tells nothing new.
#[inline]
pub(crate) fn is_fresh() -> bool {
    let (fresh, thread) = Fresh::of_this_thread();
    fresh.load(Ordering::Relaxed) == thread
}

/// An operation begins: what was allocated before is not its own.
pub(crate) fn operation_begins() {
    if !ANY_OPERATION.load(Ordering::Relaxed) {
        ANY_OPERATION.store(true, Ordering::Relaxed);
    }
    with(|doing| {
        doing.in_operation = true;
        doing.nameless.clear();
        let (fresh, thread) = Fresh::of_this_thread();
        fresh.store(thread, Ordering::Relaxed);
    });
}

/// An operation is about to be launched: `each` gets the buffers that were allocated for it.
pub(crate) fn operation_is(name: NameId, mut each: impl FnMut(&'static Accounts, u64)) {
    with(|doing| {
        doing.operation = name;
        doing.nameless.drain(..).for_each(|(accounts, buffer)| each(accounts, buffer));
        doing.forget_operation();
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
