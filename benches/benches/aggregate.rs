//! What the aggregator costs at rest, and how long an event takes to reach the table.
//!
//! The aggregator runs as it does in the daemon, in a thread of its own; the writers are this process's
//! trackers, each with a segment of its own.

use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tt_shm_aggregator::{DaemonConfig, Log, run_daemon};
use tt_shm_os::Namespace;
use tt_shm_reader::Table;
use tt_shm_writer::{Alloc, BufferType, Device, DeviceInfo, Record, Tracker};

const PROCESSES: u64 = 16;
const DEVICES: u64 = 8;
const REST: Duration = Duration::from_secs(5);
const EVENTS: usize = 2000;

fn main() {
    let namespace = Namespace::new(&format!("bench-agg-{}", std::process::id())).expect("a valid name");
    let trackers: Vec<_> = (0..PROCESSES).map(|_| tracker(&namespace)).collect();
    let daemon = Daemon::start(&namespace);
    let table = wait_for_table(&namespace);
    at_rest(&daemon);
    to_table(&trackers[0], &table);
    drop(daemon);
    let lock =
        tt_shm_os::path_of(&tt_shm_os::table_lock_file_name(&namespace, rustix::process::geteuid().as_raw()));
    std::fs::remove_file(lock).expect("the daemon left its lock file");
}

fn tracker(namespace: &Namespace) -> (Tracker, Device) {
    let tracker = Tracker::builder().enabled(true).namespace(namespace.as_str()).open().expect("a segment");
    let devices: Vec<_> = (0..DEVICES)
        .map(|chip_id| {
            tracker.register_device(&DeviceInfo { chip_id, ..Default::default() }).expect("a device")
        })
        .collect();
    for (id, device) in devices.iter().enumerate() {
        tracker.alloc(*device, Alloc::new(BufferType::Dram, id as u64, 4096)).expect("an allocation");
    }
    (tracker, devices[0])
}

/// The daemon's loop in a thread that tells how much CPU it has used.
struct Daemon {
    stop: Arc<AtomicBool>,
    cpu_clock: Arc<AtomicU64>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Daemon {
    fn start(namespace: &Namespace) -> Daemon {
        let (stop, cpu_clock) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let config = DaemonConfig { namespace: namespace.clone(), stats_interval: None, log: Log::silent() };
        let (stopped, clock) = (stop.clone(), cpu_clock.clone());
        let thread = std::thread::spawn(move || {
            clock.store(rustix::thread::gettid().as_raw_nonzero().get() as u64, Ordering::Release);
            run_daemon(config, &stopped).expect("nobody else aggregates here");
        });
        Daemon { stop, cpu_clock, thread: Some(thread) }
    }

    /// CPU time of the daemon's thread so far.
    fn cpu(&self) -> Duration {
        let thread = self.cpu_clock.load(Ordering::Acquire);
        let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).expect("schedstat");
        let ns = stat.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds on the CPU");
        Duration::from_nanos(ns)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(std::thread::JoinHandle::join);
        assert!(ended.is_some_and(|result| result.is_ok()), "the daemon panicked");
    }
}

fn wait_for_table(namespace: &Namespace) -> Table {
    loop {
        match Table::open(namespace) {
            Ok(table) if table.snapshot().processes.len() == PROCESSES as usize => return table,
            _ => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn at_rest(daemon: &Daemon) {
    std::thread::sleep(Duration::from_millis(500));
    let (before, start) = (daemon.cpu(), Instant::now());
    std::thread::sleep(REST);
    let share = (daemon.cpu() - before).as_secs_f64() / start.elapsed().as_secs_f64();
    println!("at rest, {PROCESSES} processes x {DEVICES} devices: {:.2} % of a core", share * 100.0);
}

/// From the return of alloc() to the moment when the table has it, while events keep coming.
fn to_table((tracker, device): &(Tracker, Device), table: &Table) {
    let before = dram(table);
    let mut delays: Vec<Duration> = (0..EVENTS as u64)
        .map(|event| {
            tracker.alloc(*device, Alloc::new(BufferType::Dram, 1000 + event, 1)).expect("an allocation");
            let start = monotonic();
            while dram(table) < before + event + 1 {
                std::hint::spin_loop();
            }
            monotonic() - start
        })
        .collect();
    delays.sort_unstable();
    let at = |share: f64| delays[((EVENTS - 1) as f64 * share) as usize];
    println!("event to table: p50 {:?}, p90 {:?}, p99 {:?}, max {:?}", at(0.5), at(0.9), at(0.99), at(1.0));
}

fn dram(table: &Table) -> u64 {
    let devices = (0..DEVICES as usize)
        .filter_map(|row| table.device(row).read(|row| (row.entry().chip_id, row.dram_used_bytes())));
    devices.filter(|(chip, _)| *chip == 0).map(|(_, used)| used).next().unwrap_or(0)
}

fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
