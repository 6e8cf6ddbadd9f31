//! A host that locks all of its memory. In a binary of its own, because that applies to the whole process.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::sync::atomic::Ordering::Relaxed;

use rustix::mm::{MlockAllFlags, mlockall};
use tt_shm_os::{ReadMap, SHM_DIR, WriteMap};

const LEN: usize = 133 << 20;

fn flags_of(address: usize) -> String {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let start = format!("{address:x}-");
    let mapping = maps.lines().skip_while(|line| !line.starts_with(&start));
    mapping.skip(1).find(|line| line.starts_with("VmFlags:")).expect("it is mapped").to_owned()
}

#[test]
fn a_sparse_file_stays_sparse_and_out_of_core_dumps() {
    if let Err(error) = mlockall(MlockAllFlags::FUTURE) {
        eprintln!("skipped: this machine does not let us lock memory (mlockall): {error}");
        return;
    }
    let mut options = File::options();
    let file =
        options.read(true).write(true).custom_flags(libc::O_TMPFILE).mode(0o600).open(SHM_DIR).unwrap();
    file.set_len(LEN as u64).unwrap();
    let bytes = || file.metadata().unwrap().blocks() * 512;
    let writer = WriteMap::new(&file, LEN).unwrap();
    writer.populate(1 << 20, 1 << 20).unwrap();
    writer.words()[(2 << 20) / 8 - 1].store(7, Relaxed);
    let again = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap();
    let reader = ReadMap::open(&again, LEN).unwrap();
    assert_eq!(reader.words()[(2 << 20) / 8 - 1].load(Relaxed), 7);
    assert!(bytes() <= (1 << 20) + 8192, "{} bytes were allocated", bytes());
    for first in [writer.words().as_ptr(), reader.words().as_ptr()] {
        let flags = flags_of(first.addr());
        assert!(flags.contains(" dd") && !flags.contains(" lo"), "{flags}");
    }
}
