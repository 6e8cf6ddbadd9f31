//! Every segment of a namespace that can be opened.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Access, access};
use rustix::io::Errno;
use shm_layout::table::MAX_PROCESSES;
use tt_shm_os::{Namespace, parse_segment_name};
use tt_shm_reader::{OpenError, Segment, TableSnapshot, segment_paths};

use crate::directory::{Claims, Directory};

/// Segments of one user that are read, as many as a table has rows. More would use up the files that this
/// process may open, and the mappings that it can guard.
const MAX_PER_UID: usize = MAX_PROCESSES;
/// Refusals told one by one.
const MAX_WARNINGS: usize = 32;

/// The segments of a namespace.
#[derive(Debug, Default)]
pub struct Segments {
    /// Of processes that live.
    pub live: Vec<Segment>,
    /// Of processes that ended and could not remove theirs.
    pub dead: Vec<Segment>,
    /// Files that were refused, and why.
    pub refused: Vec<OpenError>,
    /// Segments that were left out because their owner has too many.
    pub surplus: u64,
}

impl Segments {
    /// Opens what is there.
    pub fn open(namespace: &Namespace) -> io::Result<Segments> {
        let mut segments = Segments::default();
        let mut per_uid: HashMap<u32, usize> = HashMap::new();
        for path in segment_paths(namespace)? {
            let opened = Segment::open(&path);
            if let Ok(segment) = &opened {
                let theirs = per_uid.entry(segment.uid()).or_default();
                *theirs += 1;
                if *theirs > MAX_PER_UID {
                    segments.surplus += 1;
                    continue;
                }
            }
            match opened {
                // If the kernel will not say, it counts: unknown is not dead.
                Ok(segment) if segment.is_alive().unwrap_or(true) => segments.live.push(segment),
                // An orderly end that unlinks the file at this moment.
                Ok(segment) if segment.is_closed() => {}
                Ok(segment) => segments.dead.push(segment),
                Err(error) if error.is_not_found() => {}
                Err(error) => segments.refused.push(error),
            }
        }
        Ok(segments)
    }

    /// The devices of the live segments and, if an aggregator runs, of its table.
    pub fn directory(&self, table: Option<&TableSnapshot>) -> Directory {
        let mut claims = Claims::default();
        if let Some(table) = table {
            claims.add_snapshot(table);
        }
        self.live.iter().for_each(|segment| claims.add_segment(segment));
        claims.finish()
    }

    /// The living processes that are meant; all if none was named. Says on stderr who is not there.
    pub fn of(&self, pids: &[u32]) -> impl Iterator<Item = &Segment> {
        for pid in pids.iter().filter(|pid| !self.live.iter().any(|segment| is_pid(segment, **pid))) {
            eprintln!("tt-smi: no process {pid} reports here");
        }
        self.live
            .iter()
            .filter(move |segment| pids.is_empty() || pids.iter().any(|pid| is_pid(segment, *pid)))
    }

    /// Tells on stderr what is left out, so that a list is not taken for more than it is. An error if nothing
    /// is left.
    pub fn warn(&self) -> anyhow::Result<()> {
        self.warn_refused();
        if !self.dead.is_empty() {
            let pids: Vec<String> = self.dead.iter().map(|segment| segment.pid().to_string()).collect();
            eprintln!("tt-smi: left out: dead process {}; `tt-smi clean` removes it", pids.join(", "));
        }
        anyhow::ensure!(!self.live.is_empty() || self.refused.is_empty(), "nothing could be read");
        Ok(())
    }

    /// Tells on stderr which files were not read.
    pub fn warn_refused(&self) {
        for error in self.refused.iter().take(MAX_WARNINGS) {
            eprintln!("tt-smi: left out: {}", crate::escape::escape(&error.to_string()));
        }
        let untold = self.refused.len().saturating_sub(MAX_WARNINGS);
        if untold > 0 {
            eprintln!("tt-smi: left out: {untold} more");
        }
        if self.surplus > 0 {
            let surplus = crate::output::units::plural(self.surplus, "segment");
            eprintln!("tt-smi: left out: {surplus} of users who have over {MAX_PER_UID}");
        }
    }
}

/// How a process is called here; as it calls itself if it cannot be seen from here.
pub fn shown_pid(segment: &Segment) -> u32 {
    segment.pid_here().unwrap_or(segment.pid())
}

/// Whether a user who names this pid means this process.
pub fn is_pid(segment: &Segment, pid: u32) -> bool {
    shown_pid(segment) == pid
}

/// What to say of a segment that could not be read to its end.
pub fn lost(segment: &Segment) -> Option<String> {
    let pid = shown_pid(segment);
    segment.loss().map(|loss| format!("pid {pid}: {loss}; what it holds is unknown"))
}

/// A segment of a user who lets nobody else read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// Its process, as the name says.
    pub pid: Option<u32>,
    /// Its owner.
    pub uid: u32,
    /// Its file name.
    pub file: String,
}

/// The segments of a namespace that this user may not read: what their processes use is missing in every sum.
pub fn hidden(namespace: &Namespace) -> io::Result<Vec<Hidden>> {
    let mut hidden = Vec::new();
    for path in segment_paths(namespace)? {
        if access(&path, Access::READ_OK) != Err(Errno::ACCESS) {
            continue;
        }
        // Gone meanwhile: it hides nothing.
        let Ok(stat) = path.symlink_metadata() else { continue };
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        hidden.push(Hidden { pid: parse_segment_name(&file).map(|name| name.pid), uid: stat.uid(), file });
    }
    Ok(hidden)
}
