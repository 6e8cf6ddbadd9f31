//! Which processes of a region live, on made-up machines.

use std::time::{Duration, Instant};

use tt_shm_region::{Doubt, Liveness, Regions};
use tt_shm_tests::machine::FakeProcess;
use tt_shm_tests::region::BOOT;
use tt_shm_tests::{RegionImage, RegionTree};

const CHIP: u64 = 7;
const PID: u32 = 4242;
const GHOST: Liveness = Liveness::Ghost;
/// When the slot was written last: 1000 s after boot, or 100 000 ticks.
const WRITTEN: u64 = (BOOT + 1000) * 1_000_000_000;

/// A machine with a region, in which a process has a slot.
struct Watch {
    tree: RegionTree,
    regions: Regions,
    now: Instant,
}

impl Watch {
    fn new() -> Watch {
        let tree = RegionTree::default();
        tree.publish(CHIP, &RegionImage::honest(3, CHIP, &[(PID as i32, [1; 5])]).written(0, WRITTEN));
        Watch { regions: Regions::new(tree.roots()), now: Instant::now(), tree }
    }

    fn with(process: &FakeProcess) -> Watch {
        let watch = Watch::new();
        watch.tree.add_process(process);
        watch
    }

    /// What is known of the processes after a time.
    fn all_after(&mut self, time: Duration) -> Vec<Liveness> {
        self.now += time;
        assert!(self.regions.poll(self.now));
        let content = self.regions.regions()[0].content.as_ref().unwrap();
        content.processes.iter().map(|process| process.liveness.clone()).collect()
    }

    #[track_caller]
    fn after(&mut self, milliseconds: u64) -> Liveness {
        let mut all = self.all_after(Duration::from_millis(milliseconds));
        assert_eq!(all.len(), 1);
        all.remove(0)
    }
}

fn process() -> FakeProcess {
    FakeProcess::new(PID, "python train.py")
}

#[track_caller]
fn assert_doubt(watch: &mut Watch, doubt: Doubt, says: &str) {
    let liveness = watch.after(0);
    assert!(!liveness.has_ended());
    assert!(liveness.to_string().contains(says), "{liveness}");
    assert_eq!(liveness, Liveness::Uncertain(doubt));
}

#[test]
fn who_maps_the_region_lives_and_its_end_is_noticed_at_once() {
    let mut watch = Watch::new();
    let region = watch.tree.region(CHIP);
    watch.tree.add_process(&process().mapping(&region));
    assert_eq!(watch.after(0), Liveness::Alive { pid_here: PID });
    assert_eq!(watch.after(100), Liveness::Alive { pid_here: PID });
    watch.tree.end_process(PID);
    assert_eq!(watch.after(100), GHOST);
    assert!(GHOST.has_ended() && Liveness::Reused.has_ended());
    // Ended, and its parent has not asked how.
    watch.tree.add_process(&process().mapping(&region));
    let stat = format!("proc/{PID}/stat");
    let text = std::fs::read_to_string(watch.tree.path().join(&stat)).unwrap();
    watch.tree.write(&stat, &text.replace(") S ", ") Z "));
    assert_eq!(watch.after(1000), GHOST);
}

#[test]
fn a_pid_that_was_given_away_again_is_noticed() {
    // Boot time is in whole seconds: two seconds are not enough to tell.
    for (ticks, liveness) in [
        (99_000, Liveness::Uncertain(Doubt::NotMapped)),
        (100_200, Liveness::Uncertain(Doubt::NotMapped)),
        (100_300, Liveness::Reused),
        (u64::MAX, Liveness::Reused),
    ] {
        let mut watch = Watch::with(&process().started_at(ticks));
        assert_eq!(watch.after(0), liveness, "{ticks}");
        // Whether it may be looked into or not.
        let mut watch = Watch::with(&process().started_at(ticks).closed_to_others());
        assert_eq!(watch.after(0) == Liveness::Reused, liveness == Liveness::Reused, "{ticks}");
    }
    // While it is watched.
    let mut watch = Watch::new();
    let living = process().mapping(&watch.tree.region(CHIP));
    watch.tree.add_process(&living);
    assert_eq!(watch.after(0), Liveness::Alive { pid_here: PID });
    watch.tree.add_process(&process().started_at(200_000));
    assert_eq!(watch.after(100), Liveness::Reused);
    // A slot without a time proves nothing.
    let image = RegionImage::honest(3, CHIP, &[(PID as i32, [1; 5])]).written(0, 0);
    watch.tree.publish(CHIP, &image);
    assert_eq!(watch.after(2000), Liveness::Uncertain(Doubt::NotMapped));
}

