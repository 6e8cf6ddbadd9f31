//! Queues within the process, with a thread that takes everything out.

use crossbeam_queue::ArrayQueue;
use shm_layout::{Event, EventKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use tt_shm_measure::clock::Stopwatch;
use tt_shm_measure::limit::SLOTS;
use tt_shm_measure::sink::Sink;

/// An event as ours, with a timestamp.
#[inline(always)]
fn event(clock: Stopwatch, kind: EventKind, id: u64, size: u64) -> Event {
    Event { time: clock.ticks(), id, size, ..Event::new(kind, 0) }
}

/// Takes events out until told to stop, and says how many there were.
struct Consumer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
    sent: u64,
}

impl Consumer {
    fn start(mut take: impl FnMut() -> Option<Event> + Send + 'static) -> Consumer {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut count = 0;
            loop {
                // Before the look: what was put in before the stop is still taken out.
                let last = stopped.load(Ordering::Acquire);
                match take() {
                    Some(event) => count += u64::from(event.kind().is_some()),
                    None if last => return count,
                    None => std::hint::spin_loop(),
                }
            }
        });
        Consumer { stop, thread: Some(thread), sent: 0 }
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let count = self.thread.take().and_then(|thread| thread.join().ok());
        if !std::thread::panicking() {
            assert_eq!(count, Some(self.sent), "what was put in comes out");
        }
    }
}

/// A wait-free queue with one producer and one consumer.
pub(crate) struct Rtrb {
    producer: rtrb::Producer<Event>,
    clock: Stopwatch,
    consumer: Consumer,
}

impl Rtrb {
    pub(crate) fn start() -> Rtrb {
        let (producer, mut queue) = rtrb::RingBuffer::new(SLOTS);
        let consumer = Consumer::start(move || queue.pop().ok());
        Rtrb { producer, clock: Stopwatch::get(), consumer }
    }

    #[inline(always)]
    fn put(&mut self, kind: EventKind, id: u64, size: u64) {
        self.consumer.sent += 1;
        let event = event(self.clock, kind, id, size);
        // Full: nothing may be lost, so wait.
        while self.producer.push(event).is_err() {
            std::thread::yield_now();
        }
    }
}

impl Sink for Rtrb {
    #[inline(always)]
    fn alloc(&mut self, id: u64, size: u64) {
        self.put(EventKind::Alloc, id, size);
    }

    #[inline(always)]
    fn free(&mut self, id: u64, size: u64) {
        self.put(EventKind::Free, id, size);
    }
}

/// A queue that any thread may put into, as our shared handle.
pub(crate) struct Crossbeam {
    queue: Arc<ArrayQueue<Event>>,
    clock: Stopwatch,
    consumer: Consumer,
}

impl Crossbeam {
    pub(crate) fn start() -> Crossbeam {
        let queue = Arc::new(ArrayQueue::new(SLOTS));
        let other = queue.clone();
        let consumer = Consumer::start(move || other.pop());
        Crossbeam { queue, clock: Stopwatch::get(), consumer }
    }

    #[inline(always)]
    fn put(&mut self, kind: EventKind, id: u64, size: u64) {
        self.consumer.sent += 1;
        let event = event(self.clock, kind, id, size);
        while self.queue.push(event).is_err() {
            std::thread::yield_now();
        }
    }
}

impl Sink for Crossbeam {
    #[inline(always)]
    fn alloc(&mut self, id: u64, size: u64) {
        self.put(EventKind::Alloc, id, size);
    }

    #[inline(always)]
    fn free(&mut self, id: u64, size: u64) {
        self.put(EventKind::Free, id, size);
    }
}
