//! Options that scripts of Tenstorrent's own tool use.

use std::io::Write;
use std::path::Path;

use anyhow::Context;

use crate::cli::{ListArgs, OfficialArgs};
use crate::escape::escape;
use crate::output::json;
use crate::output::snapshot_json::SnapshotJson;
use crate::private_file;
use crate::settings::Settings;
use crate::usage::Usage;

const RESET: &str = "\
resetting devices is not this tool's job: it only reads, and never opens a device. Stop who uses the device \
(`tt-smi ps` shows them), then reset with Tenstorrent's own tool: `tt-smi -r` of the Python package tt-smi";

/// Runs what they ask for.
pub(crate) fn run(args: &OfficialArgs, with_command: bool, settings: &Settings) -> anyhow::Result<()> {
    if args.reset.is_some() {
        return Err(Usage(RESET.to_owned()).into());
    }
    if with_command {
        let text = "-s, -f, -l and -r stand alone: each command has options of its own (see --help)";
        return Err(Usage(text.to_owned()).into());
    }
    // -ls is -l -s, and means the list.
    if args.list {
        return super::list::run(&ListArgs::default(), settings);
    }
    snapshot(args.filename.as_deref(), settings)
}

fn snapshot(file: Option<&Path>, settings: &Settings) -> anyhow::Result<()> {
    let model = super::model_now(settings)?;
    let mut text = Vec::new();
    json::write(&mut text, &SnapshotJson::new(&model, settings.namespace.as_str()))?;
    match file {
        Some(path) => private_file::replace(path, &text)
            .with_context(|| format!("cannot write {}", escape(&path.to_string_lossy())))?,
        None => {
            let mut out = super::stdout();
            out.write_all(&text)?;
            out.flush()?;
        }
    }
    super::ensure_readable(&model)
}
