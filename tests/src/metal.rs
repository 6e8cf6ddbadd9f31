//! A real tt-metal in its mock mode, where `.ci/tt-metal` has made an environment for one.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An environment with a published ttnn.
#[derive(Clone, Debug)]
pub struct Metal {
    home: PathBuf,
}

impl Metal {
    /// The environment of ttnn 0.81.1; where there is none, says so in a line.
    pub fn find() -> Option<Metal> {
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let cache = variable("TT_METAL_MOCK").or_else(|| {
            let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")))?;
            Some(cache.join("tt-shm/tt-metal"))
        });
        let home = cache.map(|cache| cache.join("0.81.1"));
        let made = home.filter(|home| home.join("compiler-version").exists()).map(|home| Metal { home });
        if made.is_none() {
            // Not by a macro: the test harness would keep it to itself.
            let _ = writeln!(
                std::io::stderr(),
                "tt-metal: not compared here, since .ci/tt-metal has made no environment (needs Python 3.10 or 3.12)"
            );
        }
        made
    }

    /// The description of a machine.
    pub fn machine(&self, name: &str) -> PathBuf {
        self.home.join(format!("machines/{name}.yaml"))
    }

    /// Its Python, with a script of `tap/mock`.
    pub fn python(&self, script: &str) -> (PathBuf, PathBuf) {
        let mock = concat!(env!("CARGO_MANIFEST_DIR"), "/../tap/mock");
        (self.home.join("venv/bin/python"), Path::new(mock).join(script))
    }

    /// Lets a command find everything that tt-metal needs, on a machine that is described by a file.
    pub fn prepare<'a>(&self, command: &'a mut Command, machine: impl AsRef<OsStr>) -> &'a mut Command {
        let version = std::fs::read_to_string(self.home.join("compiler-version")).expect("it was there");
        command
            .env("KERNEL_COMPILER_VERSION", version.trim())
            .env("KERNEL_OBJECT", self.home.join("kernel.o"));
        command.env("TT_METAL_RUNTIME_ROOT", self.home.join("root"));
        command.env("TT_METAL_CACHE", self.home.join("cache"));
        command.env("TT_METAL_MOCK_CLUSTER_DESC_PATH", machine);
        // It writes into the folder it is started in.
        command.env("TT_METAL_LOGGER_LEVEL", "fatal").env("LOGURU_LEVEL", "ERROR").current_dir(&self.home)
    }
}
