//! Files that are no regions, or not yet, or not for us; and when they are read again.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tt_shm_os::WriteMap;
use tt_shm_region::{Absence, Fault, Reading, Refusal, Region, Regions};
use tt_shm_tests::executable::copy_program;
use tt_shm_tests::region::{REGION_LEN, seconds_ago};
use tt_shm_tests::{RegionImage, RegionTree};

const CHIP: u64 = 7;
const POLL: Duration = Duration::from_millis(100);

/// Regions of a tree, with their clock.
struct Watch {
    regions: Regions,
    now: Instant,
}

impl Watch {
    fn new(tree: &RegionTree) -> Watch {
        Watch { regions: Regions::new(tree.roots()), now: Instant::now() }
    }

    /// The regions at the next poll.
    fn next(&mut self) -> &[Region] {
        self.now += POLL;
        assert!(self.regions.poll(self.now));
        self.regions.regions()
    }

    /// DRAM of the only region.
    #[track_caller]
    fn dram(&mut self) -> Reading<u64> {
        let [region] = self.next() else { panic!("not one region") };
        region.content.as_ref().map(|content| content.totals.dram).map_err(Absence::clone)
    }
}

fn holding(bytes: u64) -> RegionImage {
    RegionImage::honest(3, CHIP, &[(100, [bytes, 0, 0, 0, 0])])
}

#[test]
fn what_is_being_created_is_looked_at_again() {
    let tree = RegionTree::default();
    let mut watch = Watch::new(&tree);
    let path = tree.region(CHIP);
    let starting = |len| Err(Absence::Starting { path: path.clone(), len });
    for len in [0, 1, 100, REGION_LEN as u64 - 1] {
        fs::write(&path, vec![3; len as usize]).unwrap();
        assert_eq!(watch.dram(), starting(len), "{len}");
        assert!(watch.dram().unwrap_err().to_string().contains("being created"));
    }
    // Sized, not filled in; then its version is there before its time.
    let unfilled = RegionImage(vec![0; REGION_LEN]);
    tree.publish(CHIP, &unfilled);
    assert_eq!(watch.dram(), starting(REGION_LEN as u64));
    tree.publish(CHIP, &unfilled.u32(0, 3));
    assert_eq!(watch.dram(), starting(REGION_LEN as u64));
    for state in [0, 1, 0x5245_4458] {
        tree.publish(CHIP, &RegionImage::honest(4, CHIP, &[]).state(state));
        assert_eq!(watch.dram(), starting(REGION_LEN as u64));
    }
    tree.publish(CHIP, &RegionImage::honest(4, CHIP, &[(1, [9; 5])]));
    assert_eq!(watch.dram(), Ok(9));
}

/// Truncated while it is watched: a mapping would raise SIGBUS.
#[test]
fn a_file_may_be_truncated_at_any_time() {
    let tree = RegionTree::default();
    let mut watch = Watch::new(&tree);
    tree.publish(CHIP, &holding(9));
    assert_eq!(watch.dram(), Ok(9));
    fs::File::options().write(true).open(tree.region(CHIP)).unwrap().set_len(10).unwrap();
    assert!(matches!(watch.dram(), Err(Absence::Starting { len: 10, .. })));
    tree.publish(CHIP, &holding(11));
    assert_eq!(watch.dram(), Ok(11));
}

#[test]
fn other_versions_are_refused_by_their_number() {
    let tree = RegionTree::default();
    let mut watch = Watch::new(&tree);
    for version in [1, 5, 0x0300_0000, u32::MAX] {
        tree.publish(CHIP, &holding(9).u32(0, version));
        let absence = watch.dram().unwrap_err();
        let refusal = Refusal::Version(version);
        assert_eq!(absence, Absence::Refused { path: tree.region(CHIP), refusal });
        let text = absence.to_string();
        assert!(text.contains(&tree.region(CHIP).display().to_string()) && text.contains("update"), "{text}");
        assert!(text.contains(&format!("version {version}")), "{text}");
    }
}

