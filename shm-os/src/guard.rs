//! Survives a file that is cut short under a read-only mapping.
//!
//! Touching a mapped page behind the end of its file raises SIGBUS, so any user could end a monitor that
//! maps his files. With the guard installed, the handler puts zero pages over the whole mapping and marks
//! it as lost; whoever reads it sees an empty file and asks [`ReadMap::is_lost`](crate::ReadMap::is_lost).
//!
//! A handler belongs to the program, not to a library: nothing is installed unless the program asks.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::mm::{MapFlags, ProtFlags};

/// Mappings that are guarded at a time. One beyond is mapped all the same, but not guarded.
const MAX_GUARDED: usize = 4096;

struct Range {
    /// Address of the first byte; 0 for a free place.
    start: AtomicUsize,
    len: AtomicUsize,
    lost: AtomicBool,
}

static RANGES: [Range; MAX_GUARDED] =
    [const { Range { start: AtomicUsize::new(0), len: AtomicUsize::new(0), lost: AtomicBool::new(false) } };
        MAX_GUARDED];

/// A mapping's place in the list; given back when dropped, which must be before the mapping goes.
#[derive(Debug)]
pub(crate) struct Guarded(Option<usize>);

impl Guarded {
    /// Enters a mapping.
    pub(crate) fn new(start: *const u8, len: usize) -> Guarded {
        // Marked as taken by a length before it has a start: the handler looks for starts.
        let taken = |range: &Range| {
            len > 0 && range.len.compare_exchange(0, len, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let place = RANGES.iter().position(taken);
        if let Some(range) = place.map(|place| &RANGES[place]) {
            range.lost.store(false, Ordering::Relaxed);
            // Release: pairs with the acquire load in find(), so that it sees the length.
            range.start.store(start.expose_provenance(), Ordering::Release);
        }
        Guarded(place)
    }

    /// Whether the handler had to put zero pages over it.
    pub(crate) fn is_lost(&self) -> bool {
        self.0.is_some_and(|place| RANGES[place].lost.load(Ordering::Relaxed))
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(range) = self.0.map(|place| &RANGES[place]) {
            range.start.store(0, Ordering::Relaxed);
            // Release: pairs with the acquire exchange in new(); the place is free once its start is gone.
            range.len.store(0, Ordering::Release);
        }
    }
}

/// Installs the handler for this process. To be called once, by a program, before it maps foreign files.
pub fn guard_truncation() -> io::Result<()> {
    // SAFETY: all zeros is a valid sigaction: no flags, an empty mask, the default action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_sigbus as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: `action` is complete, and the old one is not asked for.
    match unsafe { libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Only loads, stores and one system call: all that a signal handler may do.
extern "C" fn on_sigbus(_signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo.
    let info = unsafe { &*info };
    // SAFETY: SIGBUS carries an address.
    let address = unsafe { info.si_addr() }.addr();
    if !find(address).is_some_and(cover_with_zeros) {
        // Not ours: let it do what it would have done, when the instruction is run again.
        // SAFETY: setting the default action touches no memory of ours.
        unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
    }
}

fn find(address: usize) -> Option<&'static Range> {
    RANGES.iter().find(|range| {
        // Acquire: pairs with the release store in Guarded::new().
        let start = range.start.load(Ordering::Acquire);
        start != 0 && address.wrapping_sub(start) < range.len.load(Ordering::Relaxed)
    })
}

fn cover_with_zeros(range: &Range) -> bool {
    let start = std::ptr::with_exposed_provenance_mut(range.start.load(Ordering::Relaxed));
    let flags = MapFlags::PRIVATE | MapFlags::FIXED;
    // SAFETY: the range is a read-only mapping of ours, and it cannot be unmapped meanwhile: the thread that
    // faulted is reading through it, so it holds a borrow of it. Its words may change to zero like they may
    // change to anything else.
    let covered = unsafe {
        rustix::mm::mmap_anonymous(start, range.len.load(Ordering::Relaxed), ProtFlags::READ, flags)
    };
    range.lost.store(covered.is_ok(), Ordering::Relaxed);
    covered.is_ok()
}
