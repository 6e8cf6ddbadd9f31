//! Tests that may run beside each other. Those with a program of their own (see `Cargo.toml`) do so much in /dev/shm or on
//! the processor that others would notice.

mod common;

mod aggregate;
mod aggregator_faults;
mod attach;
mod bridge;
mod cli;
mod cli_commands;
mod cli_completions;
mod cli_options;
mod cli_packaging;
mod containers;
mod cores;
mod doctor;
mod driver_devices;
mod driver_holders;
mod driver_list;
mod driver_table;
mod driver_trap;
mod exactness;
mod fork;
mod full;
mod hostile_sources;
mod odd_hosts;
mod oom;
mod pid_namespace;
mod record;
mod region_content;
mod region_files;
mod region_metal;
mod region_processes;
mod region_table;
mod run;
mod schema;
mod screen;
mod screen_keys;
mod segment;
mod serve;
mod tap;
mod time_namespace;
mod unloadable;
