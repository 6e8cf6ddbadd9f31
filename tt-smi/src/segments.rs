//! Every segment of a namespace that can be opened.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Access, access};
use rustix::io::Errno;
use shm_layout::table::MAX_PROCESSES;
use tt_shm_os::{Namespace, monotonic_ns, parse_segment_name};
use tt_shm_reader::{Segment, TableSnapshot, process_flags, process_state, segment_paths};

use crate::directory::{Claims, Directory};
use crate::private;
use crate::unread::Unread;

/// Segments of one user that are read, as many as a table has rows. More would use up the files that this
/// process may open, and the mappings that it can guard.
const MAX_PER_UID: usize = MAX_PROCESSES;

/// The segments of a namespace.
#[derive(Debug, Default)]
pub struct Segments {
    /// Segments of live processes.
    pub live: Vec<Segment>,
    /// Segments of processes that ended without removing them.
    pub dead: Vec<Segment>,
    /// Segments that were skipped, and why.
    pub unread: Unread,
}

impl Segments {
    /// Opens all segments, this user's own first, so that other users cannot use up the files that this process may
    /// open.
    pub fn open(namespace: &Namespace) -> io::Result<Segments> {
        let mut segments = Segments::default();
        let mut per_uid: HashMap<u32, usize> = HashMap::new();
        let mut paths = segment_paths(namespace)?;
        let own = rustix::process::geteuid().as_raw();
        paths.sort_by_cached_key(|path| path.symlink_metadata().map_or(true, |stat| stat.uid() != own));
        for path in paths {
            let opened = Segment::open(&path);
            if let Ok(segment) = &opened {
                let theirs = per_uid.entry(segment.uid()).or_default();
                *theirs += 1;
                if *theirs > MAX_PER_UID {
                    segments.unread.leave_out(&path, segment.uid(), MAX_PER_UID);
                    continue;
                }
            }
            match opened {
                // If the kernel does not say, it counts as alive: unknown is not dead.
                Ok(segment) if segment.is_alive().unwrap_or(true) => segments.live.push(segment),
                // An orderly end that unlinks the file at this moment.
                Ok(segment) if segment.is_closed() => {}
                Ok(segment) => segments.dead.push(segment),
                Err(error) if error.is_not_found() => {}
                Err(error) => segments.unread.refuse(&path, &error),
            }
        }
        for opened in private::open_all(namespace) {
            match opened {
                Ok(segment) if segment.is_alive().unwrap_or(true) => segments.live.push(segment),
                // What a dead process left in a container is not for us to remove.
                Ok(_) => {}
                Err(refused) if refused.error.is_not_found() => {}
                Err(refused) => segments.unread.refuse_private(&refused),
            }
        }
        Ok(segments)
    }

    /// Records which live processes of a table have no file that can be opened: they are missing from the lists.
    pub fn compare(&mut self, table: &TableSnapshot) {
        let nameless = process_flags::UNLINKED | process_flags::UNSEEN;
        for (_, process) in &table.processes {
            let lives = process.state == process_state::ALIVE && process.flags & nameless != 0;
            if lives && !self.live.iter().any(|segment| segment.identity() == process.identity) {
                self.unread.miss(process.pid, process.uid as u32);
            }
        }
    }

    /// The devices of the live segments and, if an aggregator runs, of its table.
    pub fn directory(&self, table: Option<&TableSnapshot>) -> Directory {
        let mut claims = Claims::new();
        match table {
            Some(table) => claims.add_snapshot(table),
            None => {
                let entries: Vec<_> = self.live.iter().flat_map(Segment::devices).collect();
                claims.add_drivers(&crate::driver::rows(), &entries);
            }
        }
        self.live.iter().for_each(|segment| claims.add_segment(segment));
        claims.finish()
    }

    /// The live processes with these pids; all if none is given. An error if one of them does not exist.
    pub fn of(&self, pids: &[u32]) -> anyhow::Result<impl Iterator<Item = &Segment>> {
        let is_here = |pid: &u32| self.live.iter().any(|segment| is_pid(segment, *pid));
        if let Some(pid) = pids.iter().find(|pid| !is_here(pid)) {
            anyhow::bail!("no process {pid} reports here (`tt-smi ps` lists those that do)");
        }
        let meant = move |segment: &&Segment| pids.is_empty() || pids.iter().any(|pid| is_pid(segment, *pid));
        Ok(self.live.iter().filter(meant))
    }

    /// Reports on stderr which segments are skipped because their processes are dead. An error if none is left.
    pub fn warn_dead(&self) -> anyhow::Result<()> {
        // A segment left to a run is for the run to remove.
        let stale = self.dead.iter().filter(|segment| !segment.header().is_left_to_run(monotonic_ns()));
        let pids: Vec<String> = stale.map(|segment| segment.pid().to_string()).collect();
        if !pids.is_empty() {
            eprintln!("tt-smi: left out: dead process {}; `tt-smi clean` removes it", pids.join(", "));
        }
        let nothing = self.live.is_empty() && !self.unread.is_empty();
        if nothing {
            self.warn_unread();
        }
        anyhow::ensure!(!nothing, "nothing could be read");
        Ok(())
    }

    /// Reports on stderr which segments were not read.
    pub fn warn_unread(&self) {
        self.unread.errors().iter().for_each(|error| eprintln!("tt-smi: {error}"));
    }
}

/// How a process is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Called {
    /// Its pid in this namespace, or in its own if it is not visible here.
    pub pid: u32,
    /// Whether /proc does not confirm the pid that its segment claims.
    pub claimed: bool,
}

/// How a process is called.
pub fn called(segment: &Segment) -> Called {
    let confirmed = segment.pid_here();
    Called { pid: confirmed.unwrap_or(segment.pid()), claimed: confirmed.is_none() }
}

/// `4711`, or `4711?` if it is only claimed.
pub fn pid_text(pid: u32, claimed: bool) -> String {
    format!("{pid}{}", if claimed { "?" } else { "" })
}

/// The pid of [`called`].
pub fn shown_pid(segment: &Segment) -> u32 {
    called(segment).pid
}

/// Whether a pid typed by the user means this process.
pub fn is_pid(segment: &Segment, pid: u32) -> bool {
    shown_pid(segment) == pid
}

/// What to report about a segment that could not be read completely.
pub fn lost(segment: &Segment) -> Option<String> {
    let pid = shown_pid(segment);
    segment.loss().map(|loss| format!("pid {pid}: {loss}; what it holds is unknown"))
}

/// A segment that its owner lets no other user read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// The pid in its file name.
    pub pid: Option<u32>,
    pub uid: u32,
    pub file: String,
}

/// The segments of a namespace that this user may not read: their use is missing from every sum.
pub fn hidden(namespace: &Namespace) -> io::Result<Vec<Hidden>> {
    let mut hidden = Vec::new();
    for path in segment_paths(namespace)? {
        if access(&path, Access::READ_OK) != Err(Errno::ACCESS) {
            continue;
        }
        // It no longer exists, so it hides nothing.
        let Ok(stat) = path.symlink_metadata() else { continue };
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        hidden.push(Hidden { pid: parse_segment_name(&file).map(|name| name.pid), uid: stat.uid(), file });
    }
    Ok(hidden)
}
