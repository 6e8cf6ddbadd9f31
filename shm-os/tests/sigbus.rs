//! How the guard handles every kind of SIGBUS. Each role is a process of its own, which may be killed by it.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use rustix::process::{Signal, getpid, kill_process};
use tt_shm_os::{ReadMap, WriteMap, guard_truncation};

const ROLE: &str = "TT_SHM_TEST_ROLE";

/// Runs this program again as the given role.
fn play(role: &str) -> ExitStatus {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "in_a_role", "--ignored", "--nocapture"]).env(ROLE, role);
    command.status().unwrap()
}

#[track_caller]
fn assert_survives(role: &str) {
    let status = play(role);
    assert!(status.success(), "{role}: {status}");
}

#[track_caller]
fn assert_dies_of_it(role: &str) {
    let status = play(role);
    assert_eq!(status.signal(), Some(libc::SIGBUS), "{role}: {status}");
}

#[test]
fn a_signal_that_was_sent_does_not_uninstall_the_guard() {
    assert_survives("sent");
    assert_survives("queued");
}

#[test]
fn a_signal_that_was_sent_does_what_it_did_before() {
    assert_survives("handler");
    assert_survives("ignored");
    assert_dies_of_it("default");
}

#[test]
fn a_fault_elsewhere_ends_the_process_as_before() {
    assert_dies_of_it("elsewhere");
    assert_dies_of_it("elsewhere-by-default");
}

#[test]
fn mappings_that_come_and_go_disturb_nothing() {
    assert_survives("churn");
}

#[test]
#[ignore = "played by the tests above, in processes of their own"]
fn in_a_role() {
    match std::env::var(ROLE).as_deref() {
        Ok("sent") => after(|| {
            guard_truncation().unwrap();
            send();
        }),
        // With the address of a guarded mapping as its value, which is not a fault address.
        Ok("queued") => after(|| {
            guard_truncation().unwrap();
            let map = ReadMap::open(file(4096), 4096).unwrap();
            queue(map.words().as_ptr().addr());
            assert!(!map.is_lost());
        }),
        Ok("handler") => {
            after(|| {
                set_action(count as *const () as usize);
                guard_truncation().unwrap();
                guard_truncation().unwrap();
                send();
                until(|| COUNT.load(Relaxed) == 1);
            });
            assert_eq!(COUNT.load(Relaxed), 1, "a file cut short is nobody else's business");
        }
        Ok("ignored") => after(|| {
            set_action(libc::SIG_IGN);
            guard_truncation().unwrap();
            send();
        }),
        Ok("default") => {
            set_action(libc::SIG_DFL);
            guard_truncation().unwrap();
            send();
        }
        Ok("elsewhere") => {
            guard_truncation().unwrap();
            fault_elsewhere();
        }
        Ok("elsewhere-by-default") => {
            set_action(libc::SIG_DFL);
            guard_truncation().unwrap();
            fault_elsewhere();
        }
        Ok("churn") => churn(),
        role => panic!("no such role: {role:?}"),
    }
}

static COUNT: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_signal: i32) {
    COUNT.fetch_add(1, Relaxed);
}

fn set_action(action: usize) {
    // SAFETY: the default action, to ignore it, or a handler that only adds to an atomic.
    let before = unsafe { libc::signal(libc::SIGBUS, action) };
    assert_ne!(before, libc::SIG_ERR);
}

/// Sends SIGBUS to this process, as `kill -BUS` does, and waits until it has been handled.
fn send() {
    kill_process(getpid(), Signal::BUS).unwrap();
    settle();
}

/// The same with a value, in the place where a fault has its address.
fn queue(address: usize) {
    let value = libc::sigval { sival_ptr: std::ptr::without_provenance_mut(address) };
    // SAFETY: sends a signal to this process, which handles it.
    assert_eq!(unsafe { libc::sigqueue(getpid().as_raw_nonzero().get(), libc::SIGBUS, value) }, 0);
    settle();
}

/// A signal for the process is pending until some thread has taken it.
fn settle() {
    let pending = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("ShdPnd:")).unwrap();
        u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap() & 1 << (libc::SIGBUS - 1)
            != 0
    };
    until(|| !pending());
    // Another thread may be about to run the handler. If it does so later, the test shows less, but nothing
    // wrong.
    std::thread::sleep(std::time::Duration::from_millis(20));
}

fn until(condition: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !condition() {
        assert!(start.elapsed().as_secs() < 20, "waited in vain");
        std::thread::yield_now();
    }
}

/// An unnamed file in /dev/shm, filled with sevens.
fn file(len: usize) -> File {
    let mut file = tempfile::tempfile_in(tt_shm_os::SHM_DIR).unwrap();
    file.write_all(&vec![7; len]).unwrap();
    file
}

/// Whether a truncation is survived after something happened.
fn after(happens: impl FnOnce()) {
    happens();
    let cut = file(16384);
    let map = ReadMap::open(&cut, 16384).unwrap();
    cut.set_len(4096).unwrap();
    assert_eq!(map.words()[2047].load(Relaxed), 0);
    assert!(map.is_lost());
}

/// Touches a page beyond the end of a file that is not guarded: the writer's own.
fn fault_elsewhere() {
    let own = file(8192);
    let map = WriteMap::new(&own, 8192).unwrap();
    own.set_len(0).unwrap();
    map.words()[0].store(1, Relaxed);
    panic!("the store should have been the end");
}

/// Files of different lengths are mapped and unmapped while others are truncated and read.
fn churn() {
    guard_truncation().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let stop = &stop;
            scope.spawn(move || {
                let files = [4096, 1 << 20].map(|len| (file(len), len));
                while !stop.load(Relaxed) {
                    for (file, len) in &files {
                        let map = ReadMap::open(file, *len).unwrap();
                        assert_eq!(map.words()[0].load(Relaxed), u64::from_ne_bytes([7; 8]));
                        assert!(!map.is_lost());
                    }
                }
            });
        }
        for _ in 0..300 {
            after(|| ());
        }
        stop.store(true, Relaxed);
    });
}
