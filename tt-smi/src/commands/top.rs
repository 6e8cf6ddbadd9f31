//! No command: the live screen.

use crate::screen::{self, Options, Theme};
use crate::settings::Settings;
use crate::signals::Stop;
use crate::source::Source;

/// Runs until q or a signal.
pub(crate) fn run(settings: &Settings) -> anyhow::Result<()> {
    let stop = Stop::on_signals()?;
    let mut source = Source::open(&settings.namespace)?;
    screen::run(&mut source, settings, screen_options(settings), || stop.is_set())
}

/// How the screen looks at first.
pub(super) fn screen_options(settings: &Settings) -> Options {
    let mut options = Options::default();
    if !settings.paint.colored {
        options.theme = Theme::MONO;
    }
    options
}
