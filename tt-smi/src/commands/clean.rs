//! `tt-smi clean`: removes the files of dead processes from /dev/shm, and prints what they held.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use tt_shm_os::{Namespace, SHM_DIR};
use tt_shm_reader::{Class, Segment};

use crate::cli::CleanArgs;
use crate::escape::escape;
use crate::settings::Settings;
use crate::stale::{StaleFile, stale_files};
use crate::units::{bytes, plural};

pub(crate) fn run(args: &CleanArgs, settings: &Settings) -> anyhow::Result<()> {
    let only = (!args.all_namespaces).then_some(&settings.namespace);
    let mut out = super::stdout();
    let mut removed = 0;
    for file in stale_files(Path::new(SHM_DIR), only).with_context(|| format!("cannot read {SHM_DIR}"))? {
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
    let of_these = |file: &&StaleFile| file.pid().is_some_and(|pid| pids.contains(&pid));
    let files = stale_files(Path::new(SHM_DIR), Some(namespace))?;
    files.iter().filter(of_these).try_for_each(|file| file.remove().map(drop))
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
