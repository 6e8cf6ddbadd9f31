//! What the user typed.

use clap::{Parser, ValueEnum};

/// What may happen to the processes of a judged soak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Accident {
    /// Nothing.
    None,
    /// A writer is killed.
    Kill,
    /// A writer ends in an orderly way.
    End,
    /// A writer is stopped while it reports, for longer than events wait to be merged.
    Stop,
    /// Segments live for microseconds.
    Brief,
    /// Rings are so small that they go round before they are read.
    Lap,
    /// A window of peaks is begun.
    Reset,
    /// The aggregator is killed.
    KillAggregator,
    /// The aggregator ends in an orderly way.
    EndAggregator,
    /// The aggregator is stopped for a while.
    StopAggregator,
}

impl Accident {
    /// Those that happen one after the other, the frequent ones more than once.
    pub const SUDDEN: [Accident; 16] = [
        Accident::Kill,
        Accident::End,
        Accident::Stop,
        Accident::Stop,
        Accident::Stop,
        Accident::Stop,
        Accident::Brief,
        Accident::Brief,
        Accident::Brief,
        Accident::Reset,
        Accident::Reset,
        Accident::KillAggregator,
        Accident::EndAggregator,
        Accident::StopAggregator,
        Accident::None,
        Accident::None,
    ];
}

/// Kills, stops and restarts writers, an aggregator and readers at random, and compares what the monitor says with
/// the writers' private notes.
///
/// Needs nothing but /dev/shm and a folder for temporary files. Works in a namespace of its own and leaves nothing
/// behind, unless something is wrong: then what differs is printed, and the evidence is kept in a folder that is
/// named.
#[derive(Clone, Debug, Parser)]
#[command(name = "soak", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Options {
    /// How long to run
    #[arg(long, default_value_t = 60, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub seconds: u64,
    /// The same seed gives the same calls and the same accidents, at moments that the machine decides [default:
    /// random; it is printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Writer processes
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    pub writers: u64,
    /// Threads of each writer, at most
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=6))]
    pub threads: u64,
    /// Judge every claim that is published against the writers' private logs, merged by time
    #[arg(long)]
    pub judge: bool,
    /// With --judge: only these accidents; `none` for a calm soak [default: all]
    #[arg(long, requires = "judge", value_delimiter = ',', value_name = "LIST")]
    pub accidents: Vec<Accident>,
    /// With --judge: makes one claim wrong by one byte: must be found
    #[arg(long, requires = "judge", hide = true)]
    pub plant: bool,
    /// Lets the first writer report something that it does not note: must be found
    #[arg(long, hide = true)]
    pub lie: bool,
}

const EXAMPLES: &str = "\
Examples:
  soak --seconds 60 --seed 7     repeatable, as far as scheduling allows
  soak --seconds 20              a random seed, which is printed first
  soak --judge --seconds 20      every published claim: exact ones are equal, ranges contain the truth

Exit codes: 0 all exact, 1 something was wrong or could not be run, 2 wrong usage.";

impl Options {
    /// Whether an accident may happen.
    pub fn allows(&self, accident: Accident) -> bool {
        self.accidents.is_empty() || self.accidents.contains(&accident)
    }
}
