//! Calls that never wait: from a signal handler that interrupts a call, beside other threads, and where there is nothing
//! to wait for.

use crate::common::{counters, device, observe, open, open_with};
use std::os::unix::thread::JoinHandleExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use tt_shm_reader::EventKind;
use tt_shm_writer::{Alloc, BufferType, MarkerPhase, NameId, Record, RecordError, Tracker};

/// What the handler reports to, and what became of it.
static TRACKER: OnceLock<Tracker> = OnceLock::new();
static RECORDED: AtomicU64 = AtomicU64::new(0);
static BUSY: AtomicU64 = AtomicU64::new(0);
/// Anything else, which would be wrong.
static OTHER: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_signal(_: libc::c_int) {
    let marker = |tracker: &Tracker| tracker.without_waiting().marker(MarkerPhase::Instant, 7, NameId::NONE);
    let count = match TRACKER.get().map(marker) {
        Some(Ok(())) => &RECORDED,
        Some(Err(RecordError::Busy)) => &BUSY,
        _ => &OTHER,
    };
    count.fetch_add(1, SeqCst);
}

fn install() {
    let handler: extern "C" fn(libc::c_int) = on_signal;
    // SAFETY: the handler does what a handler may: it reads and changes atomic integers, and makes a report that uses
    // neither heap nor locks.
    let before = unsafe { libc::signal(libc::SIGUSR2, handler as *const () as libc::sighandler_t) };
    assert_ne!(before, libc::SIG_ERR);
}

fn interrupt<T>(thread: &std::thread::JoinHandle<T>) {
    // SAFETY: the thread was not joined, so its number is valid.
    let sent = unsafe { libc::pthread_kill(thread.as_pthread_t(), libc::SIGUSR2) };
    assert_eq!(sent, 0);
}

/// Allocates and frees until told to stop; returns how many events that were. Between them it does something else, so that a
/// signal finds it there, too.
fn emit(tracker: &Tracker, device: tt_shm_writer::Device, id: u64, stop: &AtomicBool) -> u64 {
    let mut events = 0;
    while !stop.load(SeqCst) {
        tracker.alloc(device, Alloc::new(BufferType::Dram, id, 100)).unwrap();
        tracker.free(device, id).unwrap();
        events += 2;
        (0..20).for_each(|_| std::hint::spin_loop());
    }
    events
}

/// Both outcomes are waited for: that a handler records, and that it is refused because its thread was in a call. If it
/// waited for that call instead, this would never end.
#[test]
fn a_signal_handler_reports_or_is_told_that_its_thread_is_in_a_call() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let tracker = TRACKER.get_or_init(open);
    install();
    let device = device(tracker);
    let mut events = 0;
    // Alone, with the bias of the lock, and then with another thread that takes it away.
    for threads in 1..=2 {
        STOP.store(false, SeqCst);
        let before = [&RECORDED, &BUSY].map(|count| count.load(SeqCst));
        let threads: Vec<_> =
            (0..threads).map(|id| std::thread::spawn(move || emit(tracker, device, id, &STOP))).collect();
        while [&RECORDED, &BUSY].iter().zip(before).any(|(count, before)| count.load(SeqCst) < before + 200) {
            interrupt(&threads[0]);
            std::thread::yield_now();
        }
        STOP.store(true, SeqCst);
        events += threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>();
    }
    assert_eq!(OTHER.load(SeqCst), 0);
    // No signal is on its way: its thread has ended. All that was recorded is there, and nothing else.
    tracker.alloc(device, Alloc::new(BufferType::Dram, 9, 1)).unwrap();
    assert_eq!(counters(tracker, device).position, events + RECORDED.load(SeqCst) + 1);
    assert_eq!(counters(tracker, device).dram_used(), 1);
    // It would stay until the process ends: a static is not dropped.
    tracker.close();
}

#[test]
fn every_kind_of_call_can_be_made() {
    let tracker = open();
    let device = device(&tracker);
    let handle = tracker.without_waiting();
    let name = handle.intern("crash").unwrap();
    handle.alloc(device, Alloc::new(BufferType::L1, 1, 10).name(name)).unwrap();
    handle.marker(MarkerPhase::Begin, 1, name).unwrap();
    drop(handle.alloc_guard(device, Alloc::new(BufferType::L1, 2, 10)).unwrap());
    handle.partial().unwrap();
    assert_eq!(handle.free(device, 5).map_err(|error| error.code()), Err(1));
    assert_eq!(handle.counters(device).unwrap().l1_used(), 10);
    assert_eq!(handle.segment_path(), tracker.segment_path());
    assert!(handle.is_enabled() && format!("{handle:?}").contains("/dev/shm/"));
    let segment = observe(&tracker);
    assert!(segment.is_partial());
    assert_eq!(
        segment.follow_from_start().filter(|event| event.kind() == Some(EventKind::Marker)).count(),
        1
    );
}

/// The lock is the same: what one thread is about to do with the tracker makes the other busy, never wrong.
#[test]
fn beside_other_threads_nothing_is_lost_that_was_recorded() {
    let tracker = open();
    let device = device(&tracker);
    let stop = AtomicBool::new(false);
    let (events, recorded) = std::thread::scope(|threads| {
        let emits = threads.spawn(|| emit(&tracker, device, 1, &stop));
        let mut recorded = 0;
        let mut refused = 0;
        while recorded < 1000 || refused < 10 {
            match tracker.without_waiting().marker(MarkerPhase::Instant, 1, NameId::NONE) {
                Ok(()) => recorded += 1,
                Err(error) => {
                    assert_eq!(error, RecordError::Busy);
                    refused += 1;
                }
            }
        }
        stop.store(true, SeqCst);
        (emits.join().unwrap(), recorded)
    });
    tracker.alloc(device, Alloc::new(BufferType::Dram, 9, 1)).unwrap();
    assert_eq!(counters(&tracker, device).position, events + recorded + 1);
}

#[test]
fn a_closed_or_disabled_tracker_is_not_busy() {
    let tracker = open();
    let device = device(&tracker);
    tracker.close();
    for tracker in [tracker, Tracker::disabled()] {
        let handle = tracker.without_waiting();
        assert_eq!(handle.alloc(device, Alloc::new(BufferType::Dram, 1, 1)), Ok(()));
        assert_eq!(handle.alloc_many(device, &[Alloc::new(BufferType::Dram, 1, 1); 2]), Ok(()));
        assert_eq!((handle.counters(device), handle.segment_path()), (None, None));
    }
}

/// Capturing one needs the heap, and std's locks.
#[test]
fn a_handle_that_does_not_wait_captures_no_call_site() {
    let tracker = open_with(|builder| builder.backtrace(true));
    let device = device(&tracker);
    tracker.without_waiting().alloc(device, Alloc::new(BufferType::Dram, 1, 1)).unwrap();
    tracker.alloc(device, Alloc::new(BufferType::Dram, 2, 1)).unwrap();
    let sites: Vec<bool> = observe(&tracker).allocations().list.iter().map(|a| a.site.is_some()).collect();
    assert_eq!(sites, [false, true]);
}
