//! Events for many clients: each has a queue of bounded size, and is told what did not fit, at its place.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// What streams may take.
#[derive(Clone, Copy, Debug)]
pub struct FeedLimits {
    /// Streams at a time.
    pub clients: usize,
    /// Bytes that may wait for one client.
    pub bytes: usize,
}

/// Events for many clients.
#[derive(Debug)]
pub struct Feed {
    limits: FeedLimits,
    queues: Mutex<Vec<Weak<Queue>>>,
    lost: AtomicU64,
    /// Wakes the publisher when somebody wants events.
    wanted: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<Waiting>,
    ready: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    items: VecDeque<Next>,
    bytes: usize,
    /// Lost since the last item.
    lost: u64,
    closed: bool,
}

/// What comes next in a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// A message, as it is to be sent.
    Message(Arc<str>),
    /// So many messages did not fit here.
    Lost(u64),
}

/// A client's place in the feed, which it leaves when this is dropped.
#[derive(Debug)]
pub struct Subscription {
    queue: Arc<Queue>,
    /// How a loss is told.
    tell: fn(u64) -> String,
}

// A thread that panicked left whole values behind: each change is a single push or pop.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Feed {
    /// A feed without clients.
    pub fn new(limits: FeedLimits) -> Feed {
        Feed { limits, queues: Mutex::default(), lost: AtomicU64::new(0), wanted: Condvar::new() }
    }

    /// A place in the feed, which begins with these messages; `None` if all are taken.
    pub fn subscribe(&self, first: &[Arc<str>], tell: fn(u64) -> String) -> Option<Subscription> {
        let mut queues = lock(&self.queues);
        queues.retain(|queue| queue.strong_count() > 0);
        if queues.len() >= self.limits.clients {
            return None;
        }
        let queue = Arc::new(Queue::default());
        queue.push(first, self.limits.bytes);
        queues.push(Arc::downgrade(&queue));
        self.wanted.notify_all();
        Some(Subscription { queue, tell })
    }

    /// Sends messages to all. Never waits for a client: what does not fit is lost to that client, and counted.
    pub fn publish(&self, messages: &[Arc<str>]) {
        for queue in lock(&self.queues).iter().filter_map(Weak::upgrade) {
            let lost = queue.push(messages, self.limits.bytes);
            // Relaxed: the count guards no other memory.
            self.lost.fetch_add(lost, Ordering::Relaxed);
        }
    }

    /// Messages that clients lost because they read too slowly, all together.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// How many clients it has.
    pub fn clients(&self) -> usize {
        lock(&self.queues).iter().filter(|queue| queue.strong_count() > 0).count()
    }

    /// Waits until there is a client, at most so long; whether there is one.
    pub fn wait_for_client(&self, most: Duration) -> bool {
        let is_alone = |queues: &mut Vec<Weak<Queue>>| queues.iter().all(|queue| queue.strong_count() == 0);
        let result = self.wanted.wait_timeout_while(lock(&self.queues), most, is_alone);
        !result.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Ends all streams.
    pub fn close(&self) {
        for queue in lock(&self.queues).iter().filter_map(Weak::upgrade) {
            lock(&queue.state).closed = true;
            queue.ready.notify_all();
        }
    }
}

impl Queue {
    /// Adds messages as long as they fit; returns how many did not.
    fn push(&self, messages: &[Arc<str>], most: usize) -> u64 {
        let mut state = lock(&self.state);
        let before = state.lost;
        let mut lost = 0;
        for message in messages {
            // A client that lost some goes on where half of its queue is free: not one message here and one there.
            let room = if state.lost > 0 { most / 2 } else { most };
            if state.bytes + message.len() > room {
                state.lost += 1;
                lost += 1;
                continue;
            }
            if state.lost > 0 {
                let gap = Next::Lost(std::mem::take(&mut state.lost));
                state.items.push_back(gap);
            }
            state.bytes += message.len();
            state.items.push_back(Next::Message(Arc::clone(message)));
        }
        if !state.items.is_empty() || state.lost > before {
            self.ready.notify_one();
        }
        lost
    }
}

impl Subscription {
    /// What waits, at most about so many bytes; nothing if nothing came in that time. `None` when the stream has ended.
    pub fn next(&self, bytes: usize, most: Duration) -> Option<Vec<Next>> {
        let is_idle = |state: &mut Waiting| state.items.is_empty() && state.lost == 0 && !state.closed;
        let waited = self.queue.ready.wait_timeout_while(lock(&self.queue.state), most, is_idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let (mut items, mut taken) = (Vec::new(), 0);
        while taken < bytes {
            let Some(item) = state.items.pop_front() else { break };
            if let Next::Message(message) = &item {
                taken += message.len();
                state.bytes -= message.len();
            }
            items.push(item);
        }
        if state.items.is_empty() && state.lost > 0 {
            items.push(Next::Lost(std::mem::take(&mut state.lost)));
        }
        if items.is_empty() && state.closed { None } else { Some(items) }
    }

    /// The bytes of what comes next.
    pub(crate) fn text(&self, items: &[Next]) -> String {
        let text = |item: &Next| match item {
            Next::Message(message) => message.to_string(),
            Next::Lost(count) => (self.tell)(*count),
        };
        items.iter().map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(texts: &[&str]) -> Vec<Arc<str>> {
        texts.iter().map(|text| Arc::from(*text)).collect()
    }

    #[test]
    fn what_does_not_fit_is_told_where_it_is_missing() {
        let feed = Feed::new(FeedLimits { clients: 2, bytes: 8 });
        let slow = feed.subscribe(&[], |count| format!("<{count}>")).unwrap();
        feed.publish(&messages(&["aaaa", "bbbb", "cccc", "dddd"]));
        assert_eq!(feed.lost(), 2);
        let all = |client: &Subscription| client.next(100, Duration::ZERO).map(|items| client.text(&items));
        assert_eq!(slow.next(1, Duration::ZERO), Some(vec![Next::Message("aaaa".into())]));
        // Half of the queue is not free yet.
        feed.publish(&messages(&["eeee"]));
        assert_eq!(all(&slow).unwrap(), "bbbb<3>");
        feed.publish(&messages(&["ffff"]));
        assert_eq!(all(&slow).unwrap(), "ffff");
        assert_eq!(all(&slow).unwrap(), "", "nothing is waiting");
        feed.publish(&messages(&["gggg", "h", "too long"]));
        feed.publish(&messages(&["i"]));
        assert_eq!(all(&slow).unwrap(), "ggggh<2>", "the gap stays one until there is room");
        feed.publish(&messages(&["j"]));
        feed.close();
        assert_eq!((all(&slow), all(&slow)), (Some("j".to_owned()), None));
    }

    #[test]
    fn places_are_bounded_and_given_back() {
        let feed = Feed::new(FeedLimits { clients: 1, bytes: 8 });
        assert!(!feed.wait_for_client(Duration::ZERO));
        let one = feed.subscribe(&messages(&["hello"]), |_| String::new()).unwrap();
        assert!(feed.subscribe(&[], |_| String::new()).is_none());
        assert!(feed.wait_for_client(Duration::ZERO) && feed.clients() == 1);
        assert_eq!(one.next(100, Duration::ZERO), Some(vec![Next::Message("hello".into())]));
        drop(one);
        assert_eq!(feed.clients(), 0);
        assert!(feed.subscribe(&[], |_| String::new()).is_some());
    }
}
