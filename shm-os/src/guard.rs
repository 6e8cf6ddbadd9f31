//! Survives the truncation of a file under a read-only mapping.
//!
//! Touching a mapped page beyond the end of its file raises SIGBUS, so any user could kill a monitor that
//! maps their files. With the guard installed, the handler puts zero pages over the whole mapping and marks
//! it as lost; the reader sees an empty file and checks [`ReadMap::is_lost`](crate::ReadMap::is_lost). Every
//! other SIGBUS goes to the handler that was installed before.
//!
//! A handler belongs to the program, not to a library: nothing is installed unless the program asks.

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};

use rustix::mm::{MapFlags, ProtFlags};

/// The number of mappings that are guarded at a time. More can be mapped, but are not guarded.
const MAX_GUARDED: usize = 4096;
/// The unit of addresses and lengths in the list: the smallest page size of Linux.
const PAGE_SHIFT: u32 = 12;
/// The number of bits for the length: mappings of up to 4 GiB are guarded.
const LEN_BITS: u32 = 20;

/// A guarded mapping in one word, so that the handler sees start and length of the same one, whatever other
/// threads map and unmap meanwhile. 0 is a free entry. The start has 44 bits, for addresses of 56 bits, which
/// is all there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range(u64);

impl Range {
    /// `None` if it is empty or too long.
    fn new(start: usize, len: usize) -> Option<Range> {
        let last_page = (len.checked_sub(1)? >> PAGE_SHIFT) as u64;
        let fits = last_page < 1 << LEN_BITS;
        fits.then_some(Range((start as u64 >> PAGE_SHIFT) << LEN_BITS | last_page))
    }

    fn start(self) -> usize {
        ((self.0 >> LEN_BITS) << PAGE_SHIFT) as usize
    }

    fn len(self) -> usize {
        (((self.0 & ((1 << LEN_BITS) - 1)) + 1) << PAGE_SHIFT) as usize
    }

    fn contains(self, address: usize) -> bool {
        self.0 != 0 && address.wrapping_sub(self.start()) < self.len()
    }
}

struct Place {
    /// A [`Range`].
    range: AtomicU64,
    lost: AtomicBool,
}

static PLACES: [Place; MAX_GUARDED] =
    [const { Place { range: AtomicU64::new(0), lost: AtomicBool::new(false) } }; MAX_GUARDED];

/// A mapping's entry in the list; freed when dropped, which must happen before the mapping is unmapped.
#[derive(Debug)]
pub(crate) struct Guarded(Option<usize>);

