//! Options of Tenstorrent's own tool, for scripts that use them.

use std::io::Write;
use std::path::Path;

use anyhow::Context;

use crate::cli::{ListArgs, OfficialArgs};
use crate::escape::escape;
use crate::exit::Usage;
use crate::output::json;
use crate::output::snapshot_json::SnapshotJson;
use crate::private_file;
use crate::settings::Settings;

const RESET: &str = "\
cannot reset a device: this tool only reads shared memory and never opens a device. Stop the processes that use \
the device (`tt-smi ps` lists them), then reset it with Tenstorrent's own tool: `tt-smi -r` of the Python package tt-smi";

/// Runs what they ask for.
pub(crate) fn run(args: &OfficialArgs, with_command: bool, settings: &Settings) -> anyhow::Result<()> {
    if args.reset.is_some() {
        return Err(Usage(RESET.to_owned()).into());
    }
    if with_command {
        let text = "-s, -f, -l and -r cannot be combined with a command; see `tt-smi COMMAND --help` for its own options";
        return Err(Usage(text.to_owned()).into());
    }
    // -ls parses as -l -s, and means the list.
    if args.list {
        return super::list::run(&ListArgs::default(), settings);
    }
    snapshot(args.filename.as_deref(), settings)
}

fn snapshot(file: Option<&Path>, settings: &Settings) -> anyhow::Result<()> {
    let now = super::Now::read(settings, &[])?;
    let mut text = Vec::new();
    json::write(&mut text, &SnapshotJson::new(&now.model, settings.namespace.as_str()))?;
    match file {
        Some(path) => private_file::replace(path, &text)
            .with_context(|| format!("cannot write {}", escape(&path.to_string_lossy())))?,
        None => {
            let mut out = super::stdout();
            out.write_all(&text)?;
            out.flush()?;
        }
    }
    now.ensure_readable()
}
