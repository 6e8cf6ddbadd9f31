//! iceoryx2: zero-copy publish to a subscriber that takes everything out.

use iceoryx2::port::publisher::Publisher;
use iceoryx2::prelude::*;
use shm_layout::{Event, EventKind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tt_shm_measure::clock::Stopwatch;
use tt_shm_measure::scene::remove_files;
use tt_shm_measure::sink::{EventSink, Sink};

const NAME: &str = "tt-shm-bench";
/// Samples that may wait for the subscriber.
const BUFFER: usize = 1024;

/// As long as our event.
#[repr(C)]
#[derive(Clone, Copy, Debug, ZeroCopySend)]
struct Payload([u64; 8]);

/// Publishes every event.
pub(crate) struct Iceoryx {
    publisher: Publisher<ipc::Service, Payload, ()>,
    clock: Stopwatch,
}

impl EventSink for Iceoryx {
    #[inline(always)]
    fn put(&mut self, kind: EventKind, id: u64, size: u64) {
        let event = Event { time: self.clock.ticks(), id, size, ..Event::new(kind, 0) };
        let sample = self.publisher.loan_uninit().expect("a free sample");
        let sample = sample.write_payload(Payload(bytemuck::must_cast(event)));
        sample.send().expect("a subscriber");
    }
}

/// Its files: under a prefix of our own, and removed with this.
struct Files {
    prefix: String,
    root: std::path::PathBuf,
}

impl Files {
    fn new() -> Files {
        let prefix = format!("ttbench{}_", std::process::id());
        let root = std::env::temp_dir().join(format!("tt-shm-bench-{}", std::process::id()));
        Files { prefix, root }
    }

    fn config(&self) -> Config {
        let mut config = Config::default();
        config.global.prefix = FileName::new(self.prefix.as_bytes()).expect("a short name");
        let root = self.root.to_string_lossy();
        config.global.set_root_path(&Path::new(root.as_bytes()).expect("a short path"));
        config
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
        remove_files(&self.prefix);
    }
}

/// Runs `work` with a publisher whose samples arrive in another thread.
pub(crate) fn with_publisher(work: impl FnOnce(Iceoryx)) {
    let files = Files::new();
    let config = files.config();
    let (stop, received) = (AtomicBool::new(false), AtomicU64::new(0));
    let ready = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| receive(&config, &ready, &stop, &received));
        ready.wait();
        // Stops the other thread also if something panics here.
        let _stop = StopAtEnd(&stop);
        let node = NodeBuilder::new().config(&config).create::<ipc::Service>().expect("a node");
        let publisher = service(&node).publisher_builder().create().expect("a publisher");
        let mut publisher = Iceoryx { publisher, clock: Stopwatch::get() };
        arrives(&mut publisher, &received);
        work(publisher);
    });
}

struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Asserted before timing: what is published is received.
fn arrives(publisher: &mut Iceoryx, received: &AtomicU64) {
    for id in 0..100 {
        publisher.alloc(id, 1);
    }
    let start = std::time::Instant::now();
    while received.load(Ordering::Relaxed) < 100 {
        assert!(start.elapsed().as_secs() < 10, "published, and not received");
        std::thread::yield_now();
    }
}

type Service = iceoryx2::service::port_factory::publish_subscribe::PortFactory<ipc::Service, Payload, ()>;

fn service(node: &Node<ipc::Service>) -> Service {
    let name = NAME.try_into().expect("a valid name");
    // A full buffer overwrites its oldest sample, as our ring does: the publisher never waits.
    let builder = node.service_builder(&name).publish_subscribe::<Payload>();
    let builder = builder.subscriber_max_buffer_size(BUFFER).enable_safe_overflow(true);
    builder.open_or_create().expect("a service")
}

fn receive(config: &Config, ready: &std::sync::Barrier, stop: &AtomicBool, received: &AtomicU64) {
    let node = NodeBuilder::new().config(config).create::<ipc::Service>().expect("a node");
    let subscriber = service(&node).subscriber_builder().buffer_size(BUFFER).create().expect("a subscriber");
    ready.wait();
    while !stop.load(Ordering::Relaxed) {
        match subscriber.receive().expect("a connection") {
            Some(_) => _ = received.fetch_add(1, Ordering::Relaxed),
            None => std::hint::spin_loop(),
        }
    }
}
