//! `tt-smi snapshot --json` against the states of all writers.

use super::table::Known;
use serde_json::Value;
use shm_layout::Class;

/// Key in the JSON, figure, class. The dispatches come last.
const FIGURES: [(&str, &str, Option<Class>); 12] = [
    ("dram_used_bytes", "dram_used", None),
    ("l1_used_bytes", "l1_used", None),
    ("eth_l1_used_bytes", "eth_used", None),
    ("dram_buffer_bytes", "live_bytes", Some(Class::Dram)),
    ("trace_used_bytes", "live_bytes", Some(Class::Trace)),
    ("l1_buffer_bytes", "live_bytes", Some(Class::L1)),
    ("l1_small_used_bytes", "live_bytes", Some(Class::L1Small)),
    ("cb_allocated_bytes", "live_bytes", Some(Class::Cb)),
    ("kernel_application_bytes", "live_bytes", Some(Class::KernelApplication)),
    ("kernel_fabric_bytes", "live_bytes", Some(Class::KernelFabric)),
    ("kernel_dispatch_bytes", "live_bytes", Some(Class::KernelDispatch)),
    ("dispatches", "dispatches", None),
];

/// What a snapshot printed.
pub fn parse(text: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(text).map_err(|error| format!("not JSON: {error}"))
}

/// Whether it is of now: made by `tt-smi` itself, or by the aggregator that runs. For a second, the table of a killed
/// aggregator is shown too, and its age with it.
pub fn is_current(snapshot: &Value, aggregator: Option<u32>) -> bool {
    let by = &snapshot["aggregator"]["pid"];
    by.is_null() || aggregator.is_some_and(|aggregator| *by == aggregator)
}

/// The first difference between a snapshot and the living writers.
pub fn compare(snapshot: &Value, writers: &[Known<'_>]) -> Result<(), String> {
    let none = Vec::new();
    let list = |of: &'static str| snapshot[of].as_array().unwrap_or(&none).iter();
    // Stopped by the soak itself, most of them: they live all the same.
    let alive = || list("processes").filter(|process| process["state"] != "ended");
    if alive().count() != writers.len() {
        return Err(format!("{} living processes, not {}", alive().count(), writers.len()));
    }
    for writer in writers {
        let process = alive().find(|process| process["pid"] == writer.pid);
        let process = process.ok_or_else(|| format!("pid {}: not in the snapshot", writer.pid))?;
        for usage in process["devices"].as_array().unwrap_or(&none) {
            let number = usage["logical_id"].as_u64().unwrap_or(u64::MAX) as usize;
            let expected = |what: &str, class| writer.state.figure(number, what, class);
            compare_figures(usage, &FIGURES, &format!("pid {} device {number}", writer.pid), expected)?;
        }
    }
    for device in list("devices") {
        let chip = device["chip_id"].as_str().and_then(|chip| chip.strip_prefix("0x"));
        let chip = chip.and_then(|chip| usize::from_str_radix(chip, 16).ok()).unwrap_or(0);
        let with_it = || writers.iter().filter(|writer| writer.state.devices.len() >= chip);
        let expected =
            |what: &str, class| with_it().map(|writer| writer.state.figure(chip - 1, what, class)).sum();
        // Not the dispatches: those of processes that ended stay in a device's count.
        compare_figures(device, &FIGURES[..FIGURES.len() - 1], &format!("device {}", chip - 1), expected)?;
    }
    Ok(())
}

fn compare_figures(
    said: &Value,
    figures: &[(&str, &str, Option<Class>)],
    whose: &str,
    expected: impl Fn(&str, Option<Class>) -> u64,
) -> Result<(), String> {
    for (key, what, class) in figures {
        let expected = expected(what, *class);
        if said[*key] != expected {
            return Err(format!("{whose}: {key}: expected {expected}, found {}", said[*key]));
        }
    }
    Ok(())
}
