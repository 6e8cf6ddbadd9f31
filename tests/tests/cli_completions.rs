//! The completions, tried in the shells that they are for. A shell that is not installed is skipped, and that is said.

use crate::common::{SMI, smi};
use std::path::Path;
use std::process::Command;
use tempfile::NamedTempFile;
use tt_shm_tests::Space;
use tt_shm_tests::terminal::{Terminal, program};

/// The completions for a shell in a file, which is removed at the end.
fn script(space: &Space, shell: &str, name: &str) -> NamedTempFile {
    let script = NamedTempFile::new().unwrap();
    std::fs::write(&script, smi(space, &["completions", shell, "--name", name])).unwrap();
    script
}

fn is_installed(shell: &str) -> bool {
    let found =
        ["/bin", "/usr/bin", "/usr/local/bin"].iter().any(|folder| Path::new(folder).join(shell).exists());
    if !found {
        eprintln!("SKIPPED: {shell} is not installed");
    }
    found
}

/// What is offered for a line whose last word is being typed; `None` if the shell is not there.
fn offered(shell: &str, name: &str, line: &str) -> Option<String> {
    let space = Space::new();
    let script = script(&space, shell, name);
    let file = script.path().display();
    let (before, last) = line.rsplit_once(' ').unwrap();
    let previous = before.rsplit(' ').next().unwrap();
    let code = match shell {
        // As bash itself calls the function that `complete -F` names.
        "bash" => format!(
            "source {file}; COMP_WORDS=({before} '{last}'); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             function=$(complete -p {name} | sed 's/.*-F \\([^ ]*\\) .*/\\1/'); \
             $function {name} '{last}' '{previous}'; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        ),
        "fish" => format!("source {file}; complete -C '{line}'"),
        other => panic!("no way to ask {other}"),
    };
    let output = is_installed(shell).then(|| Command::new(shell).args(["-c", &code]).output().unwrap())?;
    assert!(output.status.success() && output.stderr.is_empty(), "{shell}: {output:?}");
    let first = |line: &str| line.split('\t').next().unwrap_or_default().trim().to_owned();
    let said = String::from_utf8_lossy(&output.stdout).lines().map(first).collect::<Vec<_>>();
    Some(format!(" {} ", said.join(" ")))
}

#[test]
fn bash_and_fish_offer_commands_options_and_values() {
    for shell in ["bash", "fish"] {
        for (name, line, expected) in [
            ("tt-smi", "tt-smi snap", &[" snapshot "][..]),
            ("tt-smi-mem", "tt-smi-mem snap", &[" snapshot "]),
            ("tt-smi", "tt-smi -", &[" -s ", " -f ", " -l ", " --device ", " --namespace "]),
            ("tt-smi", "tt-smi snapshot --format ", &[" table ", " json ", " csv ", " prometheus "]),
            ("tt-smi", "tt-smi config ", &[" init ", " path ", " print "]),
            ("tt-smi-mem", "tt-smi-mem snapshot --format j", &[" json "]),
            ("tt-smi", "tt-smi snapshot --", &[" --detail ", " --namespace ", " --color "]),
        ] {
            let Some(offered) = offered(shell, name, line) else { break };
            for word in expected {
                assert!(offered.contains(word), "{shell}: {line:?} offers {offered}");
            }
            assert!(!offered.contains("demo-worker") && !offered.contains("--reset"), "{shell}: {offered}");
        }
    }
}

/// With the keyboard, since zsh completes only what is typed; both sourced and found by its name.
#[test]
fn zsh_completes_what_is_typed() {
    if !is_installed("zsh") {
        return;
    }
    let space = Space::new();
    let script = script(&space, "zsh", "tt-smi-mem");
    let file = script.path().display();
    let begin = "autoload -U compinit; compinit -u -D";
    for load in
        [format!("{begin}; source {file}"), format!("fpath=($PWD $fpath); cp {file} _tt-smi-mem; {begin}")]
    {
        let folder = tempfile::tempdir().unwrap();
        let mut zsh = program(&space, "zsh", &["-f", "-i"]);
        zsh.cwd(folder.path());
        let mut terminal = Terminal::start(zsh, 120, 50);
        terminal.press(&format!("PS1='READ''Y>'; {load}; clear\r"));
        terminal.await_text("READY>");
        terminal.press("tt-smi-mem snap\t--form\tpro\t");
        terminal.await_text("tt-smi-mem snapshot --format=prometheus");
    }
}

#[test]
fn a_name_that_could_be_code_is_refused() {
    let space = Space::new();
    let output = space.command(SMI).args(["completions", "bash", "--name", "a;b"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
