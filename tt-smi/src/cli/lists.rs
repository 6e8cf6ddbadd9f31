//! Arguments of what lists one by one.

use clap::{Args, ValueEnum};

use super::values::{allocation_query, event_query, program_query};
use crate::lists::groups::GroupBy;
use crate::query::Query;
use crate::select::{ClassFilter, DeviceSelector};

/// Whose, and on which devices.
#[derive(Debug, Args)]
pub struct OnlyArgs {
    /// Only this device: index, PCI address or chip id; may be repeated
    #[arg(long, value_name = "DEVICE")]
    pub device: Vec<DeviceSelector>,
    /// Only this process; may be repeated
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
}

impl OnlyArgs {
    /// Whether nothing is left out.
    pub fn is_all(&self) -> bool {
        self.device.is_empty() && self.pid.is_empty()
    }
}

/// `allocations`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi allocations --device 0 --sort age --top 10     the oldest on device 0: a leak?
  tt-smi allocations --query 'class=kernel size>1MiB'   large kernels
  tt-smi allocations --query 'name~kv_cache age>10m'    old ones with that in their name
  tt-smi allocations --group name --top 5               which operation holds most
  tt-smi allocations --histogram --class dram           few large ones, or many small ones?

Fields of a query: class, size, pid, name, device, age, address, program, id, cores, core, site.
Operators: = != > >= < <= ~ (contains) !~. JSON is described by docs/schema/allocations.json.")]
pub struct AllocationsArgs {
    /// Where.
    #[command(flatten)]
    pub only: OnlyArgs,
    /// Only this class: dram, trace, l1, l1_small, cb, kernel_application, kernel_fabric,
    /// kernel_dispatch, system_memory, or kernel for all three kinds of kernels; may be repeated
    #[arg(long, value_name = "CLASS")]
    pub class: Vec<ClassFilter>,
    /// Only what fits all terms, such as 'size>1MiB name~cache'; a bare word is sought in the name
    #[arg(long, short, value_name = "QUERY", default_value = "", hide_default_value = true, value_parser = allocation_query)]
    pub query: Query,
    /// Largest or oldest first, or by address
    #[arg(long, value_enum, default_value_t = SortBy::Size, value_name = "BY")]
    pub sort: SortBy,
    /// List at most N allocations or groups; the sums above the list are always of all
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// List groups instead of single allocations
    #[arg(long, value_enum, value_name = "BY")]
    pub group: Option<GroupBy>,
    /// Also count the allocations of each size, by powers of two
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
    /// By device and address; those without a known address last.
    Address,
}

/// `programs`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi programs --query 'misses>0 last<10s'   which are still loaded anew each time
  tt-smi programs --query 'class=kernel_fabric'

Fields of a query: class, size, pid, name, device, id, program, dispatches, hits, misses, last.
Operators: = != > >= < <= ~ (contains) !~. JSON is described by docs/schema/programs.json.")]
pub struct ProgramsArgs {
    /// Where.
    #[command(flatten)]
    pub only: OnlyArgs,
    /// Only what fits all terms, such as 'size>1MiB name~cache'; a bare word is sought in the name
    #[arg(long, short, value_name = "QUERY", default_value = "", hide_default_value = true, value_parser = program_query)]
    pub query: Query,
    /// JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// `events`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi events --follow --pid 4242
  tt-smi events --query 'kind=alloc_failed'         what did not fit
  tt-smi events -f --query 'size>=64MiB device=0-3' large ones on four devices, as they happen
  tt-smi events --json | jq -r .event | sort | uniq -c

Fields of a query: kind, class, size, pid, name, device, age, address, program, id, cores, core.
Operators: = != > >= < <= ~ (contains) !~. Each line of JSON is described by docs/schema/event.json.")]
pub struct EventsArgs {
    /// Show what happens from now on, also in new processes, until Ctrl-C
    #[arg(long, short)]
    pub follow: bool,
    /// Only this process; may be repeated
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// Only what fits all terms, such as 'size>1MiB name~cache'; a bare word is sought in the name
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
  tt-smi oom                                   the last five
  tt-smi oom --device 0 --last 1               the last one on device 0
  tt-smi oom --json | jq '.failures[0].held'   who held what then

JSON is described by docs/schema/oom.json.")]
pub struct OomArgs {
    /// Only this device: index, PCI address or chip id; may be repeated
    #[arg(long, value_name = "DEVICE")]
    pub device: Vec<DeviceSelector>,
    /// Show at most N, the latest first
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub last: u32,
    /// JSON instead of text
    #[arg(long)]
    pub json: bool,
}