/// Somebody else's file with my pid in it.
#[test]
fn a_process_that_does_not_map_the_region_is_not_taken_for_its_own() {
    assert_doubt(&mut Watch::with(&process()), Doubt::NotMapped, "does not use the region");
    let closed = process().closed_to_others();
    assert_doubt(&mut Watch::with(&closed), Doubt::MayNotLook, "run as root");
    // Another region than this.
    let watch = Watch::new();
    let other = watch.tree.region(8);
    watch.tree.publish(8, &RegionImage::honest(3, 8, &[]));
    watch.tree.add_process(&process().mapping(&other));
    let mut watch = Watch { regions: Regions::new(watch.tree.roots()), ..watch };
    assert_doubt(&mut watch, Doubt::NotMapped, "does not use the region");
}

#[test]
fn a_slot_that_was_taken_over_is_not_certain() {
    let mut watch = Watch::new();
    watch.tree.add_process(&process().started_at(200_000).mapping(&watch.tree.region(CHIP)));
    assert_doubt(&mut watch, Doubt::StartedLater, "started after the slot was written");
}

#[test]
fn processes_in_containers_are_found_by_what_they_map() {
    let mut watch = Watch::new();
    let region = watch.tree.region(CHIP);
    let inside = FakeProcess::new(9000, "python").calling_itself(PID);
    watch.tree.add_process(&FakeProcess::new(9001, "sh").calling_itself(PID));
    watch.tree.add_process(&inside.clone().mapping(&region));
    assert_eq!(watch.after(0), Liveness::Alive { pid_here: 9000 });
    // A process of the host has the same pid by chance.
    watch.tree.add_process(&process());
    assert_eq!(watch.after(10_000), Liveness::Alive { pid_here: 9000 });
    watch.tree.end_process(9000);
    assert_eq!(watch.after(1000), Liveness::Uncertain(Doubt::NotMapped));
    watch.tree.end_process(PID);
    assert_doubt(&mut watch_again(watch), Doubt::Elsewhere { pids_here: vec![9001] }, "in containers");
}

fn watch_again(watch: Watch) -> Watch {
    Watch { regions: Regions::new(watch.tree.roots()), ..watch }
}

#[test]
fn a_process_that_calls_itself_otherwise_is_not_certain() {
    let mut watch = Watch::new();
    watch.tree.add_process(&process().calling_itself(12).mapping(&watch.tree.region(CHIP)));
    assert_doubt(
        &mut watch,
        Doubt::OtherNamespace { calls_itself: 12 },
        "in a container, where it is process 12",
    );
}

#[test]
fn nobody_is_called_ended_where_processes_are_hidden() {
    let mut watch = Watch::new();
    watch
        .tree
        .write("proc/self/mountinfo", "22 1 0:21 / /proc rw,relatime - proc proc rw,hidepid=invisible\n");
    assert_doubt(&mut watch, Doubt::Hidden, "not all can be");
    assert!(watch.regions.gaps()[0].contains("hidepid"), "{:?}", watch.regions.gaps());
}

#[test]
fn a_reader_in_a_container_says_so() {
    let mut watch = Watch::new();
    // Any inode but that of the machine's first namespace.
    watch.tree.write("proc/self/ns/pid", "");
    assert_eq!(watch.after(0), GHOST);
    assert!(watch.regions.gaps()[0].contains("run on the host"), "{:?}", watch.regions.gaps());
}

/// All processes are looked through once a second at most; before, nobody new is called ended.
#[test]
fn nobody_is_called_ended_before_it_was_looked_for() {
    let mut watch = Watch::new();
    assert_eq!(watch.after(0), GHOST);
    let two = [(PID as i32, [1; 5]), (5000, [1; 5])];
    watch.tree.publish(CHIP, &RegionImage::honest(3, CHIP, &two).written(0, WRITTEN).written(1, WRITTEN));
    watch.tree.add_process(
        &FakeProcess::new(9000, "python").calling_itself(5000).mapping(&watch.tree.region(CHIP)),
    );
    let not_yet = Liveness::Uncertain(Doubt::NotLookedYet);
    let step = Duration::from_millis(500);
    assert_eq!(watch.all_after(step), [GHOST, not_yet]);
    assert_eq!(watch.all_after(step), [GHOST, Liveness::Alive { pid_here: 9000 }]);
}

#[test]
fn numbers_that_are_no_pids_are_not_looked_for() {
    let mut watch = Watch::new();
    let bad = [(-5, [1; 5]), (i32::MIN, [1; 5]), (i32::MAX, [1; 5])];
    watch.tree.publish(CHIP, &RegionImage::honest(3, CHIP, &bad));
    let no = Liveness::Uncertain(Doubt::NoPid);
    assert_eq!(watch.all_after(Duration::ZERO), [no.clone(), no, GHOST]);
}

