//! `tt-smi env`: the environment that makes a job report, for jobs that are not started by `tt-smi run`.

use std::ffi::OsString;
use std::io::Write;

use tt_shm_os::NAMESPACE_ENV;

use crate::cli::{EnvArgs, EnvFormat};
use crate::settings::Settings;
use crate::tap::{self, PRELOAD_ENV};

pub(crate) fn run(args: &EnvArgs, settings: &Settings) -> anyhow::Result<()> {
    let tap = tap::file()?;
    // In a container or a unit, what is preloaded here is not there.
    let before = std::env::var_os(PRELOAD_ENV).filter(|_| args.format == EnvFormat::Shell);
    let preload = tap::preload(&tap, before.as_deref());
    let mut variables = vec![(PRELOAD_ENV, preload), (tt_shm_writer::ENABLED_ENV, OsString::from("1"))];
    if settings.namespace_given {
        variables.push((NAMESPACE_ENV, settings.namespace.as_str().into()));
    }
    let out = &mut std::io::stdout().lock();
    if args.format == EnvFormat::Docker {
        let tap = tap.display();
        // Segments are in the host's /dev/shm, and the library has to be there under the same name: the dynamic linker
        // warns about one that is not.
        writeln!(out, "--ipc=host -v '{tap}:{tap}:ro' \\")?;
    }
    let last = variables.len() - 1;
    for (index, (name, value)) in variables.iter().enumerate() {
        let value = value.to_string_lossy();
        match args.format {
            EnvFormat::Shell => writeln!(out, "export {name}='{}'", value.replace('\'', "'\\''"))?,
            EnvFormat::Docker => {
                writeln!(out, "-e '{name}={value}'{}", if index < last { " \\" } else { "" })?
            }
            EnvFormat::Systemd => writeln!(out, "Environment=\"{name}={value}\"")?,
        }
    }
    Ok(())
}
