//! Events of all rings that may be read here, for those who stream them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use tt_shm_http::Feed;
use tt_shm_os::Namespace;

use crate::lists::events::{Seen, Tail, Watch};
use crate::output::json;
use crate::segments::{Segments, hidden};
use crate::source::table_snapshot;

/// Poll intervals of the rings: while idle, and while there are events.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const LOOK_AGAIN_SOON: Duration = Duration::from_millis(1);
/// Interval at which new processes are looked for.
const RESCAN: Duration = Duration::from_millis(100);
/// How long the thread may take to notice that it is to end.
const NOTICE: Duration = Duration::from_millis(100);
/// Events that are turned into text at once.
const CHUNK: usize = 1024;

/// What all streams have in common.
#[derive(Debug, Default)]
pub(super) struct Ring {
    /// Events that were overwritten, or too many at once, before they could be read.
    lost: AtomicU64,
}

impl Ring {
    // Relaxed: the count guards no other memory.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// The first message of a stream, `event: following`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Following {
    /// Processes whose events can be read here.
    processes: u64,
    /// Processes whose events this user may not read: nothing of them is in the stream.
    hidden_processes: u64,
}

/// A message that tells what is missing at its place, `event: lost`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Lost {
    /// How many events.
    events: u64,
    /// Why: slow_client if they did not fit into the client's queue, overwritten if the ring was faster than its reader.
    reason: &'static str,
}

/// A message: `event: name`, unless it is an event of a process, and one line of JSON.
fn message(name: Option<&str>, data: &impl Serialize) -> Arc<str> {
    let mut text = name.map(|name| format!("event: {name}\n")).unwrap_or_default().into_bytes();
    text.extend_from_slice(b"data: ");
    // Writing to memory cannot fail, and neither can these types.
    let _ = json::write_line(&mut text, data);
    text.push(b'\n');
    String::from_utf8_lossy(&text).into()
}

/// What a stream begins with.
pub(super) fn first(namespace: &Namespace) -> io::Result<Arc<str>> {
    let processes = Segments::open(namespace)?.live.len() as u64;
    let following = Following { processes, hidden_processes: hidden(namespace)?.len() as u64 };
    Ok(message(Some("following"), &following))
}

/// How a client is told what did not fit into its queue.
pub(super) fn tell(events: u64) -> String {
    message(Some("lost"), &Lost { events, reason: "slow_client" }).to_string()
}

/// Follows the rings while somebody streams.
pub(super) fn follow(feed: &Feed, ring: &Ring, namespace: &Namespace, stop: &dyn Fn() -> bool) {
    while !stop() {
        if !feed.wait_for_client(NOTICE) {
            continue;
        }
        if let Err(error) = follow_for(feed, ring, namespace, stop) {
            eprintln!("tt-smi: cannot follow events: {error}");
            std::thread::sleep(NOTICE);
        }
    }
}

fn follow_for(feed: &Feed, ring: &Ring, namespace: &Namespace, stop: &dyn Fn() -> bool) -> io::Result<()> {
    let segments = Segments::open(namespace)?;
    let directory = segments.directory(table_snapshot(namespace).as_ref());
    let mut watch = Watch::new(namespace, &[], directory);
    watch.add(segments.live, Tail::from_now);
    let (mut scanned, mut retired, mut told) = (Instant::now(), 0, 0);
    while !stop() && feed.clients() > 0 {
        if scanned.elapsed() >= RESCAN {
            watch.rescan()?;
            scanned = Instant::now();
        }
        // Checked before the last read, so that the last events of a process are still sent.
        let ended = watch.ended();
        let seen = watch.read();
        for chunk in seen.chunks(CHUNK) {
            let messages: Vec<Arc<str>> =
                chunk.iter().map(Seen::happened).map(|event| message(None, &event)).collect();
            feed.publish(&messages);
        }
        retired += watch.retire(&ended).iter().map(missing).sum::<u64>();
        let lost = retired + watch.tails.iter().map(missing).sum::<u64>();
        if lost > told {
            ring.lost.fetch_add(lost - told, Ordering::Relaxed);
            feed.publish(&[message(Some("lost"), &Lost { events: lost - told, reason: "overwritten" })]);
            told = lost;
        }
        std::thread::sleep(if seen.is_empty() { LOOK_AGAIN } else { LOOK_AGAIN_SOON });
    }
    Ok(())
}

/// What could not be read of a ring while it was followed.
fn missing(tail: &Tail) -> u64 {
    tail.missed + tail.skipped
}
