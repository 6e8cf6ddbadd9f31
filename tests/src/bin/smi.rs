//! The `tt-smi` program, under a name that tests of this package can find.

fn main() -> std::process::ExitCode {
    tt_smi::run()
}
