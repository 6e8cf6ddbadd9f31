//! Checks which `tt-smi` a shell would start: Tenstorrent's official tool, written in Python, has the same name.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::finding::Finding;
use super::roots::Roots;

/// What a file called `tt-smi` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    This,
    /// A Python script: the official tool.
    Official,
    Other,
}

/// Checks the first `tt-smi` in PATH.
pub(super) fn first(roots: &Roots) -> Finding {
    const CHECK: &str = "path";
    let folders = roots.path.iter().flat_map(std::env::split_paths);
    let found: Vec<PathBuf> =
        folders.map(|folder| folder.join("tt-smi")).filter(|file| is_program(file)).collect();
    let Some(first) = found.first() else {
        return Finding::pass(CHECK, "no tt-smi in PATH").hint("this program was started by its path");
    };
    let shown = first.display();
    let behind = |kind| found.iter().skip(1).any(|file| kind_of(file, roots.program.as_deref()) == kind);
    match kind_of(first, roots.program.as_deref()) {
        Kind::This if behind(Kind::Official) => {
            Finding::pass(CHECK, format!("{shown} is this program; the official tool comes later in PATH"))
        }
        Kind::This => Finding::pass(CHECK, format!("{shown} is this program")),
        Kind::Official => Finding::warn(
            CHECK,
            format!("{shown} is Tenstorrent's official tool, which does not show memory"),
            "run this program as `tt-smi-mem` (Debian package) or by its full path",
        ),
        Kind::Other => Finding::warn(CHECK, format!("{shown} is a different program"), "check your PATH"),
    }
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

fn kind_of(file: &Path, program: Option<&Path>) -> Kind {
    let real = file.canonicalize().ok();
    if real.is_some() && real == program.and_then(|program| program.canonicalize().ok()) {
        return Kind::This;
    }
    let mut start = Vec::new();
    let read = File::open(file).and_then(|file| file.take(4096).read_to_end(&mut start));
    let text = String::from_utf8_lossy(&start);
    let first_line = text.lines().next().unwrap_or_default();
    match read.is_ok() && first_line.starts_with("#!") && text.contains("python") {
        true => Kind::Official,
        false => Kind::Other,
    }
}
