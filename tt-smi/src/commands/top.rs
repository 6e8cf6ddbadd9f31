//! `tt-smi top`, or no command: the live screen.

use crate::cli::ScreenArgs;
use crate::model::directory;
use crate::screen::{self, Options, Palette, Signs, Theme};
use crate::select::refuse_ambiguous;
use crate::settings::Settings;
use crate::signals::Stop;
use crate::source::Source;

/// Runs until q or a signal.
pub(crate) fn run(args: &ScreenArgs, settings: &Settings) -> anyhow::Result<()> {
    let stop = Stop::on_signals()?;
    let mut source = Source::open(&settings.namespace)?;
    if !args.device.is_empty() {
        // Checked only at the start: an open screen does not end because another process makes a selector ambiguous.
        refuse_ambiguous(&args.device, &directory(&source.read()?.snapshot))?;
    }
    screen::run(&mut source, settings, options(args, settings), || stop.is_set())
}

/// The initial look of the screen: options, else settings.
pub(super) fn options(args: &ScreenArgs, settings: &Settings) -> Options {
    let config = &settings.config;
    let palette = if settings.paint.colored { args.theme.unwrap_or(config.theme) } else { Palette::Mono };
    let ascii = args.ascii || (config.ascii && args.graph.is_none());
    let signs = if ascii { Signs::Ascii } else { args.graph.unwrap_or(config.graph) };
    Options {
        theme: Theme { palette, signs },
        view: args.view.unwrap_or(config.view),
        interval: args.interval.unwrap_or(config.interval),
        readonly: args.readonly || config.readonly,
        devices: args.device.clone(),
    }
}
