//! Arguments of `report`.

use std::path::PathBuf;

use clap::Args;

/// `report`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi report night.ttrec                         writes night.html
  tt-smi report night.ttrec -o - > page.html
  tt-smi report night.ttrec -o llama.html --title 'llama, batch 32' --force")]
pub struct ReportArgs {
    /// The record
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Where the page goes; - for stdout [default: the name of the record with .html, in the current directory]
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Title of the page [default: the name of the host]
    #[arg(long)]
    pub title: Option<String>,
    /// Replace a file that exists
    #[arg(long)]
    pub force: bool,
}
