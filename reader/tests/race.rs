//! Threads of one process that report at the same time while another reads. For ThreadSanitizer, which
//! detects races on the writer's private memory (the lock, the index, the accounts). Without a harness, since
//! std and libtest are not instrumented and would be reported; `.ci/thread-sanitizer` runs it.

use std::sync::atomic::{AtomicUsize, Ordering};

use tt_shm_reader::{Namespace, Segment, segment_paths};
use tt_shm_writer::{Alloc, BufferType, CoreType, DeviceInfo, Kernel, KernelType, Record, Tracker};

const THREADS: u64 = 3;
const CALLS: u64 = 20_000;

fn main() {
    let namespace = format!("race-{}", std::process::id());
    let tracker = Tracker::builder().enabled(true).namespace(&namespace).open().expect("/dev/shm is there");
    let device =
        tracker.register_device(&DeviceInfo { chip_id: 1, ..Default::default() }).expect("a first device");
    let (done, tracker) = (AtomicUsize::new(0), &tracker);
    std::thread::scope(|scope| {
        // Kept until each has ended: when a handle is dropped earlier, std counts it down with a fence, which
        // the sanitizer does not know and reports.
        let mut handles = Vec::new();
        for thread in 0..THREADS {
            let done = &done;
            handles.push(scope.spawn(move || {
                for call in 0..CALLS {
                    let id = thread << 32 | call;
                    tracker.alloc(device, Alloc::new(BufferType::Dram, id, 64)).expect("a new id");
                    if call % 4 == 0 {
                        let kernel = Kernel::new(id, KernelType::Application, CoreType::Tensix, 64, 1);
                        tracker.kernel_load(device, kernel).expect("a new id");
                    }
                    if call % 2 == 1 {
                        tracker.free(device, id).expect("it is live");
                    }
                }
                done.fetch_add(1, Ordering::Release);
            }));
        }
        handles.push(scope.spawn(|| read(&namespace, &done)));
        handles.into_iter().for_each(|handle| handle.join().expect("no thread panics"));
    });
    println!("race: {THREADS} threads of {CALLS} calls beside a reader, all exact");
}

/// Reads all the time, and at the end what is there must be exact.
fn read(namespace: &str, done: &AtomicUsize) {
    let namespace = Namespace::new(namespace).expect("a valid name");
    let path = segment_paths(&namespace).expect("/dev/shm can be listed").remove(0);
    let segment = Segment::open(&path).expect("our own segment");
    let mut events = segment.follow();
    while done.load(Ordering::Acquire) < THREADS as usize {
        let _ = (segment.counters().is_ok(), segment.allocations().exact, events.by_ref().take(100).count());
    }
    let live = THREADS * CALLS / 2;
    let now = segment.counters().expect("nobody writes any more");
    assert_eq!(now.counters[0].dram_used(), live * 64);
    let list = segment.allocations();
    assert!(list.exact);
    assert_eq!(list.list.len() as u64, live + THREADS * CALLS / 4);
}