#[test]
fn what_is_no_regular_file_of_a_sane_size_is_refused() {
    let tree = RegionTree::default();
    let mut watch = Watch::new(&tree);
    let (path, elsewhere) = (tree.region(CHIP), tree.path().join("elsewhere"));
    fs::write(&elsewhere, holding(9).0).unwrap();
    let refused = |watch: &mut Watch, refusal| {
        let absence = watch.dram().unwrap_err();
        assert_eq!(absence, Absence::Refused { path: path.clone(), refusal });
        assert!(absence.to_string().contains("remove it"), "{absence}");
    };
    symlink(&elsewhere, &path).unwrap();
    refused(&mut watch, Refusal::NotRegular);
    fs::remove_file(&path).unwrap();
    // Nobody is at the other end: opening it would wait.
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    refused(&mut watch, Refusal::NotRegular);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    refused(&mut watch, Refusal::NotRegular);
    fs::remove_dir(&path).unwrap();
    let _listening = std::os::unix::net::UnixListener::bind(&path).unwrap();
    refused(&mut watch, Refusal::NotRegular);
    fs::remove_file(&path).unwrap();
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    refused(&mut watch, Refusal::TooLarge(1 << 40));
    // A page more than it needs is a region.
    let mut longer = holding(9);
    longer.0.resize(12288, 0xff);
    tree.publish(CHIP, &longer);
    assert_eq!(watch.dram(), Ok(9));
}

#[test]
fn who_may_write_it_is_looked_at() {
    let tree = RegionTree::default();
    let mut watch = Watch::new(&tree);
    tree.publish(CHIP, &holding(9));
    for (mode, is_fault) in [(0o600, false), (0o644, false), (0o620, true), (0o666, true)] {
        fs::set_permissions(tree.region(CHIP), fs::Permissions::from_mode(mode)).unwrap();
        let content = watch.next()[0].content.clone().unwrap();
        let found = content.faults.iter().any(|fault| matches!(fault, Fault::WritableByOthers { .. }));
        assert_eq!(found, is_fault, "{mode:o}: {:?}", content.faults);
    }
    assert_eq!(watch.regions.regions()[0].owner, Some(rustix::process::getuid().as_raw()));
}

/// Reading as another user needs another process: this test starts itself once more.
#[test]
fn what_belongs_to_another_user_is_denied_by_name() {
    const FOLDER: &str = "TT_TEST_REGION_FOLDER";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let mut regions = Regions::new(tt_shm_region::Roots::below(folder));
        regions.poll(Instant::now());
        let absence = regions.regions()[0].content.clone().unwrap_err();
        assert!(matches!(absence, Absence::Denied { owner: 0, .. }), "{absence:?}");
        assert!(absence.to_string().ends_with("may be read by user 0 and by root only: run as one of them"));
        return;
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped, needs root: another user");
        return;
    }
    let tree = RegionTree::default();
    tree.publish(CHIP, &holding(9));
    let open = |path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    open(tree.path().to_owned(), 0o755);
    open(tree.region(CHIP), 0o600);
    // Where another user may execute it.
    let program = tree.path().join("test");
    copy_program(std::env::current_exe().unwrap(), &program);
    let mut again = Command::new(program);
    again.args(["--exact", "region_files::what_belongs_to_another_user_is_denied_by_name", "--nocapture"]);
    let output = again.env(FOLDER, tree.path()).uid(65534).gid(65534).current_dir("/").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{output:?}");
}

#[test]
fn a_file_that_replaces_another_is_opened() {
    let tree = RegionTree::default();
    let mut watch = Watch::new(&tree);
    tree.publish(CHIP, &holding(9));
    assert_eq!(watch.dram(), Ok(9));
    let (path, next) = (tree.region(CHIP), tree.path().join("next"));
    fs::write(&next, holding(10).0).unwrap();
    fs::rename(&next, &path).unwrap();
    assert_eq!(watch.dram(), Ok(10));
    fs::remove_file(&path).unwrap();
    assert_eq!(watch.next(), [], "gone at once");
    tree.publish(CHIP, &holding(11));
    (0..9).for_each(|_| drop(watch.next().to_vec()));
    assert_eq!(watch.dram(), Ok(11), "found within a second");
}

#[test]
fn regions_come_and_go_and_are_ordered() {
    let tree = RegionTree::default();
    let mut watch = Watch::new(&tree);
    assert!(watch.next().is_empty() && watch.regions.listed().is_ok());
    for chip in [u64::MAX, 0, 4_294_967_296, 10] {
        tree.publish(chip, &RegionImage::honest(3, chip, &[]));
    }
    tree.write("dev/shm/tt_device_x_memory", "not one");
    tree.write("dev/shm/sem.tt_device_1_memory", "not one");
    watch.now += Duration::from_secs(1);
    let chips: Vec<u64> = watch.next().iter().map(|region| region.chip_id).collect();
    assert_eq!(chips, [0, 10, 4_294_967_296, u64::MAX]);
    assert!(watch.regions.regions().iter().all(|region| region.content.as_ref().unwrap().faults.is_empty()));
    fs::remove_file(tree.region(10)).unwrap();
    assert_eq!(watch.next().len(), 3);
    assert_eq!(watch.regions.gaps(), Vec::<String>::new());
    let mut nowhere = Watch::new(&tree);
    nowhere.regions = Regions::new(tt_shm_region::Roots::below(tree.path().join("nowhere")));
    assert!(nowhere.next().is_empty());
    assert!(matches!(nowhere.regions.listed(), Err(Absence::Missing { .. })));
}

