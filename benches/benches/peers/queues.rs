//! Queues within the process, with a thread that takes everything out.

use crossbeam_queue::ArrayQueue;
use shm_layout::{Event, EventKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use tt_shm_measure::clock::Stopwatch;
use tt_shm_measure::limit::SLOTS;
use tt_shm_measure::sink::EventSink;

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

/// The producer's end of a queue, and who empties it.
pub(crate) struct Queue<P> {
    /// Puts an event in unless the queue is full.
    push: P,
    clock: Stopwatch,
    consumer: Consumer,
}

impl<P: FnMut(Event) -> bool> EventSink for Queue<P> {
    #[inline(always)]
    fn put(&mut self, kind: EventKind, id: u64, size: u64) {
        self.consumer.sent += 1;
        let event = Event { time: self.clock.ticks(), id, size, ..Event::new(kind, 0) };
        // Full: nothing may be lost, so wait.
        while !(self.push)(event) {
            std::thread::yield_now();
        }
    }
}

/// A wait-free queue with one producer and one consumer.
pub(crate) fn rtrb() -> Queue<impl FnMut(Event) -> bool> {
    let (mut producer, mut queue) = rtrb::RingBuffer::new(SLOTS);
    let consumer = Consumer::start(move || queue.pop().ok());
    Queue { push: move |event| producer.push(event).is_ok(), clock: Stopwatch::get(), consumer }
}

/// A queue that any thread may put into, as our shared handle.
pub(crate) fn crossbeam() -> Queue<impl FnMut(Event) -> bool> {
    let queue = Arc::new(ArrayQueue::new(SLOTS));
    let other = queue.clone();
    let consumer = Consumer::start(move || other.pop());
    Queue { push: move |event| queue.push(event).is_ok(), clock: Stopwatch::get(), consumer }
}
