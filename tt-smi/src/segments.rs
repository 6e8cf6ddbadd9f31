//! Every segment of a namespace that can be opened.

use std::io;

use tt_shm_os::Namespace;
use tt_shm_reader::{OpenError, Segment, TableSnapshot, segment_paths};

use crate::directory::{Claims, Directory};

/// The segments of a namespace.
#[derive(Debug, Default)]
pub struct Segments {
    /// Of processes that live.
    pub live: Vec<Segment>,
    /// Of processes that ended and could not remove theirs.
    pub dead: Vec<Segment>,
    /// Files that were refused, and why.
    pub refused: Vec<OpenError>,
}

impl Segments {
    /// Opens what is there.
    pub fn open(namespace: &Namespace) -> io::Result<Segments> {
        let mut segments = Segments::default();
        for path in segment_paths(namespace)? {
            match Segment::open(&path) {
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

    /// Tells on stderr what is left out, so that a list is not taken for more than it is. An error if nothing
    /// is left.
    pub fn warn(&self) -> anyhow::Result<()> {
        for error in &self.refused {
            eprintln!("tt-smi: left out: {}", crate::escape::escape(&error.to_string()));
        }
        if !self.dead.is_empty() {
            let pids: Vec<String> = self.dead.iter().map(|segment| segment.pid().to_string()).collect();
            eprintln!("tt-smi: left out: dead process {}; `tt-smi clean` removes it", pids.join(", "));
        }
        anyhow::ensure!(!self.live.is_empty() || self.refused.is_empty(), "nothing could be read");
        Ok(())
    }
}
