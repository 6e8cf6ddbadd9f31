//! Arguments of what shows all devices and processes at once.

use clap::Args;

/// `snapshot`
#[derive(Debug, Default, Args)]
pub struct SnapshotArgs {
    /// JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// Also what each process has on each device (JSON has it always)
    #[arg(long, short)]
    pub processes: bool,
    /// Also every class, the kernels by type, and the peaks of each device
    #[arg(long, short)]
    pub detail: bool,
}
