//! LTTng-UST: not a Rust library, so a script that runs a C program and prints its figures.

use crate::Peers;
use serde::Deserialize;
use serde_json::json;
use std::process::{Command, Output};
use tt_shm_measure::timing::{Measured, Percentiles};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/lttng.sh");
const WHAT: &str = "LTTng-UST tracepoint";

#[derive(Deserialize)]
struct Figures {
    ns: f64,
    percentiles: Percentiles,
}

pub(crate) fn run(peers: &mut Peers) {
    let (events, rounds) = peers.options.pick(("200000", "20"), ("20000", "5"));
    let output = Command::new("sh").args([SCRIPT, events, rounds]).output();
    match output.map(figures) {
        Ok(Ok(Figures { ns, percentiles })) => {
            let measured = Measured { ns, percentiles: Some(percentiles) };
            peers.add(WHAT, &[("clock", json!("its own"))], measured);
        }
        Ok(Err(why)) => peers.report.skip(WHAT, &why),
        Err(error) => peers.report.skip(WHAT, &error.to_string()),
    }
}

fn figures(output: Output) -> Result<Figures, String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_default();
    serde_json::from_str(last).map_err(|_| match last {
        "" => format!("the script failed: {}", String::from_utf8_lossy(&output.stderr).trim()),
        line => line.trim_start_matches("lttng: skipped: ").to_owned(),
    })
}
