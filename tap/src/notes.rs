//! What the tap has to say of itself: not into the job's output, but into a file that `tt-smi run` has made and reads at
//! the job's end. A line is `PID KIND TEXT`; KIND is `note`, or `unobserved` if something of the process is not seen.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::shield;

/// Names the file. Without it, nothing is said.
const NOTES_ENV: &str = "TT_SHM_TAP_NOTES";
/// A process says no more than this, whatever happens in it.
const MOST_LINES: u32 = 8;
/// A line that is appended at once stays whole.
const MOST_BYTES: usize = 500;

/// Whether anybody would read them.
pub(crate) fn are_wanted() -> bool {
    std::env::var_os(NOTES_ENV).is_some()
}

/// Something is done in another way, or not known.
pub(crate) fn note(text: &str) {
    say("note", text);
}

/// Something that the process allocates is not reported.
pub(crate) fn unobserved(text: &str) {
    say("unobserved", text);
}

fn say(kind: &str, text: &str) {
    let Some(path) = std::env::var_os(NOTES_ENV) else { return };
    if lines_before() >= MOST_LINES {
        return;
    }
    let mut line = format!("{} {kind} {}", std::process::id(), text.replace('\n', " "));
    line.truncate(line.floor_char_boundary(MOST_BYTES));
    line.push('\n');
    // Never created here: a file that nobody reads is of no use. Nonblocking: the name may be another's pipe by now.
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    if let Ok(mut file) = OpenOptions::new().append(true).custom_flags(flags).open(path) {
        // Nobody could be told that it failed.
        let _ = file.write(line.as_bytes());
    }
}

/// How many lines this process has said, counting this one: a forked child begins anew.
fn lines_before() -> u32 {
    static SAID: AtomicU64 = AtomicU64::new(0);
    let generation = u64::from(shield::generation()) << 32;
    let count = |said: u64| if said & !u64::from(u32::MAX) == generation { said + 1 } else { generation | 1 };
    let before = SAID.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |said| Some(count(said)));
    let before = before.unwrap_or_else(|said| said);
    if before & !u64::from(u32::MAX) == generation { before as u32 } else { 0 }
}
