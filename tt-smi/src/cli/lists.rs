//! Arguments of what lists one by one.

use clap::{Args, ValueEnum};

use crate::select::{ClassFilter, DeviceSelector};

/// `allocations`
#[derive(Debug, Args)]
pub struct AllocationsArgs {
    /// Only this device: index, PCI address or chip id; may be repeated
    #[arg(long, value_name = "DEVICE")]
    pub device: Vec<DeviceSelector>,
    /// Only this process; may be repeated
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// Only this class: dram, trace, l1, l1_small, cb, kernel_application, kernel_fabric,
    /// kernel_dispatch, system_memory, or kernel for all three kinds of kernels; may be repeated
    #[arg(long, value_name = "CLASS")]
    pub class: Vec<ClassFilter>,
    /// Largest or oldest first
    #[arg(long, value_enum, default_value_t = SortBy::Size)]
    pub sort: SortBy,
    /// List at most so many single ones (subtotals are always of all)
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Order of single allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SortBy {
    /// Largest first.
    Size,
    /// Oldest first.
    Age,
}

/// `programs`
#[derive(Debug, Args)]
pub struct ProgramsArgs {
    /// Only programs on this device: index, PCI address or chip id; may be repeated
    #[arg(long, value_name = "DEVICE")]
    pub device: Vec<DeviceSelector>,
    /// Only this process; may be repeated
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// `events`
#[derive(Debug, Args)]
pub struct EventsArgs {
    /// Go on with what happens from now on, also in new processes, until Ctrl-C
    #[arg(long, short)]
    pub follow: bool,
    /// Only this process; may be repeated
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// One JSON object per line
    #[arg(long)]
    pub json: bool,
}