impl Guarded {
    /// Enters a mapping.
    pub(crate) fn new(start: *const u8, len: usize) -> Guarded {
        let Some(range) = Range::new(start.expose_provenance(), len) else { return Guarded(None) };
        // Acquire: pairs with the release store in drop(), so that `lost` is of this mapping alone.
        let take = |place: &Place| {
            place.range.compare_exchange(0, range.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        Guarded(PLACES.iter().position(take))
    }

    /// Whether the handler put zero pages over it.
    pub(crate) fn is_lost(&self) -> bool {
        self.0.is_some_and(|place| PLACES[place].lost.load(Ordering::Relaxed))
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(place) = self.0.map(|place| &PLACES[place]) {
            place.lost.store(false, Ordering::Relaxed);
            // Release: pairs with the acquire exchange in new().
            place.range.store(0, Ordering::Release);
        }
    }
}

/// The action of SIGBUS before the guard was installed: a handler, SIG_DFL or SIG_IGN, and its flags.
static PREVIOUS_HANDLER: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static PREVIOUS_FLAGS: AtomicI32 = AtomicI32::new(0);

/// Installs the handler for this process. To be called by a program before it maps foreign files; further
/// calls change nothing.
pub fn guard_truncation() -> io::Result<()> {
    let mut previous = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a null action only asks; the answer has room.
    if unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), previous.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so it is filled in.
    let previous = unsafe { previous.assume_init() };
    if previous.sa_sigaction == on_sigbus as *const () as usize {
        return Ok(());
    }
    // Stored before our handler can run, which reads them.
    PREVIOUS_FLAGS.store(previous.sa_flags, Ordering::Relaxed);
    PREVIOUS_HANDLER.store(previous.sa_sigaction, Ordering::Release);
    install(on_sigbus as *const () as usize)
}

/// Sets the action of SIGBUS. Async-signal-safe.
fn install(handler: usize) -> io::Result<()> {
    // SAFETY: all zeros is a valid sigaction: no flags, an empty mask, the default action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    // On the alternate stack if there is one: the previous handler may be the one that reports a stack
    // overflow.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // SAFETY: `action` is complete, and the old one is not asked for.
    match unsafe { libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes only loads, stores and system calls, which is all that a signal handler may do.
extern "C" fn on_sigbus(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo, which nothing changes meanwhile.
    let about = unsafe { &*info };
    // SAFETY: every siginfo has the word, whatever its sender put there.
    let (code, address) = (about.si_code, unsafe { about.si_addr() }.addr());
    // Only then is the address that of an access; in a signal that somebody sent it is chosen by the sender.
    if code == libc::BUS_ADRERR && cover(address) {
        return;
    }
    let previous = PREVIOUS_HANDLER.load(Ordering::Acquire);
    let sent = code <= 0;
    match previous {
        libc::SIG_IGN if sent => {}
        // The kernel does not ignore a fault. The signal ends the process when the instruction is run again,
        // or when a signal that was sent is raised again.
        libc::SIG_DFL | libc::SIG_IGN => {
            let _ = install(libc::SIG_DFL);
            if sent {
                // SAFETY: raise only sends a signal, which is blocked until the handler returns.
                unsafe { libc::raise(signal) };
            }
        }
        handler => {
            chain(handler, signal, info, context);
            if sent {
                // Rust's own handler assumes a crash and sets the default action. No instruction is run again
                // here, so the guard stays.
                let _ = install(on_sigbus as *const () as usize);
            }
        }
    }
}

/// Calls the handler that was installed before.
fn chain(handler: usize, signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    type WithInfo = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
    if PREVIOUS_FLAGS.load(Ordering::Relaxed) & libc::SA_SIGINFO != 0 {
        // SAFETY: the program installed this address as a handler with SA_SIGINFO, so it is such a function.
        let handler: WithInfo = unsafe { std::mem::transmute(handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: the program installed this address as a plain handler.
        let handler: extern "C" fn(i32) = unsafe { std::mem::transmute(handler) };
        handler(signal);
    }
}

/// Puts zeros over the guarded mapping that contains the address; returns `false` if there is none.
fn cover(address: usize) -> bool {
    // Acquire: pairs with the exchange in Guarded::new().
    let found = PLACES.iter().find_map(|place| {
        Some((place, Range(place.range.load(Ordering::Acquire)))).filter(|(_, range)| range.contains(address))
    });
    found.is_some_and(|(place, range)| cover_with_zeros(place, range))
}

fn cover_with_zeros(place: &Place, range: Range) -> bool {
    let start = std::ptr::with_exposed_provenance_mut(range.start());
    let flags = MapFlags::PRIVATE | MapFlags::FIXED;
    // SAFETY: the range is a read-only mapping of ours, up to the end of its last page, and it cannot be unmapped
    // meanwhile: the thread that faulted is reading through it, so it holds a borrow of it. Its words may change to
    // zero like they may change to anything else.
    let covered = unsafe { rustix::mm::mmap_anonymous(start, range.len(), ProtFlags::READ, flags) };
    if covered.is_ok() {
        place.lost.store(true, Ordering::Relaxed);
    }
    covered.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_one_word() {
        let page = 1 << PAGE_SHIFT;
        for (start, len) in [(page, 1), (7 * page, page), ((1 << 56) - page, 4 << 30), (page, page + 1)] {
            let range = Range::new(start, len).unwrap();
            assert_eq!((range.start(), range.len()), (start, len.next_multiple_of(page)));
            assert!(range.contains(start) && range.contains(start + len - 1));
            assert!(!range.contains(start - 1) && !range.contains(start + range.len()));
        }
        assert_eq!((Range::new(page, 0), Range::new(page, (4 << 30) + 1)), (None, None));
        assert!(!Range(0).contains(0), "a free place has no address");
    }
}