#[test]
fn nobody_makes_a_monitor_read_more_than_it_should() {
    let tree = RegionTree::default();
    for chip in 0..100 {
        tree.publish(chip, &RegionImage::honest(3, chip, &[]));
    }
    let mut watch = Watch::new(&tree);
    assert_eq!(watch.next().len(), 64);
    assert_eq!(watch.regions.left_out(), 36);
    assert!(watch.regions.gaps()[0].ends_with(": 36"), "{:?}", watch.regions.gaps());
}

#[test]
fn polls_that_come_too_early_read_nothing() {
    let tree = RegionTree::default();
    tree.publish(CHIP, &holding(1));
    let mut watch = Watch::new(&tree);
    assert_eq!(watch.dram(), Ok(1));
    tree.publish(CHIP, &holding(2));
    for ms in [0, 50, 99] {
        assert!(!watch.regions.poll(watch.now + Duration::from_millis(ms)));
    }
    assert_eq!(watch.regions.regions()[0].content.as_ref().unwrap().totals.dram, 1);
    assert_eq!(watch.dram(), Ok(2));
}

/// A region is never written, locked, or kept from being removed.
#[test]
fn reading_leaves_no_trace() {
    let tree = RegionTree::default();
    tree.publish(CHIP, &holding(1));
    let before = fs::metadata(tree.region(CHIP)).unwrap();
    let mut watch = Watch::new(&tree);
    (0..5).for_each(|_| assert_eq!(watch.dram(), Ok(1)));
    let after = fs::metadata(tree.region(CHIP)).unwrap();
    assert_eq!((before.mtime_nsec(), before.ctime_nsec()), (after.mtime_nsec(), after.ctime_nsec()));
    let (inode, maps) = (after.ino().to_string(), fs::read_to_string("/proc/self/maps").unwrap());
    let path = tree.region(CHIP).display().to_string();
    assert!(!maps.contains(&path), "it is not mapped");
    let locks = fs::read_to_string("/proc/locks").unwrap();
    assert!(!locks.lines().any(|line| line.contains(&format!(":{inode} "))), "{locks}");
}

/// Ends a thread, also when the test fails.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A writer that changes its counters one after another, all the time: each number is one that was written, and that
/// counters differ between its stores is not called a fault.
#[test]
fn torn_copies_make_no_false_statements() {
    let tree = RegionTree::default();
    let image = |bytes| holding(bytes).updated(seconds_ago(0));
    tree.publish(CHIP, &image(0));
    let is_over = AtomicBool::new(false);
    let file = fs::File::options().read(true).write(true).open(tree.region(CHIP)).unwrap();
    let map = WriteMap::new(&file, REGION_LEN).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut bytes = 0_u64;
            while !is_over.load(Ordering::Relaxed) {
                bytes += 4096;
                // The total, the chip, the process, the time, as tt-metal does.
                for place in [48, 96, 864] {
                    map.words()[place / 8].store(bytes, Ordering::Relaxed);
                }
                map.words()[1].store(seconds_ago(0), Ordering::Relaxed);
            }
        });
        let _end = Ended(&is_over);
        let mut watch = Watch::new(&tree);
        let (mut unsteady, mut last, mut polls, start) = (0, 0, 0, Instant::now());
        let mut changes = 0;
        // Some polls, and as many as it takes to meet the writer at work.
        while polls < 500 || unsteady == 0 {
            polls += 1;
            let content = watch.next()[0].content.clone().unwrap();
            // A writer that does not get the processor for 100 ms looks like one that is done.
            let silence = Duration::from_nanos(seconds_ago(0).saturating_sub(content.updated_ns));
            let is_at_work = silence < POLL;
            assert!(content.faults.is_empty() || !is_at_work, "a writer at work: {:?}", content.faults);
            assert!(start.elapsed() < Duration::from_secs(60), "{polls} polls, and never met the writer");
            let total = content.totals.dram;
            assert!(
                total >= last && total.is_multiple_of(4096),
                "{last}, then {total}: no number that was written"
            );
            changes += u64::from(total != last);
            last = total;
            unsteady += usize::from(!content.is_steady);
        }
        println!("{unsteady} of {polls} copies were not steady, {changes} showed something new");
    });
    let mut watch = Watch::new(&tree);
    let content = watch.next()[0].content.clone().unwrap();
    assert!(content.is_steady);
    assert_eq!(content.totals, content.sum(|_| true));
}
