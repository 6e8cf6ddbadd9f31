//! `tt-smi bridge`: serves clients of the proof of concept's socket.

use std::sync::Arc;

use anyhow::Context;

use crate::bridge::{Form, Listening, Shared, serve};
use crate::cli::BridgeArgs;
use crate::settings::Settings;

/// Runs until SIGINT, SIGTERM or SIGHUP.
pub(crate) fn run(args: &BridgeArgs, settings: &Settings) -> anyhow::Result<()> {
    let stop = crate::signals::readable_on_signals().context("cannot catch signals")?;
    let form = args.message_size.as_ref().and_then(|size| Form::of_len(size.parse().ok()?));
    let shared = Shared { settings: settings.clone(), form, guess_kernel_type: args.guess_kernel_type, stop };
    let listening = Listening::bind(&args.socket)?;
    eprintln!("tt-smi bridge: listening on {}", args.socket.display());
    serve(&listening, &Arc::new(shared)).context("cannot wait for clients")
}
