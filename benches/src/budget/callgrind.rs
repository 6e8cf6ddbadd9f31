//! Counts a case's instructions: this very program again, under valgrind.

use std::error::Error;
use std::process::{Command, Output};

/// Argument after which the program runs the case of that name.
pub const RUN_CASE: &str = "--run-case";

/// Instructions per operation. The program must know what to do with [`RUN_CASE`].
pub fn instructions(case: &str) -> Result<f64, Box<dyn Error>> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--toggle-collect=*instructions_are_counted_here*"])
        .arg("--callgrind-out-file=/dev/null")
        .arg(std::env::current_exe()?)
        .args([RUN_CASE, case])
        .output()
        .map_err(|error| format!("cannot run valgrind ({error}); install it: apt-get install valgrind"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{case}: valgrind ended with {}:\n{said}", output.status).into());
    }
    match (collected(&said), operations(&output)) {
        (Some(instructions), Some(operations)) if instructions > 0 => {
            Ok(instructions as f64 / operations as f64)
        }
        _ => Err(format!("{case}: valgrind counted nothing; is the program stripped?\n{said}").into()),
    }
}

/// The version, as valgrind says it.
pub fn version() -> Result<String, Box<dyn Error>> {
    let output = Command::new("valgrind").arg("--version").output();
    let output =
        output.map_err(|error| format!("no valgrind ({error}); install it: apt-get install valgrind"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// `==1234== Collected : 5678`.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// What the case printed.
fn operations(output: &Output) -> Option<u64> {
    String::from_utf8_lossy(&output.stdout).trim().parse().ok().filter(|operations| *operations > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_in_what_valgrind_says() {
        let said = "==7== Events    : Ir\n==7== Collected : 1234567\n==7== \n";
        assert_eq!(collected(said), Some(1_234_567));
        assert_eq!(collected("==7== Events    : Ir"), None);
    }
}
