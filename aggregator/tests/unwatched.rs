//! More happens in /dev/shm than inotify can report: processes that came and went meanwhile may have held any
//! amount. Alone in its file, because every aggregator on the machine watches that folder.

mod common;

use common::{Scene, chip, device, settled};
use shm_layout::{Class, UNKNOWN};

#[test]
fn who_came_and_went_while_inotify_overflowed_may_have_had_anything() {
    let queue = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let queue: usize = queue.trim().parse().unwrap();
    let scene = Scene::new();
    let mut aggregator = scene.aggregator();
    let mut process = scene.process();
    process.register(chip(1));
    process.alloc(0, Class::Dram, 100);
    let peak = device(&settled(&mut aggregator), 1).dram_peak;
    assert_eq!((peak.low, peak.high), (100, 100));

    let noise = std::path::Path::new(tt_shm_os::SHM_DIR).join(format!("noise-{}", scene.namespace));
    // Made and removed: two that are queued each time.
    for _ in 0..queue / 2 + 10 {
        std::fs::write(&noise, "").unwrap();
        std::fs::remove_file(&noise).unwrap();
    }
    let mut untold = scene.process();
    untold.register(chip(1));
    untold.alloc(0, Class::Dram, 500);
    let path = untold.path.clone();
    drop(untold);
    std::fs::remove_file(path).unwrap();

    let mut left = queue;
    while left > 0 {
        aggregator.poll();
        left = left.saturating_sub(1000);
    }
    let peak = device(&settled(&mut aggregator), 1).dram_peak;
    assert_eq!((peak.low, peak.high), (100, UNKNOWN), "true 600");
    assert_eq!(device(&aggregator.snapshot(), 1).dram_used_bytes, 100);
}
