//! The published table: read back, replaced, contested, reset.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crate::common::{Scene, TestProcess, buffer, chip};
use shm_layout::table::{HISTORY_RESOLUTIONS, bucket_flags};
use shm_layout::{Class, Event, EventKind};
use tt_shm_aggregator::{
    Aggregator, Claim, Config, DaemonConfig, Log, PublishError, ResetError, TablePublisher, request_reset,
    run_daemon,
};
use tt_shm_os::{Namespace, path_of, table_file_name};
use tt_shm_reader::{Table, TableSnapshot, UsageStats};

const MIB: u64 = 1 << 20;

fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn open(namespace: &Namespace) -> Table {
    Table::open_path(&path_of(&table_file_name(namespace, uid())), uid()).unwrap()
}

fn assert_same(shown: &TableSnapshot, known: &TableSnapshot) {
    assert!(shown.consistent);
    assert_eq!(shown.generation, known.generation);
    assert_eq!(shown.devices, known.devices);
    assert_eq!(shown.processes, known.processes);
    // Times from before the start get more precise while the clock is measured.
    let timeless = |usages: &[(usize, UsageStats)]| -> Vec<(usize, UsageStats)> {
        let mut usages = usages.to_vec();
        usages.iter_mut().for_each(|(_, usage)| usage.counters.map_times(|_| 0));
        usages
    };
    assert_eq!(timeless(&shown.usages), timeless(&known.usages));
    assert_eq!(shown.notices, known.notices);
    let figures = |s: &TableSnapshot| {
        (s.events, s.missed, s.late, s.refused, s.window_since, s.windows, s.overflow, s.gap)
    };
    assert_eq!(figures(shown), figures(known));
}

#[test]
fn readers_see_what_the_aggregator_knows() {
    let scene = Scene::new();
    let mut processes: Vec<_> = (0..40).map(|_| scene.process()).collect();
    for (number, process) in processes.iter_mut().enumerate() {
        for id in 0..3 {
            let device = process.register(chip(id));
            process.alloc(device, Class::Dram, number as u64 + 1);
            process.alloc(device, Class::L1Small, 10);
        }
    }
    let mut aggregator = scene.aggregator();
    let claim = Claim::take(&scene.namespace).unwrap();
    let mut publisher = TablePublisher::create(claim, &aggregator).unwrap();
    let table = open(&scene.namespace);
    assert_same(&table.snapshot(), &aggregator.snapshot());
    assert_eq!(table.snapshot().usages.len(), 120);
    assert!(table.freshness().is_fresh());

    processes[3].alloc(1, Class::Trace, MIB);
    drop(processes.split_off(20));
    while aggregator.segments() > 20 {
        aggregator.settle();
        publisher.publish(&aggregator).unwrap();
        assert_same(&table.snapshot(), &aggregator.snapshot());
    }
    aggregator.poll();
    publisher.publish(&aggregator).unwrap();
    let shown = table.snapshot();
    assert_same(&shown, &aggregator.snapshot());
    assert_eq!(shown.usages.len(), 60);
    for resolution in 0..3 {
        assert_eq!(table.history(1, resolution), aggregator.history(1, resolution));
        assert!(table.history(1, resolution).iter().any(|bucket| bucket.dram_max >= MIB));
    }

    let claim = publisher.close().unwrap();
    assert!(table.freshness().closed && table.is_replaced());
    claim.remove_lock_file_while_held().unwrap();
    drop(processes);
    aggregator.settle();
}

