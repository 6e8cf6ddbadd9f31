//! What the user typed after `tt-smi oom`.

use clap::Args;

use crate::select::DeviceSelector;

/// `oom`
#[derive(Debug, Args)]
pub struct OomArgs {
    /// Only this device: index, PCI address or chip id; may be repeated
    #[arg(long, value_name = "DEVICE")]
    pub device: Vec<DeviceSelector>,
    /// At most so many, the latest
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub last: u32,
    /// JSON instead of text
    #[arg(long)]
    pub json: bool,
}
