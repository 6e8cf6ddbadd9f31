//! What the user typed after `tt-smi run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// `run`
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Also write the report as JSON to this file (mode 0600, replaced as a whole)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
