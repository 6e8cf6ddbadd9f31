//! What a profiler reads from: a running aggregator's table, else an aggregation of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::{Scene, chip, device};
use shm_layout::Class;
use tt_shm_aggregator::{
    Aggregator, Claim, Config, DaemonConfig, Log, Origin, Reading, Source, SourceConfig, TablePublisher,
    run_daemon,
};
use tt_shm_os::Namespace;

const MIB: u64 = 1 << 20;

fn open(scene: &Scene) -> Source {
    let config = SourceConfig { driver: None, regions: None, ..SourceConfig::new(scene.namespace.clone()) };
    Source::with(config).unwrap()
}

/// Reads until the origin is as wanted.
fn read_until(source: &mut Source, is_wanted: impl Fn(&Reading) -> bool) -> Reading {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        source.poll();
        let reading = source.read().unwrap();
        if is_wanted(&reading) {
            return reading;
        }
        assert!(Instant::now() < deadline, "still {:?}", reading.origin);
        std::thread::sleep(source.poll_interval().min(Duration::from_millis(20)));
    }
}

fn is_table(reading: &Reading) -> bool {
    matches!(reading.origin, Origin::Table { .. })
}

/// Runs a daemon beside `work`.
fn with_daemon<T>(namespace: &Namespace, work: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let config = DaemonConfig {
            namespace: namespace.clone(),
            stats_interval: None,
            driver: None,
            regions: None,
            log: Log::silent(),
        };
        let daemon = scope.spawn(|| run_daemon(config, &stop));
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let result = {
            let _stop = Stop(&stop);
            work()
        };
        daemon.join().unwrap().unwrap();
        result
    })
}

#[test]
fn without_an_aggregator_it_is_one() {
    let scene = Scene::new();
    let mut process = scene.process();
    let index = process.register(chip(7));
    process.alloc(index, Class::Dram, MIB);
    let mut source = open(&scene);
    let reading = source.read().unwrap();
    assert_eq!((reading.origin, reading.rates_known), (Origin::Embedded, false));
    assert_eq!(device(&reading.snapshot, 7).dram_used_bytes, MIB);
    assert!(!source.sees_all() && !source.recheck().unwrap(), "it looked a moment ago");
    assert_eq!(*source.namespace(), scene.namespace);
    process.alloc(index, Class::Dram, MIB);
    read_until(&mut source, |reading| device(&reading.snapshot, 7).dram_used_bytes == 2 * MIB);
    drop(source);
    drop(process);
    open(&scene).read().unwrap();
    assert_eq!(scene.files().len(), 1, "reading removes nothing, not even what a dead process left");
}

#[test]
fn it_changes_with_the_aggregator_and_keeps_the_history() {
    let scene = Scene::new();
    let mut process = scene.process();
    let index = process.register(chip(7));
    process.alloc(index, Class::Dram, 3 * MIB);
    let mut source = open(&scene);
    let has = |source: &Source, reading: &Reading, bytes: u64| {
        let row = reading.snapshot.devices[0].0;
        source.history(row, 7, 0).iter().any(|bucket| bucket.dram_max == bytes)
    };
    let mut reading = read_until(&mut source, |reading| !reading.snapshot.devices.is_empty());
    assert_eq!(reading.origin, Origin::Embedded);
    while !has(&source, &reading, 3 * MIB) {
        reading = read_until(&mut source, |_| true);
    }
    process.free(index, Class::Dram, 3 * MIB);
    let reading = with_daemon(&scene.namespace, || {
        let reading = read_until(&mut source, is_table);
        let own = u64::from(std::process::id());
        assert!(
            matches!(reading.origin, Origin::Table { pid, age_ns } if pid == own && age_ns < 60_000_000_000)
        );
        assert_eq!(source.poll_interval(), Duration::from_secs(1), "a table needs no polls");
        assert_eq!(source.sees_all(), rustix::process::geteuid().is_root());
        assert!(has(&source, &reading, 3 * MIB), "of the time before the daemon");
        read_until(&mut source, |reading| reading.rates_known)
    });
    assert!(is_table(&reading));
    let reading = read_until(&mut source, |reading| reading.origin == Origin::Embedded);
    assert!(has(&source, &reading, 3 * MIB), "of the time before both");
    assert_eq!(device(&reading.snapshot, 7).dram_used_bytes, 0);
    with_daemon(&scene.namespace, || read_until(&mut source, is_table));
}

/// An aggregator that was killed leaves its table as it was.
#[test]
fn a_table_that_nobody_keeps_is_left() {
    let scene = Scene::new();
    let mut process = scene.process();
    let index = process.register(chip(7));
    let aggregator = Aggregator::new(Config::new(scene.namespace.clone())).unwrap();
    let publisher = TablePublisher::create(Claim::take(&scene.namespace).unwrap(), &aggregator).unwrap();
    let mut source = open(&scene);
    assert!(is_table(&source.read().unwrap()));
    drop((publisher, aggregator));
    process.alloc(index, Class::Dram, MIB);
    let reading = read_until(&mut source, |reading| reading.origin == Origin::Embedded);
    assert_eq!(device(&reading.snapshot, 7).dram_used_bytes, MIB);
}
