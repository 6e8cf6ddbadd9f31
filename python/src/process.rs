//! Finds the segments of a process.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use tt_shm_os::{SHM_DIR, own_start_time, parse_segment_name, pid_namespace, realtime_ns};
use tt_shm_reader::Namespace;

use crate::errors;
use crate::segment::Segment;

/// A folder that changed this recently may change again without a later time: the kernel's clock for files ticks slowly.
const TICK_NS: u64 = 50_000_000;

/// A process, and those of its segments that can be read.
///
/// Finding them means to read a folder; that is done again only when something has changed there.
pub(crate) struct Finder {
    pid: u32,
    is_own: bool,
    /// When the folder was changed, if it was looked at so much later that any further change has a later time.
    changed: Option<(i64, i64)>,
    known: Vec<Found>,
    /// Files of the process that could not be read.
    refused: usize,
}

/// A segment and its file.
#[derive(Clone)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) segment: Arc<tt_shm_reader::Segment>,
}

impl Finder {
    pub(crate) fn new(pid: Option<u32>) -> Finder {
        let own = std::process::id();
        let pid = pid.unwrap_or(own);
        Finder { pid, is_own: pid == own, changed: None, known: Vec::new(), refused: 0 }
    }

    /// The segments that are in use.
    pub(crate) fn segments(&mut self) -> io::Result<Vec<Found>> {
        let changed = folder_changed()?;
        if self.changed.is_none() || self.changed != changed {
            self.look()?;
            self.changed = changed;
        }
        let in_use = |found: &&Found| {
            !found.segment.is_closed() && (self.is_own || found.segment.is_alive().unwrap_or(false))
        };
        Ok(self.known.iter().filter(in_use).cloned().collect())
    }

    /// Opens what is new and forgets what is gone.
    fn look(&mut self) -> io::Result<()> {
        let before = std::mem::take(&mut self.known);
        self.refused = 0;
        for entry in std::fs::read_dir(SHM_DIR)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).and_then(parse_segment_name);
            let Some(name) = name.filter(|name| !self.is_own || name.pid == self.pid) else { continue };
            if let Some(found) = before.iter().find(|found| found.path == path) {
                self.known.push(found.clone());
                continue;
            }
            match tt_shm_reader::Segment::open(&path) {
                Ok(segment) if self.is_of(&segment) => {
                    self.known.push(Found { path, segment: Arc::new(segment) });
                }
                Ok(_) => (),
                Err(error) => self.refused += usize::from(!error.is_not_found() && name.pid == self.pid),
            }
        }
        // Somebody may have removed the name of a segment that is in use.
        for found in before {
            let is_kept = self.known.iter().any(|kept| kept.path == found.path);
            if !is_kept && !found.segment.is_closed() && found.segment.is_alive().unwrap_or(false) {
                self.known.push(found);
            }
        }
        Ok(())
    }

    fn is_of(&self, segment: &tt_shm_reader::Segment) -> bool {
        let header = segment.header();
        if self.is_own {
            let is_ours =
                |theirs: u64, ours: Option<u64>| theirs == 0 || ours.is_none_or(|ours| ours == theirs);
            return segment.pid() == self.pid
                && header.on_behalf_of == 0
                && is_ours(header.pid_namespace, pid_namespace())
                && is_ours(header.start_time, own_start_time());
        }
        if header.on_behalf_of != 0 {
            return header.on_behalf_of == u64::from(self.pid)
                && Some(header.pid_namespace) == pid_namespace();
        }
        segment.pid_here() == Some(self.pid)
    }
}

/// When the folder of segments was changed; `None` if that was a moment ago.
fn folder_changed() -> io::Result<Option<(i64, i64)>> {
    let stat = rustix::fs::stat(SHM_DIR)?;
    #[allow(clippy::unnecessary_cast, reason = "types differ between architectures")]
    let changed = (stat.st_mtime as i64, stat.st_mtime_nsec as i64);
    let changed_ns = u64::try_from(changed.0).unwrap_or(0) * 1_000_000_000 + changed.1.unsigned_abs();
    Ok((changed_ns.saturating_add(TICK_NS) < realtime_ns()).then_some(changed))
}

/// A process whose segments are looked for.
#[pyclass(frozen, module = "tt_shm")]
pub(crate) struct Process {
    #[pyo3(get)]
    pid: u32,
    /// Locked only by who has the interpreter's lock, and never while that one is released: whoever forks has it.
    finder: Mutex<Finder>,
}

#[pymethods]
impl Process {
    /// The process with this pid; without one, the process that this is.
    #[new]
    #[pyo3(signature = (pid=None))]
    fn new(pid: Option<u32>) -> Process {
        let finder = Finder::new(pid);
        Process { pid: finder.pid, finder: Mutex::new(finder) }
    }

    /// Its segments that are in use, and how many could not be read.
    fn segments(&self) -> PyResult<(Vec<Segment>, usize)> {
        let mut finder = self.finder.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let found = finder.segments()?;
        Ok((found.into_iter().map(Segment::from).collect(), finder.refused))
    }
}

/// The segments of all processes of a namespace that live, and how many could not be read.
#[pyfunction]
#[pyo3(signature = (namespace=None))]
pub(crate) fn all_segments(py: Python<'_>, namespace: Option<String>) -> PyResult<(Vec<Segment>, usize)> {
    let namespace = match namespace {
        Some(name) => Namespace::new(&name),
        None => Namespace::from_env(),
    };
    let namespace = namespace.map_err(|error| errors::Error::new_err(error.to_string()))?;
    let (mut segments, mut refused) = (Vec::new(), 0);
    py.detach(|| {
        for path in tt_shm_reader::segment_paths(&namespace)? {
            match tt_shm_reader::Segment::open(&path) {
                Ok(segment) if segment.is_closed() || !segment.is_alive()? => (),
                Ok(segment) => segments.push(Segment::from(Found { path, segment: Arc::new(segment) })),
                Err(error) => refused += usize::from(!error.is_not_found() && error.may_live(&path)),
            }
        }
        io::Result::Ok(())
    })?;
    Ok((segments, refused))
}
