//! `tt-smi clean`: removes the files of dead processes from /dev/shm, and prints what they held.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::fs::{Mode, OFlags};
use tt_shm_os::{Namespace, SHM_DIR, is_write_locked, monotonic_ns, parse_segment_name};
use tt_shm_reader::{Class, Segment};

use crate::cli::CleanArgs;
use crate::escape::escape;
use crate::output::units::{bytes, plural};
use crate::settings::Settings;

/// Runs the command.
pub(crate) fn run(args: &CleanArgs, settings: &Settings) -> anyhow::Result<()> {
    let only = (!args.all_namespaces).then_some(&settings.namespace);
    let mut out = super::stdout();
    let mut removed = 0;
    for file in dead_files(only).with_context(|| format!("cannot read {SHM_DIR}"))? {
        let held = describe(&file.path);
        match if args.dry_run { Ok(true) } else { file.remove() } {
            Ok(true) => {
                removed += 1;
                let verb = if args.dry_run { "would remove" } else { "removed" };
                writeln!(out, "{verb} {}: {held}", escape(&file.name))?;
            }
            Ok(false) => {}
            Err(error) => eprintln!("tt-smi: cannot remove {}: {error}", escape(&file.name)),
        }
    }
    let what = plural(removed, "file");
    writeln!(out, "{}", if args.dry_run { format!("{what} to remove") } else { format!("{what} removed") })?;
    Ok(out.flush()?)
}

/// Removes the files of these processes if they are dead, without printing anything.
pub(crate) fn remove_dead(namespace: &Namespace, pids: &[u32]) -> io::Result<()> {
    let of_these =
        |file: &&DeadFile| parse_segment_name(&file.name).is_some_and(|name| pids.contains(&name.pid));
    dead_files(Some(namespace))?.iter().filter(of_these).try_for_each(|file| file.remove().map(drop))
}

/// A file whose writer is gone.
struct DeadFile {
    path: PathBuf,
    name: String,
    inode: (u64, u64),
}

/// The files of dead processes in /dev/shm, of one namespace or of all.
fn dead_files(only: Option<&Namespace>) -> io::Result<Vec<DeadFile>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(SHM_DIR)? {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        let namespace = parse_segment_name(&name).map(|name| name.namespace);
        let table = namespace.is_none().then(|| temporary_table(&name)).flatten();
        let wanted = |namespace: &Namespace| only.is_none_or(|only| only == namespace);
        let dead = match (namespace, table) {
            (Some(namespace), _) if wanted(&namespace) => dead_segment(&entry.path()),
            (None, Some(namespace)) if wanted(&namespace) => abandoned_table(&namespace, &entry.path()),
            _ => None,
        };
        files.extend(dead.map(|inode| DeadFile { path: entry.path(), name, inode }));
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

/// Device and inode of a segment whose process is dead. A segment has its name only while its lock is held
/// or after its process ended: no lock, no process. Segments kept for a `tt-smi run` are left to that run.
fn dead_segment(path: &Path) -> Option<(u64, u64)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let dead = is_write_locked(file.as_fd()).is_ok_and(|locked| !locked);
    let stat = rustix::fs::fstat(&file).ok()?;
    let left = |segment: Segment| segment.header().is_left_to_run(monotonic_ns());
    (dead && !Segment::open(path).is_ok_and(left)).then_some((stat.st_dev, stat.st_ino))
}

/// The namespace of a table that was never renamed to its final name (`tt-shm.v2.<namespace>.<uid>.table-<random>`),
/// if it belongs to this user.
fn temporary_table(name: &str) -> Option<Namespace> {
    let (table, random) = name.rsplit_once('-')?;
    let namespace = Namespace::new(table.strip_prefix("tt-shm.v2.")?.split('.').next()?).ok()?;
    let own = tt_shm_os::table_file_name(&namespace, rustix::process::geteuid().as_raw());
    (table == own && random.len() == 16).then_some(namespace)
}

/// Device and inode of such a table, unless an aggregator of this user is about to rename it.
fn abandoned_table(namespace: &Namespace, path: &Path) -> Option<(u64, u64)> {
    // Getting the lock, even for a moment, shows that no aggregator holds it.
    tt_shm_aggregator::Claim::take(namespace).ok()?;
    let stat = rustix::fs::lstat(path).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

impl DeadFile {
    /// Removes it, unless the path names another file by now.
    fn remove(&self) -> io::Result<bool> {
        match rustix::fs::lstat(&self.path) {
            Ok(stat) if (stat.st_dev, stat.st_ino) == self.inode => {
                rustix::fs::unlink(&self.path)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

/// What the process held when it died, per class over all devices.
fn describe(path: &Path) -> String {
    let segment = match Segment::open(path) {
        Ok(segment) => segment,
        Err(error) => return format!("unreadable ({})", escape(&error.to_string())),
    };
    let who = format!("pid {} ({})", segment.pid(), escape(&segment.process_name()));
    let snapshot = match segment.counters() {
        Ok(snapshot) => snapshot,
        Err(error) => return format!("{who}, {}", escape(&error.to_string())),
    };
    let held = Class::ALL.into_iter().filter_map(|class| {
        let figures = snapshot.counters.iter().map(|counters| counters.class(class));
        let (live, count) = figures
            .fold((0_u64, 0_u64), |(live, count), class| (live + class.live_bytes, count + class.live_count));
        (count > 0).then(|| format!("{} {} in {count}", class.name(), bytes(live)))
    });
    let held: Vec<String> = held.collect();
    let held = if held.is_empty() { "nothing".to_owned() } else { held.join(", ") };
    format!("{who} held {held}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tables_that_never_got_their_name_are_temporary() {
        let uid = rustix::process::geteuid().as_raw();
        let namespace = Namespace::new("ci-1").unwrap();
        let name = format!("tt-shm.v2.ci-1.{uid}.table-0123456789abcdef");
        assert_eq!(temporary_table(&name), Some(namespace));
        for other in [
            format!("tt-shm.v2.ci-1.{uid}.table"),
            format!("tt-shm.v2.ci-1.{uid}.lock"),
            format!("tt-shm.v2.ci-1.{}.table-0123456789abcdef", uid + 1),
            "tt-shm.v2.ci-1.42-0123456789abcdef".to_owned(),
            "something-else".to_owned(),
        ] {
            assert_eq!(temporary_table(&other), None, "{other}");
        }
    }
}
