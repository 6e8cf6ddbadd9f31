//! Segments and tables that were opened elsewhere: checked as those that are opened by path.

use std::fs::{File, OpenOptions, hard_link, remove_file, set_permissions};
use std::io::{Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::segment::{Writer, path_in};
use crate::common::table::Publisher;
use crate::common::{Removed, euid, namespace, new_file};
use tt_shm_os::path_of;
use tt_shm_reader::{Class, FileError, OpenError, Segment, Table, TableError};

fn descriptor(path: &Path) -> OwnedFd {
    File::open(path).unwrap().into()
}

fn refusal(fd: OwnedFd) -> OpenError {
    Segment::open_fd(fd).expect_err("must be refused")
}

#[test]
fn a_segment_is_the_same_as_by_its_path() {
    let mut writer = Writer::new(2);
    writer.alloc(0, Class::Dram, 1, 10);
    let by_path = writer.open();
    let mut given = File::open(writer.path()).unwrap();
    given.seek(SeekFrom::Start(7)).unwrap();
    let segment = Segment::open_fd(given.try_clone().unwrap().into()).unwrap();
    assert_eq!(segment.header(), by_path.header());
    assert_eq!((segment.file_name(), segment.inode()), (by_path.file_name(), by_path.inode()));
    assert_eq!((segment.uid(), segment.is_alive().unwrap()), (euid(), true));
    assert_eq!(segment.counters().unwrap(), by_path.counters().unwrap());
    assert_eq!(given.stream_position().unwrap(), 7, "whoever shares the description is not disturbed");
    writer.kill();
    assert!(!segment.is_alive().unwrap());
}

/// The lock belongs to the description, and its own lock is nothing that a description sees.
#[test]
fn the_descriptor_of_the_process_itself_tells_that_it_lives() {
    let path = path_in(&namespace());
    let header = crate::common::segment::header();
    let (file, _removed) = new_file(&path, header.total_len, 0o600);
    tt_shm_os::lock_exclusive(std::os::fd::AsFd::as_fd(&file)).unwrap();
    let map = tt_shm_os::WriteMap::new(&file, header.total_len as usize).unwrap();
    map.populate(0, header.total_len as usize).unwrap();
    shm_layout::store_pod(map.words(), &header);
    let segment = Segment::open_fd(file.try_clone().unwrap().into()).unwrap();
    assert!(segment.is_alive().unwrap());
}

#[test]
fn an_unlinked_segment_is_opened_under_the_name_that_it_had() {
    let writer = Writer::new(1);
    let fd = descriptor(writer.path());
    remove_file(writer.path()).unwrap();
    let segment = Segment::open_fd(fd).unwrap();
    assert_eq!(Some(segment.file_name()), writer.path().file_name().and_then(|name| name.to_str()));
    assert!(segment.is_alive().unwrap());
}

#[test]
fn what_is_refused_by_path_is_refused() {
    let writer = Writer::new(1);
    let link = Removed(path_in(&namespace()));
    hard_link(writer.path(), link.path()).unwrap();
    let error = refusal(descriptor(writer.path()));
    assert!(matches!(error, OpenError::File(FileError::Links { links: 2, .. })), "{error}");
    drop(link);
    set_permissions(writer.path(), PermissionsExt::from_mode(0o620)).unwrap();
    let error = refusal(descriptor(writer.path()));
    assert!(matches!(error, OpenError::File(FileError::Writable { mode: 0o620, .. })), "{error}");
    let path = path_in(&namespace());
    let (short, _removed) = new_file(&path, 100, 0o600);
    let error = refusal(short.into());
    assert!(matches!(error, OpenError::File(FileError::Size { len: 100, .. })), "{error}");
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
}

#[test]
fn what_is_no_regular_file_is_refused() {
    let folder = descriptor(Path::new("/dev/shm"));
    let device = descriptor(Path::new("/dev/null"));
    let (pipe, _other) = rustix::pipe::pipe().unwrap();
    let found = [folder, device, pipe].map(|fd| match refusal(fd) {
        OpenError::File(FileError::NotRegular { kind, .. }) => kind,
        error => panic!("{error}"),
    });
    assert_eq!(found, ["a directory", "a device", "a FIFO"]);
}

#[test]
fn a_renamed_segment_is_refused() {
    let writer = Writer::new(1);
    let other = Removed(path_of(&tt_shm_os::segment_file_name(&namespace(), 1, 1)));
    std::fs::rename(writer.path(), other.path()).unwrap();
    let error = refusal(descriptor(other.path()));
    assert!(matches!(error, OpenError::Identity { name_pid: 1, name_identity: 1, .. }), "{error}");
}

#[test]
fn a_descriptor_for_writing_only_is_opened_anew() {
    let writer = Writer::new(1);
    let fd = OpenOptions::new().write(true).open(writer.path()).unwrap();
    assert!(Segment::open_fd(fd.into()).unwrap().is_alive().unwrap());
}

#[test]
fn a_table_must_belong_to_root_or_to_the_caller() {
    let publisher = Publisher::new();
    let table = Table::open_fd(descriptor(publisher.path())).unwrap();
    assert_eq!((table.path(), *table.header()), (publisher.path(), publisher.header));
    assert!(table.freshness().is_fresh() && !table.is_replaced());
    remove_file(publisher.path()).unwrap();
    assert!(table.is_replaced());
    assert_eq!(table.device(0).copy(), None);
    if euid() == 0 {
        let stranger = Publisher::new().give_to(54_321);
        let error = Table::open_fd(descriptor(stranger.path())).unwrap_err();
        assert!(matches!(error, TableError::Owner { owner: 54_321, expected: 0, .. }), "{error}");
    }
    let segment = Writer::new(1);
    assert!(matches!(Table::open_fd(descriptor(segment.path())), Err(TableError::Layout { .. })));
}
