//! A `WipePage` is zero in a forked child.
//!
//! Alone in its binary: a child has copies of all descriptors and mappings of its process, so that locks of
//! tests beside it would sometimes outlive their owners.

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use tt_shm_os::WipePage;

#[test]
fn a_forked_child_finds_zeros() {
    let page = WipePage::new().unwrap();
    let words = page.words();
    assert!(words.len() >= 1024);
    let (first, last) = (&words[0], &words[words.len() - 1]);
    first.store(1, Relaxed);
    last.store(u32::MAX, Relaxed);

    // SAFETY: the child only loads and stores atomics and calls _exit, which are
    // async-signal-safe, as a child of a threaded process must be.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let wiped = first.load(Relaxed) == 0 && last.load(Relaxed) == 0;
        first.store(2, Relaxed); // private: the parent must not see it
        // SAFETY: ends this child; runs no destructors and no exit handlers.
        unsafe { libc::_exit(if wiped { 0 } else { 1 }) };
    }
    assert!(child > 0, "fork: {}", io::Error::last_os_error());

    let mut status = -1;
    // SAFETY: waits for the child made above; `status` is valid for the call.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0), "child saw old content");
    assert_eq!((first.load(Relaxed), last.load(Relaxed)), (1, u32::MAX));
}
