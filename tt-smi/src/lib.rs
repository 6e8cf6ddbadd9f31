//! `tt-smi`: exact, live memory of Tenstorrent accelerators, per process, from shared memory alone.
//!
//! What the user typed (`cli`) resolves to `settings`; `source` reads rows, from the aggregator's table or from an
//! aggregation of its own; `model` is what they mean; `commands` choose, `output` and `screen` show. `query` is the
//! language of filters, `procinfo` what the system knows of processes, `driver` what the kernel driver knows of devices, `config` what a user set for good. No device is
//! ever opened.
//!
//! This is a program, not a library: the modules that are public are those that tests use.

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "nobody but its own tests uses this crate")]

#[cfg(target_arch = "x86_64")]
pub mod attach;
pub mod cli;
pub mod escape;
pub mod lists;
pub mod model;
pub mod output;
pub mod procinfo;
pub mod query;
pub mod screen;
pub mod segments;
pub mod settings;
pub mod source;
pub mod units;
pub mod users;

mod bench;
mod bridge;
mod commands;
mod config;
mod demo;
mod directory;
pub mod driver;
mod exit;
mod private;
mod private_file;
mod recording;
#[cfg(test)]
mod schema;
mod select;
mod serve;
mod signals;
mod stale;
mod tap;
mod threshold;
mod unread;

use std::io;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Runs the program with the arguments of this process.
pub fn run() -> ExitCode {
    // Anybody whose files are mapped could end this process by cutting one short.
    if let Err(error) = tt_shm_os::guard_truncation() {
        eprintln!("tt-smi: cannot guard against files that are cut short: {error}");
    }
    // `ulimit -f` would end it without a word.
    if let Err(error) = tt_shm_os::fail_at_file_size_limit() {
        eprintln!("tt-smi: cannot catch the limit of file sizes: {error}");
    }
    allow_many_files();
    let cli = cli::Cli::parse();
    if let Err(misplaced) = cli.check() {
        cli::Cli::command().error(ErrorKind::ArgumentConflict, misplaced).exit();
    }
    let settings = match settings::Settings::resolve(&cli) {
        Ok(settings) => settings,
        Err(error) => cli::Cli::command().error(ErrorKind::ValueValidation, format!("{error:#}")).exit(),
    };
    match commands::run(cli, &settings) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads stopped reading: `tt-smi events | head`.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        // A command that has an exit code of its own, and nothing more to say.
        Err(error) if error.is::<exit::Exit>() => {
            ExitCode::from(error.downcast_ref().map_or(1, |exit::Exit(code)| *code))
        }
        Err(error) => {
            eprintln!("tt-smi: {}", escape::escape(&format!("{error:#}")));
            ExitCode::from(if exit::is_usage(&error) { 2 } else { 1 })
        }
    }
}

/// The limit of open files that this process was started with, for those that it starts.
static STARTED_WITH: std::sync::OnceLock<Rlimit> = std::sync::OnceLock::new();

/// Does something with the limit of open files that this process was started with.
pub(crate) fn with_first_limits<T>(work: impl FnOnce() -> T) -> T {
    let now = getrlimit(Resource::Nofile);
    let first = *STARTED_WITH.get_or_init(|| now);
    // Lowering and raising back within the hard limit is always allowed.
    let _ = setrlimit(Resource::Nofile, first);
    let result = work();
    let _ = setrlimit(Resource::Nofile, now);
    result
}

/// Each segment that is followed is an open file, and the usual limit of 1024 is as many as one user may have.
fn allow_many_files() {
    let limit = *STARTED_WITH.get_or_init(|| getrlimit(Resource::Nofile));
    // Refused: then some segments wait until others are gone, and the reason is told.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |kind: io::ErrorKind| kind == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| broken(error.kind()))
            || cause
                .downcast_ref::<serde_json::Error>()
                .and_then(serde_json::Error::io_error_kind)
                .is_some_and(broken)
    })
}
