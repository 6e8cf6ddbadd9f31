//! `tt-smi`: exact, live memory of Tenstorrent accelerators, per process, from shared memory alone.
//!
//! What the user typed ([`cli`]) resolves to [`settings`]; [`source`] reads rows, from the aggregator's table or
//! from an aggregation of its own; [`model`] is what they mean; [`commands`] choose, [`output`] and [`screen`]
//! show. No device is ever opened.

#![forbid(unsafe_code)]

pub mod bench;
pub mod cli;
pub mod commands;
pub mod config;
pub mod demo;
pub mod directory;
pub mod escape;
pub mod lists;
pub mod model;
pub mod output;
pub mod private_file;
pub mod procinfo;
pub mod query;
pub mod screen;
pub mod segments;
pub mod select;
pub mod settings;
pub mod signals;
pub mod source;
mod usage;
#[doc(hidden)]
pub mod users;

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
    allow_many_files();
    let cli = cli::Cli::parse();
    let settings = match settings::Settings::resolve(&cli) {
        Ok(settings) => settings,
        Err(error) => cli::Cli::command().error(ErrorKind::ValueValidation, format!("{error:#}")).exit(),
    };
    match commands::run(cli.command, &cli.official, &settings) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads stopped reading: `tt-smi events | head`.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tt-smi: {}", escape::escape(&format!("{error:#}")));
            ExitCode::from(if error.is::<usage::Usage>() { 2 } else { 1 })
        }
    }
}

/// Each segment that is followed is an open file, and the usual limit of 1024 is as many as one user may have.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
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
