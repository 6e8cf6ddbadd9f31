//! Arguments of the commands that list single items: allocations, programs, events, failures.

use clap::{Args, ValueEnum};

use super::values::{allocation_query, event_query, failure_query, program_query};
use crate::lists::groups::GroupBy;
use crate::query::Query;
use crate::select::{ClassFilter, DeviceSelector};

/// Restricts a listing to devices.
#[derive(Debug, Default, Args)]
pub struct DeviceArgs {
    /// Only this device: index, PCI address or chip id; may be repeated
    #[arg(long, value_name = "DEVICE")]
    pub device: Vec<DeviceSelector>,
}

/// Whose, and on which devices.
#[derive(Debug, Args)]
pub struct OnlyArgs {
    /// Where.
    #[command(flatten)]
    pub on: DeviceArgs,
    /// Only this process; may be repeated
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
}

impl OnlyArgs {
    /// Whether there is no restriction.
    pub fn is_all(&self) -> bool {
        self.on.device.is_empty() && self.pid.is_empty()
    }
}

/// `allocations`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi allocations --device 0 --sort age --top 10     the oldest on device 0: leaks?
  tt-smi allocations --query 'class=kernel size>1MiB'   large kernels
  tt-smi allocations --query 'name~kv_cache age>10m'    old ones whose name contains kv_cache
  tt-smi allocations --group name --top 5               which operations hold the most
  tt-smi allocations --histogram --class dram           a few large ones, or many small ones?

Fields of a query: class, size, pid, name, device, age, address, program, id, cores, core, site.
Operators: = != > >= < <= ~ (contains) !~. JSON is described by docs/schema/allocations.json.")]
pub struct AllocationsArgs {
    /// Devices and processes to list.
    #[command(flatten)]
    pub only: OnlyArgs,
    /// Only this class: dram, trace, l1, l1_small, cb, kernel_application, kernel_fabric,
    /// kernel_dispatch, system_memory, or kernel for all three kernel classes; may be repeated
    #[arg(long, value_name = "CLASS")]
    pub class: Vec<ClassFilter>,
    /// Only items that match all terms, such as 'size>1MiB name~cache'; a bare word matches the name
    #[arg(long, short, value_name = "QUERY", default_value = "", hide_default_value = true, value_parser = allocation_query)]
    pub query: Query,
    /// Sort order
    #[arg(long, value_enum, default_value_t = SortBy::Size, value_name = "BY")]
    pub sort: SortBy,
    /// List at most N allocations or groups; the sums above the list cover all of them
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// List groups instead of single allocations
    #[arg(long, value_enum, value_name = "BY")]
    pub group: Option<GroupBy>,
    /// Also print a histogram of sizes, in powers of two
    #[arg(long)]
    pub histogram: bool,
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
    /// By device and address; unknown addresses last.
    Address,
}

/// `programs`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi programs --query 'misses>0 last<10s'   recent programs that missed the cache
  tt-smi programs --query 'class=kernel_fabric'

Fields of a query: class, size, pid, name, device, id, program, dispatches, hits, misses, last.
Operators: = != > >= < <= ~ (contains) !~. JSON is described by docs/schema/programs.json.")]
pub struct ProgramsArgs {
    /// Devices and processes to list.
    #[command(flatten)]
    pub only: OnlyArgs,
    /// Only items that match all terms, such as 'size>1MiB name~cache'; a bare word matches the name
    #[arg(long, short, value_name = "QUERY", default_value = "", hide_default_value = true, value_parser = program_query)]
    pub query: Query,
    /// JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// `cores`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi cores                                       which core runs out first, and what is there
  tt-smi cores --json | jq '.devices[0].runs_out_first'

JSON is described by docs/schema/cores.json.")]
pub struct CoresArgs {
    /// Devices.
    #[command(flatten)]
    pub on: DeviceArgs,
    /// JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// `events`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi events --follow --pid 4242
  tt-smi events --query 'kind=alloc_failed'         allocations that failed
  tt-smi events -f --query 'size>=64MiB device=0-3' large ones on four devices, live
  tt-smi events --json | jq -r .event | sort | uniq -c

Fields of a query: kind, class, size, pid, name, device, age, address, program, id, cores, core.
Operators: = != > >= < <= ~ (contains) !~. Each line of JSON is described by docs/schema/event.json.")]
pub struct EventsArgs {
    /// Keep printing new events, including those of new processes, until Ctrl-C
    #[arg(long, short)]
    pub follow: bool,
    /// Devices and processes.
    #[command(flatten)]
    pub only: OnlyArgs,
    /// Only events that match all terms, such as 'size>1MiB name~cache'; a bare word matches the name
    #[arg(long, short, value_name = "QUERY", default_value = "", hide_default_value = true, value_parser = event_query)]
    pub query: Query,
    /// One JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// `oom`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi oom                                   the last five failures
  tt-smi oom --device 0 --last 1               the last one on device 0
  tt-smi oom --json | jq '.failures[0].held'   who held the memory
  tt-smi oom --query 'class=l1 size>1MiB'      large requests that did not fit into L1

Fields of a query: device, class, size (requested), pid, name, age.
Operators: = != > >= < <= ~ (contains) !~. JSON is described by docs/schema/oom.json.")]
pub struct OomArgs {
    /// Devices.
    #[command(flatten)]
    pub on: DeviceArgs,
    /// Only failures that match all terms, such as 'class=l1 age<1h'; a bare word matches the name
    #[arg(long, short, value_name = "QUERY", default_value = "", hide_default_value = true, value_parser = failure_query)]
    pub query: Query,
    /// Show at most N failures, newest first
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub last: u32,
    /// JSON instead of text
    #[arg(long)]
    pub json: bool,
}
