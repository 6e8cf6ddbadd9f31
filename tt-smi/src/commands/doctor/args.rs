//! What the user typed after `tt-smi doctor`.

use clap::Args;

/// `doctor`
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// JSON instead of text
    #[arg(long)]
    pub json: bool,
}
