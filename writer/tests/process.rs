//! The one tracker of a process: opened by its environment, so each case is a process of its own, and kept across a fork,
//! for which a process should have one thread. That is why this is not a part of the suite.

use rustix::process::{Pid, Resource, Rlimit, WaitOptions, getrlimit, setrlimit, waitpid};
use std::path::PathBuf;
use std::process::Command;
use tt_shm_writer::{
    Alloc, BufferType, DeviceInfo, MarkerPhase, NameId, Record, RecordError, Tracker, codes,
};

const CASE: &str = "TT_SHM_TEST_CASE";

type Case = (&'static str, fn());

/// Each runs with tracking enabled, except the last.
const CASES: [Case; 6] = [
    ("one_for_all_threads", one_for_all_threads),
    ("a_child_has_it_with_a_segment_of_its_own", a_child_has_it_with_a_segment_of_its_own),
    ("a_child_forked_while_it_is_opened", a_child_forked_while_it_is_opened),
    ("an_error_is_not_kept", an_error_is_not_kept),
    ("closed_is_closed", closed_is_closed),
    ("disabled", disabled),
];

fn main() {
    if let Ok(name) = std::env::var(CASE) {
        let (_, case) = CASES.into_iter().find(|(case, _)| *case == name).unwrap();
        return case();
    }
    let namespace = format!("w-process-{}", std::process::id());
    let mut failed = Vec::new();
    for (case, _) in CASES {
        // The moment at which it is forked is another one each time.
        let times = if case == "a_child_forked_while_it_is_opened" { 30 } else { 1 };
        for _ in 0..times {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.env(CASE, case).env("TT_SHM_NAMESPACE", &namespace).env_remove("TT_SHM_RUN");
            command.env("TT_ALLOC_TRACKING_ENABLED", if case == "disabled" { "0" } else { "1" });
            if !command.status().unwrap().success() {
                failed.push(case);
            }
        }
        println!("test {case}");
    }
    let left = segments(&namespace);
    left.iter().for_each(|path| std::fs::remove_file(path).unwrap());
    assert!(failed.is_empty() && left.is_empty(), "failed: {failed:?}, left: {left:?}");
}

/// The segments of a namespace.
fn segments(namespace: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir("/dev/shm").unwrap().flatten().map(|file| file.path());
    files.filter(|path| path.to_str().unwrap_or("").contains(&format!(".{namespace}."))).collect()
}

fn own_segments() -> Vec<PathBuf> {
    segments(&std::env::var("TT_SHM_NAMESPACE").unwrap())
}

fn one_for_all_threads() {
    let open = || Tracker::for_process().unwrap().segment_path().unwrap();
    let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(open)).collect();
    let mut paths: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    paths.push(open());
    paths.dedup();
    assert_eq!(paths, own_segments());
    // Any other way makes a second one.
    let other = Tracker::from_env().unwrap();
    assert_eq!(own_segments().len(), 2);
    drop(other);
    assert_eq!(own_segments(), paths);
    assert!(Tracker::for_process().unwrap().into_exclusive().is_err());
    assert_eq!(own_segments(), paths);
}

/// Runs `child` in a forked process, which must not panic, and waits for it.
fn in_child(child: impl FnOnce()) {
    // SAFETY: the child runs only what a child of a process with several threads may: its allocator is the C library's,
    // which handles forks, and so does the writer's lock.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        // SAFETY: only sets a timer, whose signal ends a child that hangs.
        unsafe { libc::alarm(60) };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
        std::process::exit(i32::from(result.is_err()));
    }
    let (_, status) = waitpid(Pid::from_raw(pid), WaitOptions::empty()).unwrap().unwrap();
    assert_eq!(status.exit_status(), Some(0), "{status:?}");
}

fn a_child_has_it_with_a_segment_of_its_own() {
    let tracker = Tracker::for_process().unwrap();
    let device = tracker.register_device(&DeviceInfo { chip_id: 1, ..Default::default() }).unwrap();
    tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 100)).unwrap();
    let parents = tracker.segment_path();
    in_child(|| {
        // It has no segment, and one that does not wait makes none.
        let inherited = Tracker::for_process().unwrap();
        let busy = inherited.without_waiting().marker(MarkerPhase::Instant, 1, NameId::NONE);
        assert_eq!((busy, own_segments().len()), (Err(RecordError::Busy), 1));
        inherited.alloc(device, Alloc::new(BufferType::Dram, 1, 7)).unwrap();
        assert_eq!(inherited.without_waiting().counters(device).unwrap().dram_used(), 7);
        assert_eq!(tracker.segment_path(), inherited.segment_path());
        assert_ne!(tracker.segment_path(), parents);
    });
    assert_eq!(tracker.counters(device).unwrap().dram_used(), 100);
    assert_eq!(Some(own_segments()), parents.map(|path| vec![path]));
}

fn a_child_forked_while_it_is_opened() {
    let opens = std::thread::spawn(|| Tracker::for_process().unwrap().segment_path());
    in_child(|| {
        let tracker = Tracker::for_process().unwrap();
        let device = tracker.register_device(&DeviceInfo { chip_id: 1, ..Default::default() }).unwrap();
        tracker.alloc(device, Alloc::new(BufferType::Dram, 1, 7)).unwrap();
        assert_eq!(tracker.counters(device).unwrap().dram_used(), 7);
    });
    assert_eq!(opens.join().unwrap(), Tracker::for_process().unwrap().segment_path());
}

fn an_error_is_not_kept() {
    let limit = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: Some(4096), ..limit }).unwrap();
    for _ in 0..2 {
        let error = Tracker::for_process().unwrap_err();
        assert_eq!((error.code(), error.errno()), (codes::OPEN_LIMIT, None));
    }
    setrlimit(Resource::Fsize, limit).unwrap();
    assert!(Tracker::for_process().unwrap().is_enabled());
}

fn closed_is_closed() {
    Tracker::for_process().unwrap().close();
    let tracker = Tracker::for_process().unwrap();
    assert_eq!((tracker.segment_path(), own_segments()), (None, vec![]));
    in_child(|| assert_eq!(tracker.without_waiting().marker(MarkerPhase::Instant, 1, NameId::NONE), Ok(())));
}

fn disabled() {
    assert!(!Tracker::for_process().unwrap().is_enabled());
    assert_eq!(own_segments(), Vec::<PathBuf>::new());
}
