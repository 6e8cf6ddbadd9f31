//! Checks of /dev/shm: existence, permissions, free space.

use std::os::unix::fs::MetadataExt;

use rustix::fs::{Access, access, statvfs};

use super::finding::Finding;
use super::roots::Roots;
use crate::output::units::bytes;

/// Docker's default size.
const DOCKER: u64 = 64 << 20;
/// Room for a few segments.
const LITTLE: u64 = 32 << 20;
/// Not enough for a single segment.
const NONE: u64 = 2 << 20;

/// Checks the folder and its permissions.
pub(super) fn folder(roots: &Roots) -> Finding {
    const CHECK: &str = "shm_permissions";
    let shown = roots.shm.display();
    let Ok(stat) = roots.shm.metadata() else {
        return Finding::fail(CHECK, format!("{shown} does not exist"), "mount a tmpfs there");
    };
    let mode = stat.mode() & 0o7777;
    if access(&roots.shm, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let advice = "processes of this user cannot report; set mode 1777";
        return Finding::fail(
            CHECK,
            format!("{shown} is not writable for this user (mode {mode:o})"),
            advice,
        );
    }
    if mode & 0o1002 == 0o0002 {
        let advice = "users can remove each other's files; set mode 1777";
        return Finding::warn(CHECK, format!("{shown} has mode {mode:o}, without the sticky bit"), advice);
    }
    Finding::pass(CHECK, format!("{shown} has mode {mode:o}"))
}

/// Checks its size and what is free.
pub(super) fn room(roots: &Roots) -> Finding {
    const CHECK: &str = "shm_room";
    let Ok(stat) = statvfs(&roots.shm) else {
        return Finding::fail(CHECK, "cannot read the size of /dev/shm", "mount a tmpfs at /dev/shm");
    };
    let (size, free) = (stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize);
    judge(CHECK, size, free)
}

fn judge(check: &'static str, size: u64, free: u64) -> Finding {
    let found = format!("{} free of {}", bytes(free), bytes(size));
    let larger = "make it larger: `mount -o remount,size=2G /dev/shm`, or `--shm-size` of a container";
    match (free, size) {
        (..NONE, _) => Finding::fail(check, found, format!("no further process can report; {larger}")),
        (..LITTLE, _) => {
            Finding::warn(check, found, format!("a segment takes 1.5 MiB and can grow; {larger}"))
        }
        (_, DOCKER) => Finding::warn(
            check,
            format!("{found}, which is Docker's default"),
            "start the container with `--ipc host` or `--shm-size=2g`",
        ),
        _ => Finding::pass(check, found),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn too_little_room_is_told_in_time() {
        let level = |size, free| judge("shm_room", size, free).level;
        assert_eq!(level(8 << 30, 4 << 30), Level::Pass);
        assert_eq!(level(8 << 30, 16 << 20), Level::Warn);
        assert_eq!(level(8 << 30, 1 << 20), Level::Fail);
        assert_eq!(level(DOCKER, DOCKER), Level::Warn);
        assert!(judge("shm_room", DOCKER, DOCKER).found.contains("Docker"));
    }
}