/// Each slot of one pid has a time of its own.
#[test]
fn slots_of_one_pid_are_judged_each() {
    let mut watch = Watch::new();
    let image = RegionImage::honest(3, CHIP, &[(PID as i32, [1; 5]), (PID as i32, [2; 5])]);
    watch.tree.publish(CHIP, &image.written(0, WRITTEN).written(1, WRITTEN + 1_000_000_000_000));
    watch.tree.add_process(&process().started_at(150_000).mapping(&watch.tree.region(CHIP)));
    let later = Liveness::Uncertain(Doubt::StartedLater);
    for _ in 0..3 {
        assert_eq!(
            watch.all_after(Duration::from_millis(300)),
            [later.clone(), Liveness::Alive { pid_here: PID }]
        );
    }
}

/// Living processes are asked for what they map, a few in a poll; all are done after some.
#[test]
fn many_processes_are_done_in_turn() {
    let mut watch = Watch::new();
    for chip in 0..3 {
        let slots: Vec<_> = (0..64).map(|slot| (10_000 + chip as i32 * 64 + slot, [1; 5])).collect();
        watch.tree.publish(chip, &RegionImage::honest(3, chip, &slots));
        for (pid, _) in slots {
            let process = FakeProcess::new(pid as u32, "python");
            watch.tree.add_process(&process.mapping(&watch.tree.region(chip)));
        }
    }
    let alive = |watch: &mut Watch| {
        watch.now += Duration::from_millis(100);
        watch.regions.poll(watch.now);
        let contents = watch.regions.regions().iter().map(|region| region.content.as_ref().unwrap());
        contents
            .map(|content| content.processes.iter().filter(|one| one.pid_here().is_some()).count())
            .sum::<usize>()
    };
    let counts: Vec<usize> = (0..4).map(|_| alive(&mut watch)).collect();
    assert_eq!(counts, [64, 128, 192, 192]);
    // Looked at again after a while, in turn as well; nobody is forgotten meanwhile.
    watch.now += Duration::from_secs(20);
    assert_eq!((alive(&mut watch), alive(&mut watch)), (192, 192));
}

/// This very process, on this machine.
#[test]
fn a_real_process_that_maps_a_real_file_lives() {
    let tree = RegionTree::default();
    let pid = std::process::id();
    let image = RegionImage::honest(3, CHIP, &[(pid as i32, [1; 5])]);
    tree.publish(CHIP, &image.clone().written(0, tt_shm_tests::region::seconds_ago(0)));
    let roots = tt_shm_region::Roots { proc: "/proc".into(), ..tree.roots() };
    let liveness = || {
        let mut regions = Regions::new(roots.clone());
        regions.poll(Instant::now());
        regions.regions()[0].content.as_ref().unwrap().processes[0].liveness.clone()
    };
    assert_eq!(liveness(), Liveness::Uncertain(Doubt::NotMapped));
    let file = std::fs::File::open(tree.region(CHIP)).unwrap();
    let map = tt_shm_os::ReadMap::open(&file, 8576).unwrap();
    assert_eq!(liveness(), Liveness::Alive { pid_here: pid });
    drop(map);
    assert_eq!(liveness(), Liveness::Uncertain(Doubt::NotMapped));
}

/// `cargo test -p tt-shm-tests --test suite -- region_processes::time --ignored --nocapture`
#[test]
#[ignore = "prints how long a poll takes: a time is no reason to fail, so nobody waits for it"]
fn time_of_a_poll_of_32_regions() {
    let tree = RegionTree::default();
    let pid = std::process::id();
    let maps: Vec<_> = (0..32)
        .map(|chip| {
            let slots = [(pid as i32, [1; 5]), (0x7fff_fff0, [2; 5])];
            let image = RegionImage::honest(3, chip, &slots);
            tree.publish(chip, &image.written(0, tt_shm_tests::region::seconds_ago(0)));
            tt_shm_os::ReadMap::open(std::fs::File::open(tree.region(chip)).unwrap(), 8576).unwrap()
        })
        .collect();
    let mut regions = Regions::new(tt_shm_region::Roots { proc: "/proc".into(), ..tree.roots() });
    let mut now = Instant::now();
    let mut times: Vec<Duration> = (0..1000)
        .map(|_| {
            now += Duration::from_millis(100);
            let start = Instant::now();
            assert!(regions.poll(now));
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    println!(
        "{} regions, a process and a ghost in each: median {:?}, longest {:?}",
        maps.len(),
        times[500],
        times[999]
    );
}
