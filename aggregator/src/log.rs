//! Where log lines go. The program chooses; by default they are dropped.

use std::fmt;
use std::io::Write;

/// A sink for log lines. The library does not write to stderr unless asked to.
///
/// ```
/// use tt_shm_aggregator::Log;
///
/// let (lines, seen) = std::sync::mpsc::channel();
/// let mut log = Log::to(move |line| lines.send(line.to_owned()).unwrap());
/// log.line(format_args!("{} segments", 3));
/// assert_eq!(seen.recv().unwrap(), "3 segments");
/// ```
#[derive(Default)]
pub struct Log(Option<Sink>);

type Sink = Box<dyn FnMut(&str) + Send>;

impl Log {
    /// Drops every line.
    pub fn silent() -> Log {
        Log(None)
    }

    /// Calls a function with every line.
    pub fn to(sink: impl FnMut(&str) + Send + 'static) -> Log {
        Log(Some(Box::new(sink)))
    }

    /// Writes every line to stderr. Write errors are ignored.
    pub fn stderr() -> Log {
        Log::to(|line| drop(writeln!(std::io::stderr().lock(), "{line}")))
    }

    /// Logs one line.
    pub fn line(&mut self, line: fmt::Arguments<'_>) {
        if let Some(sink) = &mut self.0 {
            sink(&line.to_string());
        }
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Log" } else { "Log(silent)" })
    }
}
