//! A region that changes in any way while it is watched.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use tt_shm_region::Regions;

use super::patch::{Step, steps};
use crate::machine::FakeProcess;
use crate::region::{REGION_LEN, RegionImage, RegionTree};

const CHIP: u64 = 7;
const PIDS: [u32; 2] = [100, 101];

thread_local! {
    static TREE: RefCell<RegionTree> = {
        let tree = RegionTree::default();
        tree.publish(CHIP, &RegionImage::new(3, CHIP));
        // One that uses the region, and one in a container.
        tree.add_process(&FakeProcess::new(PIDS[0], "python").mapping(&tree.region(CHIP)));
        tree.add_process(&FakeProcess::new(9000, "python").calling_itself(PIDS[1]));
        RefCell::new(tree)
    };
}

/// See [`super::BODIES`]. A change is at any byte, aligned or not.
pub(super) fn run(data: &[u8]) {
    TREE.with_borrow_mut(|tree| {
        let mut image = RegionImage::honest(3, CHIP, &PIDS.map(|pid| (pid as i32, [1 << 20; 5])));
        tree.publish(CHIP, &image);
        let mut regions = Regions::new(tree.roots());
        let mut now = Instant::now();
        for step in steps(data) {
            match step {
                Step::Store { word, value, .. } => {
                    let place = word % REGION_LEN;
                    let end = REGION_LEN.min(place + 8);
                    image.0[place..end].copy_from_slice(&value.to_le_bytes()[..end - place]);
                }
                Step::Look => {
                    tree.publish(CHIP, &image);
                    now += Duration::from_millis(400);
                    assert!(regions.poll(now));
                    assert_sane(&regions);
                }
            }
        }
    });
}

/// Whatever stands there, there is one region, and what is said of it is bounded and can be shown.
fn assert_sane(regions: &Regions) {
    let [region] = regions.regions() else { panic!("{} regions", regions.regions().len()) };
    match &region.content {
        Ok(content) => {
            assert!(content.is_steady && content.chips.len() <= 16);
            assert!(content.processes.len() + content.releasing as usize <= 64);
            assert!(content.faults.len() < 1000);
            let said = content.faults.iter().map(ToString::to_string);
            let said = said.chain(content.processes.iter().map(|process| process.liveness.to_string()));
            said.for_each(|text| assert!(!text.is_empty() && text.len() < 300, "{text}"));
            let plausible = content.sum(|process| process.bytes.is_plausible());
            assert!(plausible.is_plausible() || content.processes.len() > 1);
        }
        Err(absence) => assert!(absence.to_string().contains("tt_device_7_memory")),
    }
}
