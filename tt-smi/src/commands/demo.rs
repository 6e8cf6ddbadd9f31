//! `tt-smi demo`: starts simulated workers and shows what they use.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::Context;
use tt_shm_os::Namespace;
use tt_shm_writer::Tracker;

use crate::cli::DemoArgs;
use crate::demo::Workers;
use crate::model::Model;
use crate::output::table::{self, Parts};
use crate::screen;
use crate::settings::Settings;
use crate::signals::Stop;
use crate::source::Source;
use crate::units::plural;

/// Time between tables when stdout is not a terminal.
const REFRESH: Duration = Duration::from_secs(1);

/// Runs until the time is up, q or a signal. Leaves nothing in /dev/shm.
pub(crate) fn run(args: &DemoArgs, settings: &Settings) -> anyhow::Result<()> {
    let stop = Stop::on_signals().context("cannot catch signals")?;
    let settings = &private(settings)?;
    let namespace = &settings.namespace;
    // Each worker would refuse them, too, but only after the screen has begun.
    Tracker::builder().namespace(namespace.as_str()).check()?;
    let mut workers = Workers::start(args, namespace)?;
    let (processes, devices) = (plural(args.workers.into(), "worker"), plural(args.devices.into(), "device"));
    eprintln!("tt-smi: {processes} on {devices}; from another terminal:");
    eprintln!("    tt-smi --namespace {namespace} snapshot");
    let shown = show(args, settings, || stop.is_set() || workers.have_ended());
    let pids = workers.pids();
    let ended = workers.stop();
    // The segment of a worker that was killed is still there.
    crate::commands::remove_dead(namespace, &pids).context("cannot clean up")?;
    shown.and(ended)
}

/// The settings with a namespace for this demo, unless the user chose one.
fn private(settings: &Settings) -> anyhow::Result<Settings> {
    let mut settings = settings.clone();
    if !settings.namespace_given {
        settings.namespace = Namespace::new(&format!("demo-{}", std::process::id()))?;
    }
    Ok(settings)
}

fn show(args: &DemoArgs, settings: &Settings, mut stop: impl FnMut() -> bool) -> anyhow::Result<()> {
    let begun = Instant::now();
    let over = args.seconds.map(Duration::from_secs);
    let mut stop = || stop() || over.is_some_and(|over| begun.elapsed() >= over);
    let mut source = Source::open(&settings.namespace)?;
    if settings.stdout_is_terminal {
        return screen::run(&mut source, settings, super::top::options(&args.screen, settings), stop);
    }
    let mut next = begun + REFRESH;
    loop {
        let ending = stop();
        if ending || Instant::now() >= next {
            next += REFRESH;
            let model = Model::new(&source.read()?);
            let mut out = super::stdout();
            table::write(&mut out, &model, Parts::default(), settings.paint)?;
            writeln!(out)?;
            out.flush()?;
        }
        if ending {
            return Ok(());
        }
        source.poll();
        std::thread::sleep(source.poll_interval().min(Duration::from_millis(50)));
    }
}
