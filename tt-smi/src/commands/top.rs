//! No command: the live screen.

use crate::screen;
use crate::settings::Settings;
use crate::signals::Stop;
use crate::source::Source;

/// Runs until q or a signal.
pub(crate) fn run(settings: &Settings) -> anyhow::Result<()> {
    let stop = Stop::on_signals()?;
    let mut source = Source::open(&settings.namespace)?;
    screen::run(&mut source, settings, || stop.is_set())
}
