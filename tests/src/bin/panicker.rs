//! The live screen with a fault in it: panics after a few pictures.

use clap::Parser;
use tt_smi::cli::Cli;
use tt_smi::screen;
use tt_smi::settings::Settings;
use tt_smi::source::Source;

/// Looks whether to end before it panics: enough for some pictures.
const LOOKS: usize = 10;

fn main() -> anyhow::Result<()> {
    let settings = Settings::resolve(&Cli::parse())?;
    let mut source = Source::open(&settings.namespace)?;
    let mut looks = 0;
    screen::run(&mut source, &settings, screen::Options::default(), || {
        looks += 1;
        assert!(looks < LOOKS, "a panic on purpose");
        false
    })
}
