//! A forked child finds a `ForkMutex` without a value, whoever had it.
//!
//! Alone in its binary: a child has copies of all descriptors and mappings of its process, so that locks of
//! tests beside it would sometimes outlive their owners.

use std::io;
use std::sync::mpsc::channel;

use tt_shm_os::ForkMutex;

/// Forks, and expects the child to find that this holds.
fn in_a_child(holds: impl FnOnce() -> bool) {
    // SAFETY: the child uses the mutex, allocates memory, which the C library allows after a fork, and calls _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let status = if holds() { 0 } else { 1 };
        // SAFETY: ends this child; runs no destructors and no exit handlers.
        unsafe { libc::_exit(status) };
    }
    assert!(child > 0, "fork: {}", io::Error::last_os_error());
    let mut status = -1;
    // SAFETY: waits for the child made above; `status` is valid for the call.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0), "the child found something else");
}

fn get(mutex: &ForkMutex<u32>) -> Option<u32> {
    mutex.with(|| Some(2), |value| *value)
}

#[test]
fn a_forked_child_makes_its_own_value_whoever_is_inside() {
    // Nobody has used it; this thread has the bias; another has it, and is inside.
    let mutex = ForkMutex::new(1).unwrap();
    in_a_child(|| get(&mutex) == Some(2) && get(&mutex) == Some(2));
    assert_eq!(get(&mutex), Some(1));
    in_a_child(|| get(&mutex) == Some(2) && get(&mutex) == Some(2));
    std::thread::scope(|threads| {
        let ((is_inside, inside), (let_go, go)) = (channel(), channel::<()>());
        let mutex = &mutex;
        threads.spawn(move || {
            mutex.with(
                || None,
                |_| {
                    is_inside.send(()).unwrap();
                    go.recv().unwrap();
                },
            )
        });
        inside.recv().unwrap();
        in_a_child(|| get(mutex) == Some(2) && get(mutex) == Some(2));
        in_a_child(|| mutex.with(|| None, |_| ()).is_none() && get(mutex).is_none());
        let_go.send(()).unwrap();
    });
    assert_eq!(get(&mutex), Some(1));
}

#[test]
fn what_has_ended_has_ended_in_a_child() {
    let mutex = ForkMutex::new(1).unwrap();
    mutex.end();
    in_a_child(|| get(&mutex).is_none() && mutex.has_ended());
}
