//! A file truncated under its mapping. In a binary of its own, because the handler applies to the whole
//! process.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::Ordering::Relaxed;
use tt_shm_os::{ReadMap, guard_truncation};

#[test]
fn a_lost_file_reads_as_zeros_and_others_are_untouched() {
    guard_truncation().unwrap();
    let file = || {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 16384]).unwrap();
        file
    };
    let (lost, kept) = (file(), file());
    let open = |file: &File| ReadMap::open(file, 16384).unwrap();
    let (lost_map, kept_map) = (open(&lost), open(&kept));
    lost.set_len(4096).unwrap();
    assert!(!lost_map.is_lost());
    assert_eq!(lost_map.words()[2047].load(Relaxed), 0);
    assert!(lost_map.is_lost() && !kept_map.is_lost());
    assert_eq!(lost_map.words()[0].load(Relaxed), 0, "all of it is gone, not a part");
    assert_eq!(kept_map.words()[2047].load(Relaxed), u64::from_ne_bytes([7; 8]));
    drop(lost_map);
    let again = open(&kept);
    assert!(!again.is_lost(), "a place in the list is as new");
}
