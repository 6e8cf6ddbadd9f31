//! A named object of /dev/shm, created and mapped by the crate `shared_memory`.

use std::fmt;
use std::io;
use std::sync::atomic::AtomicU64;

use rustix::mm::Advice;
use shared_memory::{Shmem, ShmemConf, ShmemError};

use crate::map::advise;

/// A shared memory object that this process created and writes. It stays in place when dropped.
///
/// For files that need no lock on their descriptor: the aggregator's table. Its mode is 0600 until the owner
/// changes it. `shared_memory` makes no promise about threads, so it stays in the thread that created it.
pub struct SharedObject(Shmem);

impl SharedObject {
    /// Creates an object of `len` bytes under a name in /dev/shm that must not exist, and maps it.
    ///
    /// Nothing is allocated yet: [`populate`](Self::populate) a range before its first store.
    pub fn create(file_name: &str, len: usize) -> io::Result<SharedObject> {
        let mut shmem = ShmemConf::new().os_id(format!("/{file_name}")).size(len).create().map_err(system)?;
        // The creator decides when it is removed; being dropped or unwound is not a reason.
        shmem.set_owner(false);
        // A core dump would include all of it, which says nothing about the crash. On failure dumps are
        // larger.
        let _ = advise(shmem.as_ptr(), shmem.len(), 0, shmem.len(), Advice::LinuxDontDump);
        Ok(SharedObject(shmem))
    }

    /// The object as words, see [`WriteMap::words`](crate::WriteMap::words).
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        let first = self.0.as_ptr().cast::<AtomicU64>().cast_const();
        // SAFETY: a mapping starts at a page, so it is aligned; whole words of it lie within; it stays
        // mapped while `self` is borrowed; and an AtomicU64 is valid for every bit pattern.
        unsafe { std::slice::from_raw_parts(first, self.0.len() / size_of::<AtomicU64>()) }
    }

    /// Allocates and maps the pages of a range, see [`WriteMap::populate`](crate::WriteMap::populate).
    pub fn populate(&self, offset: usize, len: usize) -> io::Result<()> {
        advise(self.0.as_ptr(), self.0.len(), offset, len, Advice::LinuxPopulateWrite)
    }
}

impl fmt::Debug for SharedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedObject").field("name", &self.0.get_os_id()).field("len", &self.0.len()).finish()
    }
}

fn system(error: ShmemError) -> io::Error {
    match error {
        ShmemError::MappingIdExists => io::ErrorKind::AlreadyExists.into(),
        ShmemError::MapCreateFailed(errno) | ShmemError::UnknownOsError(errno) => {
            io::Error::from_raw_os_error(errno as i32)
        }
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn an_object_has_its_name_and_outlives_its_map() {
        let name = format!("tt-shm-os-test-object-{}", std::process::id());
        let path = crate::path_of(&name);
        let object = SharedObject::create(&name, 8192).unwrap();
        assert_eq!(SharedObject::create(&name, 8192).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        object.populate(0, 8192).unwrap();
        assert!(object.populate(4096, 8192).is_err());
        object.words()[1023].store(7, Relaxed);
        drop(object);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!((bytes.len(), bytes[8184]), (8192, 7));
    }
}
