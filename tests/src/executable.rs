//! Files that a test makes in order to run them.

use std::path::Path;
use std::process::Command;

/// Copies a program to where everybody may run it.
///
/// Another process does the writing: a file that this one has open for writing is open in every child
/// that another test forks meanwhile, until that child executes its own program, and the kernel runs
/// no file that somebody may write ("Text file busy").
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let status = Command::new("install").arg("-m755").arg(from.as_ref()).arg(to.as_ref()).status();
    assert!(status.unwrap().success(), "install {:?} {:?}", from.as_ref(), to.as_ref());
}

/// Makes a script that everybody may run, or a file that only looks like one.
pub fn write_script(path: impl AsRef<Path>, text: &str) {
    let mut source = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut source, text.as_bytes()).unwrap();
    copy_program(source.path(), path);
}
