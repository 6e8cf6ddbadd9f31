//! `tt-smi attach` and `tt-smi detach`: switch the reports of a running job on and off.

use crate::cli::{AttachArgs, DetachArgs};
use crate::settings::Settings;

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn attach(_: &AttachArgs, _: &Settings) -> anyhow::Result<()> {
    refuse()
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn detach(_: &DetachArgs) -> anyhow::Result<()> {
    refuse()
}

#[cfg(not(target_arch = "x86_64"))]
fn refuse() -> anyhow::Result<()> {
    anyhow::bail!("attach and detach work on x86_64 only, for which tt-metal is published; use `tt-smi run`")
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{attach, detach};

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::io::{BufRead, IsTerminal, Write};
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    use anyhow::{Context, bail};
    use tt_shm_os::{NAMESPACE_ENV, Namespace, Procfs, SHM_DIR};

    use super::{AttachArgs, DetachArgs, Settings};
    use crate::attach::target::Target;
    use crate::attach::{call, load_and_call};
    use crate::escape::{Foreign, fit};
    use crate::exit::{Exit, Usage};
    use crate::segments::Segments;
    use crate::signals::Stop;
    use crate::units::{age, plural};
    use crate::{procinfo, tap, users};

    const INSTALL: &str = "tt_shm_tap_install";
    const DETACH: &str = "tt_shm_tap_detach";
    /// Most bytes of an environment that are read.
    const MAX_ENVIRONMENT: u64 = 1 << 20;
    const COMMAND_WIDTH: usize = 100;

    pub(crate) fn attach(args: &AttachArgs, settings: &Settings) -> anyhow::Result<()> {
        let pid = args.pid;
        let mut target = Target::open(pid)?;
        target.check_metal()?;
        let namespace = namespace_of(pid);
        if target.tap().is_some() && reports(pid, &namespace) {
            println!("Process {pid} reports already: nothing to do.");
            return Ok(());
        }
        let loaded = target.tap().map(|tap| target.function(tap, INSTALL));
        let library = match &loaded {
            Some(_) => None,
            None => Some(visible_library(pid)?),
        };
        let library_line = match &library {
            Some(library) => format!("Its thread loads {} and lets tt-metal call it.", library.display()),
            None => "It has the library already; its thread switches the reports on.".to_owned(),
        };
        ask(pid, &library_line, args.yes)?;
        // From here on nobody's Ctrl-C gets in between. Even SIGKILL would do no harm, but leave the work undone.
        let _stop = Stop::on_signals()?;
        let hooks = match (library, loaded) {
            (Some(library), _) => load_and_call(&mut target, &library, INSTALL)?,
            (None, loaded) => {
                let function = loaded.flatten().with_context(|| {
                    format!("process {pid} has a tap without {INSTALL}, of another version: restart the job")
                })?;
                call(&target, function.address)?
            }
        };
        match hooks {
            1.. => {}
            -1 => {
                bail!("process {pid} has unloaded libtt_metal.so meanwhile; it goes on, nothing was hooked")
            }
            _ => bail!(
                "no hook could be put in place ({hooks}) in process {pid}, which goes on: its libtt_metal.so is of an \
                 unknown kind"
            ),
        }
        let hooks = plural(hooks.unsigned_abs().into(), "hook");
        println!("Attached: {hooks} in place; what it holds appears with its next allocation or free.");
        println!("To end that: tt-smi detach {pid}");
        tell_where(pid, &namespace, settings);
        Ok(())
    }

    pub(crate) fn detach(args: &DetachArgs) -> anyhow::Result<()> {
        let pid = args.pid;
        let target = Target::open(pid)?;
        let tap = target.tap().with_context(|| {
            format!(
                "process {pid} has no tap: it was started without `tt-smi run`, and nobody attached to it"
            )
        })?;
        let function = target.function(tap, DETACH).with_context(|| {
            format!("the tap in process {pid} is of an older version and cannot be switched off")
        })?;
        ask(pid, "Its thread switches the reports off; the hooks stay and only forward.", args.yes)?;
        let _stop = Stop::on_signals()?;
        match call(&target, function.address)? {
            0 => println!("Process {pid} did not report: nothing to do."),
            1.. => println!(
                "Detached: process {pid} reports nothing any more. To report again: tt-smi attach {pid}"
            ),
            error => bail!("the tap in process {pid} could not end its reports ({error})"),
        }
        Ok(())
    }

    /// Says what will be done, and asks.
    fn ask(pid: u32, what: &str, yes: bool) -> anyhow::Result<()> {
        if yes {
            return Ok(());
        }
        let stdin = std::io::stdin();
        if !stdin.is_terminal() {
            let advice = "stdin is not a terminal, so nobody can be asked: --yes does it without asking";
            return Err(Usage(advice.to_owned()).into());
        }
        // On stderr: stdout may go to a file.
        let mut out = std::io::stderr().lock();
        writeln!(out, "{}", describe(pid))?;
        writeln!(out, "One of its threads is stopped for some milliseconds; all others go on.")?;
        writeln!(out, "{what}")?;
        write!(out, "Go on? [y/N] ")?;
        out.flush()?;
        let mut answer = String::new();
        stdin.lock().read_line(&mut answer)?;
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            writeln!(out, "Nothing was done.")?;
            return Err(Exit(1).into());
        }
        Ok(())
    }

    /// Which process it is: number, user, command, age.
    fn describe(pid: u32) -> String {
        let info = procinfo::read(&Procfs::default(), pid);
        let user = info.as_ref().and_then(|info| info.owners).map(|[real, _]| real);
        let user = user.map_or_else(
            || "?".to_owned(),
            |uid| users::name_of(uid).map_or_else(|| uid.to_string(), |name| name.to_string()),
        );
        let command =
            info.as_ref().and_then(|info| info.command.clone()).unwrap_or_else(|| Foreign::from("?"));
        let command = fit(&command, COMMAND_WIDTH);
        let since = info.and_then(|info| age_of(info.start_ticks)).map(age).unwrap_or_else(|| "?".to_owned());
        format!("Process {pid} of {user}, running for {since}: {command}")
    }

    /// Nanoseconds since a process was started.
    fn age_of(start_ticks: u64) -> Option<u64> {
        let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
        let uptime: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
        let started = start_ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
        Some(((uptime - started).max(0.0) * 1e9) as u64)
    }

    /// The library's path, if the process finds the same file under it.
    fn visible_library(pid: u32) -> anyhow::Result<PathBuf> {
        let library = tap::file()?;
        check_visible(pid, &library)?;
        Ok(library)
    }

    fn check_visible(pid: u32, library: &Path) -> anyhow::Result<()> {
        let inside = Procfs::default().path(pid, "root").join(library.strip_prefix("/").unwrap_or(library));
        let own = std::fs::read(library).with_context(|| format!("cannot read {}", library.display()))?;
        let shown = library.display();
        let advice = format!(
            "start the container with the options of `tt-smi env --format docker` (it needs -v '{shown}:{shown}:ro'), \
             or copy the file there (docker cp)"
        );
        match std::fs::read(&inside) {
            Ok(theirs) if theirs == own => Ok(()),
            Ok(_) => bail!("in the file system of process {pid}, {shown} is another file: {advice}"),
            Err(error) => {
                bail!("process {pid} has another file system, without {shown} ({error}): {advice}")
            }
        }
    }

    /// The namespace that the process reports in, as its environment says.
    fn namespace_of(pid: u32) -> String {
        let environment = Procfs::default().start_of(pid, "environ", MAX_ENVIRONMENT);
        let prefix = format!("{NAMESPACE_ENV}=");
        let mut variables = environment.split(|byte| *byte == 0);
        let value = variables.find_map(|variable| variable.strip_prefix(prefix.as_bytes()));
        value.map_or_else(|| "default".to_owned(), |value| String::from_utf8_lossy(value).into_owned())
    }

    /// Whether a segment of the process is there.
    fn reports(pid: u32, namespace: &str) -> bool {
        let segments = Namespace::new(namespace).ok().and_then(|namespace| Segments::open(&namespace).ok());
        segments.is_some_and(|segments| segments.of(&[pid]).is_ok())
    }

    /// Says where its reports are to be found, if that is not here.
    fn tell_where(pid: u32, namespace: &str, settings: &Settings) {
        if namespace != settings.namespace.as_str() {
            println!(
                "It reports in another namespace: tt-smi --namespace {}",
                crate::escape::escape(namespace)
            );
        }
        let device = |path: &Path| path.metadata().ok().map(|stat| (stat.dev(), stat.ino()));
        let inside = Procfs::default().path(pid, "root").join(SHM_DIR.trim_start_matches('/'));
        if device(&inside) != device(Path::new(SHM_DIR)) {
            println!("Its {SHM_DIR} is another one than yours: run tt-smi in its container.");
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_library_that_the_process_does_not_find_is_refused() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("lib.so");
            std::fs::write(&path, "x").unwrap();
            check_visible(std::process::id(), &path).unwrap();
            let missing = check_visible(std::process::id(), &folder.path().join("none.so"));
            assert!(missing.unwrap_err().to_string().contains("cannot read"));
        }

        #[test]
        fn this_process_is_described() {
            let said = describe(std::process::id());
            assert!(said.contains(&format!("Process {} of ", std::process::id())), "{said}");
            assert!(!said.contains('?'), "{said}");
        }
    }
}
