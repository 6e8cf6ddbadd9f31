//! The number that identifies the segments of a run.

use std::io;

use tt_shm_os::Namespace;
use tt_shm_reader::Segment;

/// A random number that processes of the run find in their environment and copy into their segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunId(u64);

impl RunId {
    pub(super) fn random() -> io::Result<RunId> {
        // 0 means none.
        Ok(RunId(tt_shm_os::random_u64()?.max(1)))
    }

    /// As written to the environment. Includes the namespace, since the run looks at no other.
    pub(super) fn text(self, namespace: &Namespace) -> String {
        format!("{}.{:016x}", namespace.as_str(), self.0)
    }

    pub(super) fn is_of(self, segment: &Segment) -> bool {
        segment.header().run == self.0
    }
}
