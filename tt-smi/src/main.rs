//! The `tt-smi` program. Everything is in the library, so that tests can reach it.

fn main() -> std::process::ExitCode {
    tt_smi::run()
}