#[test]
fn a_restarted_aggregator_adopts_history_and_peaks() {
    let scene = Scene::new();
    let mut process = scene.process();
    let device = process.register(chip(5));
    let mut first = scene.aggregator();
    process.alloc(device, Class::Dram, 9 * MIB);
    process.free(device, Class::Dram, 9 * MIB);
    process.alloc(device, Class::Dram, MIB);
    first.settle();
    first.reset_window();
    process.alloc(device, Class::Dram, 3 * MIB);
    process.free(device, Class::Dram, 3 * MIB);
    first.settle();
    let publisher = TablePublisher::create(Claim::take(&scene.namespace).unwrap(), &first).unwrap();
    let (before, history) = (first.snapshot(), first.history(0, 1));
    drop((publisher, first)); // as if killed: the table stays

    let claim = Claim::take(&scene.namespace).unwrap();
    let second = Aggregator::resume(Config::new(scene.namespace.clone()), claim.adopt()).unwrap();
    let publisher = TablePublisher::create(claim, &second).unwrap();
    let after = open(&scene.namespace).snapshot();
    let (old, new) = (before.devices[0].1, after.devices[0].1);
    assert_eq!((new.dram_used_bytes, new.dram_peak.low), (MIB, 4 * MIB));
    assert_eq!((new.dram_peak.time, new.dram_composition), (old.dram_peak.time, old.dram_composition));
    assert_eq!((after.windows, after.window_since), (1, before.window_since));
    let (start, end) = after.gap.unwrap();
    assert!(start == before.as_of && start <= end);
    let adopted = second.history(0, 1);
    assert!(adopted[0].start == history[0].start && adopted[0].dram_max == history[0].dram_max);
    let into_gap = adopted.iter().filter(|bucket| bucket.start + HISTORY_RESOLUTIONS[1] > start);
    assert!(into_gap.clone().count() > 0);
    assert!(into_gap.clone().all(|bucket| bucket.flags & bucket_flags::INEXACT != 0), "nobody watched");
    drop(publisher.close().unwrap());
}

/// An event comes so late that the bucket it belongs to is complete and published.
#[test]
fn a_published_bucket_that_became_inexact_says_so() {
    let scene = Scene::new();
    let (mut slow, mut other) = (scene.process(), scene.process());
    let (a, b) = (slow.register(chip(5)), other.register(chip(5)));
    let mut aggregator = scene.aggregator();
    let mut publisher = TablePublisher::create(Claim::take(&scene.namespace).unwrap(), &aggregator).unwrap();
    let table = open(&scene.namespace);
    let mut roll = |aggregator: &mut Aggregator, other: &mut TestProcess| {
        let newest = aggregator.history(0, 0).last().map_or(0, |bucket| bucket.start);
        while aggregator.history(0, 0).last().map_or(0, |bucket| bucket.start) == newest {
            other.alloc(b, Class::Dram, 1);
            aggregator.settle();
            publisher.publish(aggregator).unwrap();
        }
        newest
    };
    // The first bucket was not seen completely.
    roll(&mut aggregator, &mut other);
    let slept = slow.clock.ticks();
    let late = roll(&mut aggregator, &mut other);
    let published = || table.history(0, 0).into_iter().find(|bucket| bucket.start == late).unwrap();
    assert_eq!(published().flags & bucket_flags::INEXACT, 0);
    slow.emit_raw(Event { time: slept, ..buffer(EventKind::Alloc, a, Class::Dram, 1 << 30) });
    roll(&mut aggregator, &mut other);
    assert_ne!(published().flags & bucket_flags::INEXACT, 0, "{:?}", published());
    for resolution in 0..3 {
        assert_eq!(table.history(0, resolution), aggregator.history(0, resolution));
    }
}

#[test]
fn a_second_aggregator_is_refused_by_name() {
    let scene = Scene::new();
    let claim = Claim::take(&scene.namespace).unwrap();
    match Claim::take(&scene.namespace) {
        Err(PublishError::Running { path, pid }) => {
            assert_eq!((path.as_path(), pid), (claim.path(), Some(std::process::id())));
        }
        other => panic!("{other:?}"),
    }
    drop(claim);
    Claim::take(&scene.namespace).unwrap();
}

