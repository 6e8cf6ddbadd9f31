//! Loads a library into a process that runs already, and calls its functions there.
//!
//! `target` knows the process and refuses what cannot be done safely, `thread` stops one of its threads where nothing is
//! in the middle, `call` calls a function on it; `memory` and `image` read what is mapped and what it is.

pub mod call;
pub mod image;
pub mod memory;
pub mod target;
pub mod thread;

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};

use call::Caller;
use target::Target;

/// How long to look for a thread that can be stopped.
const PATIENCE: Duration = Duration::from_secs(5);
/// `RTLD_NOW | RTLD_NODELETE`: what is missing is told now, and hooks are never left without their code.
const DLOPEN_FLAGS: u64 = 0x1002;
const MAX_MESSAGE: usize = 1024;

/// Loads a library, which is at this path for the process, and calls a function of it without arguments.
pub fn load_and_call(target: &mut Target, library: &Path, function: &str) -> anyhow::Result<i32> {
    let [dlopen, dlerror] = [target.c_function("dlopen")?, target.c_function("dlerror")?];
    let thread = thread::stop_one(target, PATIENCE)?;
    let mut caller = Caller::new(target, thread)?;
    let name = caller.text(library.as_os_str().as_bytes())?;
    if caller.call(dlopen, [name, DLOPEN_FLAGS])? == 0 {
        let message = caller.call(dlerror, [0; 2])?;
        let message = target.memory.text(message, MAX_MESSAGE);
        caller.finish()?;
        bail!("its dynamic linker refuses the library: {message}; the job goes on, and nothing was changed");
    }
    let address = function_in(target, library, function);
    let result = address.and_then(|address| caller.call(address, [0; 2]));
    // The thread first, whatever happened.
    caller.finish()?;
    let result = result?;
    target.refresh()?;
    Ok(result as i32)
}

/// Calls a function without arguments of a library that is loaded already.
pub fn call(target: &Target, address: u64) -> anyhow::Result<i32> {
    let thread = thread::stop_one(target, PATIENCE)?;
    let mut caller = Caller::new(target, thread)?;
    let result = caller.call(address, [0; 2]);
    caller.finish()?;
    Ok(result? as i32)
}

/// Where a function of a library is that was loaded just now.
fn function_in(target: &Target, library: &Path, function: &str) -> anyhow::Result<u64> {
    let mappings = memory::mappings(target.pid)?;
    let name = library.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let first = mappings.iter().find(|one| one.offset == 0 && one.file_name() == name);
    let symbol = first.and_then(|first| target.function(first, function));
    Ok(symbol.with_context(|| format!("the loaded library has no {function}"))?.address)
}
