//! Arguments of `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::output::prometheus::PROCESS_LABELS;

/// `serve`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tt-smi serve                                  http://127.0.0.1:9400/metrics, for this machine
  tt-smi serve --listen 0.0.0.0:9400 --token-file /etc/tt-smi/token --allow-host node17.cluster
  curl -N -H \"Authorization: Bearer $(cat token)\" http://127.0.0.1:9400/api/v1/events
  tt-smi serve --brief --drop-label user        fewer series, for a large fleet

Answers /metrics, /api/v1/snapshot, /api/v1/events and /healthz. Set-up, rules and dashboards:
docs/fleet.md. JSON is described by docs/schema/snapshot.json, event.json and stream.json.")]
pub struct ServeArgs {
    /// Addresses to listen on; off loopback only with a token
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9400", value_delimiter = ',')]
    pub listen: Vec<SocketAddr>,
    /// File with the token that requests must carry; mode 0600. Without one there are no events
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Name of this machine in requests, beside its IP addresses, localhost and its host name
    #[arg(long, value_name = "NAME")]
    pub allow_host: Vec<String>,
    /// Most connections at a time; half of them at most stream events
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(2..=4096))]
    pub max_clients: usize,
    /// Most series of devices and processes; what is left out is counted in tt_smi_dropped_series
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    pub max_series: usize,
    /// Label of every series, beside host
    #[arg(long, value_name = "KEY=VALUE", value_parser = constant_label)]
    pub label: Vec<(String, String)>,
    /// A series for each process; without it, processes that no other label tells apart are summed
    #[arg(long)]
    pub pids: bool,
    /// Of each memory only what is used, its capacity and its peak, without classes
    #[arg(long)]
    pub brief: bool,
    /// Leave out a label of processes, and sum what it told apart
    #[arg(long, value_name = "LABEL", value_parser = PROCESS_LABELS)]
    pub drop_label: Vec<String>,
}

/// Labels that series have of their own.
const TAKEN: [&str; 15] = [
    "host",
    "device",
    "pci_bdf",
    "arch",
    "board",
    "chip_id",
    "pid",
    "claimed",
    "namespace_pid",
    "kind",
    "of",
    "code",
    "reason",
    "version",
    "le",
];

/// `cluster=a`: a name that Prometheus takes and nothing else uses.
fn constant_label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is not KEY=VALUE"))?;
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_name = name.starts_with(is_start) && name.chars().all(|c| is_start(c) || c.is_ascii_digit());
    if !is_name || name.starts_with("__") {
        return Err(format!("{name:?} is no label: letters, digits and _, not beginning with a digit or __"));
    }
    if TAKEN.contains(&name) || PROCESS_LABELS.contains(&name) {
        return Err(format!("series have a label {name} of their own"));
    }
    if value.is_empty() || value.chars().any(char::is_control) {
        return Err(format!("the label {name} needs a value without control characters"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_names_that_nothing_else_has() {
        assert_eq!(constant_label("cluster=a=b"), Ok(("cluster".to_owned(), "a=b".to_owned())));
        for (bad, says) in [
            ("cluster", "not KEY=VALUE"),
            ("1x=a", "is no label"),
            ("__x=a", "is no label"),
            ("ä=a", "is no label"),
            ("=a", "is no label"),
            ("host=a", "of their own"),
            ("user=a", "of their own"),
            ("x=", "needs a value"),
            ("x=a\nb", "needs a value"),
        ] {
            assert!(constant_label(bad).unwrap_err().contains(says), "{bad:?}");
        }
    }
}
