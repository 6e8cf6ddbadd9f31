//! A buffer that is reported freed when it goes out of scope.

use crate::device::Target;
use crate::tracker::Record;

/// Reports the end of a buffer when dropped. Made by [`Record::alloc_guard`].
#[must_use = "the buffer is reported freed as soon as the guard is dropped"]
pub struct AllocGuard<'a, R: Record, T: Target> {
    record: &'a R,
    target: T,
    id: u64,
}

impl<'a, R: Record, T: Target> AllocGuard<'a, R, T> {
    pub(crate) fn new(record: &'a R, target: T, id: u64) -> Self {
        AllocGuard { record, target, id }
    }

    /// Its id.
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl<R: Record, T: Target> Drop for AllocGuard<'_, R, T> {
    fn drop(&mut self) {
        // If it was freed explicitly, this is counted in the segment as an unmatched free.
        let _ = self.record.free(&self.target, self.id);
    }
}