#[test]
fn the_daemon_publishes_resets_and_cleans_up() {
    let scene = Scene::new();
    let mut process = scene.process();
    let device = process.register(chip(1));
    process.alloc(device, Class::Dram, 8 * MIB);
    process.free(device, Class::Dram, 8 * MIB);
    let patience = Duration::from_secs(60);
    assert!(matches!(request_reset(&scene.namespace, uid(), patience), Err(ResetError::Table(_))));

    let stop = AtomicBool::new(false);
    let (sink, lines) = mpsc::channel();
    let log = Log::to(move |line| drop(sink.send(line.to_owned())));
    let config = DaemonConfig {
        namespace: scene.namespace.clone(),
        stats_interval: Some(Duration::from_millis(1)),
        driver: None,
        regions: None,
        log,
    };
    std::thread::scope(|scope| {
        let daemon = scope.spawn(|| run_daemon(config, &stop));
        while Table::open_for(&scene.namespace, uid()).is_err() {
            std::thread::yield_now();
        }
        let table = open(&scene.namespace);
        assert_eq!(table.snapshot().devices[0].1.dram_peak.low, 8 * MIB);
        request_reset(&scene.namespace, uid(), patience).unwrap();
        assert_eq!(table.snapshot().devices[0].1.dram_peak.low, 0);
        assert_eq!(table.snapshot().windows, 1);

        process.alloc(device, Class::Dram, MIB);
        while table.snapshot().devices[0].1.dram_used_bytes != MIB {
            std::thread::yield_now();
        }
        drop(process);
        while table.snapshot().notices.is_empty() {
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
        daemon.join().unwrap().unwrap();
    });
    let lines: Vec<String> = lines.iter().collect();
    for expected in ["attach pid", "new window", "reclaimed: dram 1048576 B in 1", "1 devices", "stopped"] {
        assert!(lines.iter().any(|line| line.contains(expected)), "{expected} in {lines:#?}");
    }
    let [left] = &scene.files()[..] else { panic!("{:?}", scene.files()) };
    assert_eq!(left.extension().unwrap(), "lock");
}

#[test]
fn what_a_killed_aggregator_left_half_made_is_removed() {
    let scene = Scene::new();
    let half = path_of(&format!("{}-0123456789abcdef", table_file_name(&scene.namespace, uid())));
    std::fs::write(&half, "half").unwrap();
    let claim = Claim::take(&scene.namespace).unwrap();
    let publisher = TablePublisher::create(claim, &scene.aggregator()).unwrap();
    assert!(!half.exists());
    publisher.close().unwrap().remove_lock_file_while_held().unwrap();
    assert_eq!(scene.files().len(), 0);
}

#[test]
fn a_foreign_file_in_the_place_of_the_table_is_not_adopted() {
    let scene = Scene::new();
    std::fs::write(path_of(&table_file_name(&scene.namespace, uid())), vec![7; 4096]).unwrap();
    let claim = Claim::take(&scene.namespace).unwrap();
    assert!(claim.adopt().is_none());
    TablePublisher::create(claim, &scene.aggregator()).unwrap();
    assert!(open(&scene.namespace).freshness().is_fresh(), "it was replaced");
}

fn request_path(scene: &Scene, suffix: &str) -> std::path::PathBuf {
    path_of(&format!("tt-shm.v2.{}.{}.reset-{suffix}", scene.namespace, uid()))
}

#[test]
fn a_link_or_a_directory_is_no_request_for_a_new_window() {
    let scene = Scene::new();
    let (link, directory) = (request_path(&scene, "link"), request_path(&scene, "directory"));
    let config = Config { accept_resets: true, ..Config::new(scene.namespace.clone()) };
    let mut aggregator = Aggregator::new(config).unwrap();
    std::os::unix::fs::symlink("/dev/null", &link).unwrap();
    std::fs::create_dir(&directory).unwrap();
    aggregator.settle();
    assert_eq!(aggregator.snapshot().windows, 0);
    std::fs::remove_dir(&directory).unwrap();
    let request = request_path(&scene, "file");
    std::fs::write(&request, "").unwrap();
    aggregator.settle();
    assert!(aggregator.snapshot().windows == 1 && !request.exists());
}

/// Names that another user may have occupied before, in any way.
#[test]
fn a_directory_in_the_place_of_the_table_or_its_lock_is_put_out_of_the_way() {
    for name in [table_file_name, tt_shm_os::table_lock_file_name] {
        let scene = Scene::new();
        let place = name(&scene.namespace, uid());
        for inside in [None, Some("precious")] {
            let directory = path_of(&place);
            std::fs::create_dir(&directory).unwrap();
            if let Some(name) = inside {
                std::fs::write(directory.join(name), "kept").unwrap();
            }
            let claim = Claim::take(&scene.namespace).unwrap();
            let publisher = TablePublisher::create(claim, &scene.aggregator()).unwrap();
            assert!(open(&scene.namespace).freshness().is_fresh());
            publisher.close().unwrap().remove_lock_file_while_held().unwrap();
            let left: Vec<_> = scene.files();
            assert_eq!(left.len(), usize::from(inside.is_some()), "{left:?}");
            for aside in left {
                assert_eq!(std::fs::read(aside.join("precious")).unwrap(), b"kept");
                std::fs::remove_dir_all(aside).unwrap();
            }
        }
    }
}
