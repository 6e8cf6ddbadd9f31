//! The aggregator's table: which user's is read, and how old it is.

use crate::common::table::{Publisher, header};
use crate::common::{Removed, euid, namespace};
use shm_layout::table::control;
use tt_shm_reader::{FileError, Freshness, LayoutError, Table, TableError, TableHeader, monotonic_ns};

/// Neither root nor whoever runs the test.
const STRANGER: u32 = 54_321;

#[test]
fn no_table_is_said_to_be_none() {
    let ns = namespace();
    let error = Table::open(&ns).unwrap_err();
    assert!(matches!(&error, TableError::NotFound { namespace, uid } if *namespace == ns && *uid == euid()));
    assert!(error.is_not_found() && error.to_string().contains("tt-smi aggregate"), "{error}");
}

#[test]
fn the_own_table_is_opened() {
    let publisher = Publisher::new();
    let table = Table::open(&publisher.namespace).unwrap();
    assert_eq!((table.path(), *table.header()), (publisher.path(), publisher.header));
}

#[test]
fn the_owner_must_be_the_one_in_the_name() {
    let publisher = Publisher::new();
    let error = Table::open_path(publisher.path(), euid() + 1).unwrap_err();
    assert!(
        matches!(error, TableError::Owner { owner, expected, .. } if owner == euid() && expected == euid() + 1)
    );
}

#[test]
fn a_file_that_others_may_write_is_refused() {
    let publisher = Publisher::new();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o664);
    std::fs::set_permissions(publisher.path(), mode).unwrap();
    assert!(matches!(publisher.try_open(), Err(TableError::File(FileError::Writable { mode: 0o664, .. }))));
}

#[test]
fn a_segment_is_no_table() {
    let bad = TableHeader { magic: shm_layout::SEGMENT_MAGIC, ..header() };
    let publisher = Publisher::with_header(&namespace(), euid(), bad);
    assert!(matches!(publisher.try_open(), Err(TableError::Layout { cause: LayoutError::Magic { .. }, .. })));
}

/// Needs root, to have files of two users. As another user it can only check the file at root's name.
#[test]
fn roots_table_goes_first_and_a_file_in_its_place_does_not_count() {
    let ns = namespace();
    let is_root = euid() == 0;
    let user = if is_root { STRANGER } else { euid() };
    let own = Publisher::with_header(&ns, user, header());
    let own = if is_root { own.give_to(user) } else { own };
    let opened = |uid| Table::open_for(&ns, uid).unwrap();
    assert_eq!(opened(user).path(), own.path());
    assert!(Table::open_for(&ns, user + 1).unwrap_err().is_not_found(), "no other user's");

    let squatted = Publisher::with_header(&ns, 0, header());
    if !is_root {
        assert_eq!(opened(user).path(), own.path(), "not root's file, so not root's table");
        return;
    }
    let root = squatted;
    assert_eq!(opened(user).path(), root.path());
    assert_eq!(opened(user + 1).path(), root.path());
    root.set(control::CLOSED, 1);
    assert_eq!(opened(user).path(), own.path(), "root's has ended, the own one runs");
    own.set(control::CLOSED, 1);
    assert_eq!(opened(user).path(), root.path(), "neither runs");
    root.set(control::CLOSED, 0);
    let squatted = root.give_to(user);
    assert_eq!(opened(user).path(), own.path(), "not root's file, so not root's table");
    assert!(matches!(Table::open_for(&ns, user + 1), Err(TableError::Owner { expected: 0, .. })));
    drop(own);
    assert!(matches!(Table::open_for(&ns, user), Err(TableError::Owner { owner, .. }) if owner == user));
    drop(squatted);
    assert!(Table::open_for(&ns, user).unwrap_err().is_not_found());
}

#[test]
fn a_new_file_under_the_name_is_noticed() {
    let publisher = Publisher::new();
    let table = publisher.open();
    assert!(!table.is_replaced());
    let aside = Removed(publisher.path().with_extension("old"));
    std::fs::rename(publisher.path(), aside.path()).unwrap();
    assert!(table.is_replaced(), "gone");
    let _new = Publisher::with_header(&publisher.namespace, euid(), header());
    assert!(table.is_replaced());
    assert!(!publisher.open().is_replaced());
}

#[test]
fn a_heartbeat_gets_old() {
    let publisher = Publisher::new();
    let table = publisher.open();
    let interval = 2_000_000_000_000_000;
    publisher.set(control::INTERVAL, interval);
    let heartbeat = monotonic_ns();
    publisher.set(control::HEARTBEAT, heartbeat);
    let now = table.freshness();
    assert_eq!((now.heartbeat_ns, now.interval_ns, now.closed), (heartbeat, interval, false));
    assert!(now.is_fresh());

    publisher.set(control::CLOSED, 1);
    assert!(table.freshness().closed && !table.freshness().is_fresh());
    publisher.set(control::CLOSED, 0);
    publisher.set(control::HEARTBEAT, monotonic_ns() + 3_600_000_000_000);
    assert_eq!(table.freshness().age_ns, u64::MAX, "of the future");
    assert!(!table.freshness().is_fresh());
}

#[test]
fn three_intervals_and_a_second_are_allowed() {
    let at = |age_ns| Freshness { heartbeat_ns: 0, age_ns, closed: false, interval_ns: 100 }.is_fresh();
    assert!(at(0) && at(1_000_000_300) && !at(1_000_000_301) && !at(u64::MAX));
    let endless = Freshness { heartbeat_ns: 0, age_ns: u64::MAX, closed: false, interval_ns: u64::MAX };
    assert!(!endless.is_fresh());
}

#[test]
fn a_table_of_another_boot_is_never_fresh() {
    let mut other = header();
    other.boot_id[3] ^= 1;
    let publisher = Publisher::with_header(&namespace(), euid(), other);
    let freshness = publisher.open().freshness();
    assert_eq!(freshness.age_ns, u64::MAX);
    assert!(!freshness.is_fresh());
}
