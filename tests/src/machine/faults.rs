//! Files that fail where a test wants them to.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::io::Errno;
use tt_shm_driver::{Files, KernelFiles};

/// The files of this machine, except that reading some fails. Counts what is done. Copies share one state.
#[derive(Clone, Debug, Default)]
pub struct FaultyFiles(Rc<State>);

#[derive(Debug, Default)]
struct State {
    errors: RefCell<HashMap<PathBuf, Errno>>,
    opens: Cell<usize>,
    reads: Cell<usize>,
}

impl FaultyFiles {
    /// From now on reading a file fails, also through handles that are open, as in sysfs.
    pub fn fail(&self, path: PathBuf, error: Errno) {
        self.0.errors.borrow_mut().insert(path, error);
    }

    /// All files can be read again.
    pub fn heal(&self) {
        self.0.errors.borrow_mut().clear();
    }

    /// How often a file was opened and how often one was read, since the last call.
    pub fn take_counts(&self) -> (usize, usize) {
        (self.0.opens.take(), self.0.reads.take())
    }
}

impl Files for FaultyFiles {
    type Handle = (PathBuf, File);

    fn open(&self, path: &Path) -> io::Result<(PathBuf, File)> {
        self.0.opens.update(|count| count + 1);
        Ok((path.to_owned(), KernelFiles.open(path)?))
    }

    fn read(&self, (path, file): &(PathBuf, File), buffer: &mut [u8]) -> io::Result<usize> {
        self.0.reads.update(|count| count + 1);
        match self.0.errors.borrow().get(path) {
            Some(error) => Err((*error).into()),
            None => KernelFiles.read(file, buffer),
        }
    }
}
