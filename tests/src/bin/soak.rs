//! Kills, stops and restarts everything at random and compares what the monitor says with private notes.

use anyhow::Result;
use clap::Parser;
use rustix::process::{Signal, set_parent_process_death_signal};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tt_shm_tests::soak::options::Options;
use tt_shm_tests::soak::processes::Role;
use tt_shm_tests::soak::run::Soak;
use tt_shm_tests::soak::{judge, reader, writer};

fn main() -> ExitCode {
    let result = match Role::of_this_process() {
        Some(role) => play(role),
        None => soak(Options::parse()),
    };
    result.unwrap_or_else(|error| {
        eprintln!("soak: {error:#}");
        ExitCode::FAILURE
    })
}

/// One of the processes that the soak starts.
fn play(role: Role) -> Result<ExitCode> {
    // A soak that is killed leaves nobody behind.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    match role {
        Role::Writer => writer::main(&std::env::args().nth(1).unwrap_or_default())?,
        Role::Judged => judge::actor::main(&std::env::args().nth(1).unwrap_or_default())?,
        Role::Reader => reader::main()?,
        Role::Smi => return Ok(tt_smi::run()),
    }
    Ok(ExitCode::SUCCESS)
}

fn soak(options: Options) -> Result<ExitCode> {
    let seed = match options.seed {
        Some(seed) => seed,
        None => tt_shm_os::random_u64()? >> 32,
    };
    println!("soak: seed {seed}, {} seconds, {} writers", options.seconds, options.writers);
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, interrupted.clone())?;
    }
    if options.judge {
        let outcome = judge::run::Soak::new(options, seed)?.run(&interrupted)?;
        println!("soak: seed {seed}: {outcome}");
        return Ok(if outcome.wrong() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let tally = Soak::new(options, seed)?.run(&interrupted)?;
    println!("soak: seed {seed}: {tally}");
    Ok(if tally.wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
