//! `tt-smi aggregate`: the daemon, and its black box.

use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use anyhow::Context;
use tt_shm_aggregator::{DaemonConfig, Log, run_daemon};

use crate::cli::AggregateArgs;
use crate::escape::escape;
use crate::recording::{Open, Parts, Recording};
use crate::settings::Settings;
use crate::signals::Stop;

/// Where systemd tells a service to keep what lasts.
const STATE_ENV: &str = "STATE_DIRECTORY";
/// Where the black box is otherwise.
const STATE_FOLDER: &str = "/var/lib/tt-smi";

/// Runs until SIGINT or SIGTERM.
pub(crate) fn run(args: &AggregateArgs, settings: &Settings) -> anyhow::Result<()> {
    let stop = Stop::on_signals().context("cannot catch signals")?;
    // Before the daemon begins: what was asked for and cannot be is an error at once, not in a log later.
    let black_box = args.black_box.map(|size| open_black_box(size, settings)).transpose()?;
    let config = DaemonConfig {
        namespace: settings.namespace.clone(),
        stats_interval: args.stats_interval,
        driver: Some(crate::driver::roots()),
        regions: Some(crate::driver::region_roots()),
        log: Log::stderr(),
    };
    std::thread::scope(|scope| {
        let recorder = black_box.map(|open| scope.spawn(|| record(open, &stop)));
        let result = run_daemon(config, stop.flag());
        // A daemon that cannot go on ends its black box, too.
        stop.set();
        if recorder.is_some_and(|recorder| recorder.join().is_err()) {
            eprintln!("tt-smi: the black box panicked");
        }
        Ok(result?)
    })
}

fn open_black_box(size: u64, settings: &Settings) -> anyhow::Result<Open> {
    let given = std::env::var(STATE_ENV).ok();
    // systemd gives a list with colons between.
    let folder = given.as_deref().and_then(|list| list.split(':').find(|one| !one.is_empty()));
    let folder = PathBuf::from(folder.unwrap_or(STATE_FOLDER));
    let shown = escape(&folder.to_string_lossy());
    let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    created.with_context(|| {
        format!("cannot create {shown} for the black box (set {STATE_ENV} to another folder)")
    })?;
    let recording = Recording {
        namespace: settings.namespace.clone(),
        parts: Parts::black_box(&folder, size),
        command: std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect(),
    };
    recording.open()
}

/// Records until the daemon ends. The daemon goes on if this fails: figures are worth more than a record of them.
fn record(open: Open, stop: &Stop) {
    let recorded = open.run(|| stop.is_set(), |_| (), |_| false);
    if let Some(failure) = recorded.failure {
        eprintln!("tt-smi: the black box ended: {failure:#}");
    }
}
