//! `tt-smi snapshot`: devices and processes as they are now.

use std::io::Write;

use crate::cli::SnapshotArgs;
use crate::model::Model;
use crate::output::json;
use crate::output::snapshot_json::SnapshotJson;
use crate::output::table::{self, Parts};
use crate::output::units::plural;
use crate::settings::Settings;
use crate::source::Source;

/// Runs it.
pub(crate) fn run(args: &SnapshotArgs, settings: &Settings) -> anyhow::Result<()> {
    let model = Model::new(&Source::open(&settings.namespace)?.read()?);
    let mut out = super::stdout();
    if args.json {
        json::write(&mut out, &SnapshotJson::new(&model, settings.namespace.as_str()))?;
    } else {
        let parts = Parts { processes: args.processes, detail: args.detail };
        table::write(&mut out, &model, parts, settings.paint)?;
    }
    out.flush()?;
    let unread = model.refused + model.hidden;
    anyhow::ensure!(
        unread == 0 || !model.processes.is_empty(),
        "nothing could be read: {} left out",
        plural(unread, "segment")
    );
    Ok(())
}
