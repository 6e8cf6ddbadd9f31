//! Metrics of devices.

use super::Scope;
use super::family::{About, Kind, Labels, Sample};
use crate::model::{COLUMNS, Device};

/// Every figure of a device. What is not known is left out.
pub(super) fn samples(device: &Device, scope: &Scope) -> Vec<Sample> {
    let labels = labels(device);
    let columns = COLUMNS.iter().filter(|column| !scope.brief || column.is_brief());
    let mut samples: Vec<Sample> = columns
        .filter_map(|column| {
            let value = column.of_device(device).number()?;
            let about = About { name: &column.metrics[0], kind: Kind::Gauge, help: &column.help };
            Some((about, labels.clone(), value))
        })
        .collect();
    let last_failure = device.failure.and_then(|failure| failure.time.unix_seconds());
    samples.extend(last_failure.map(|time| (LAST_FAILURE, labels, time)));
    samples
}

/// Outlives the process whose allocation failed, unlike counts.
const LAST_FAILURE: About = About {
    name: "tt_device_last_failure_time_seconds",
    kind: Kind::Gauge,
    help: "When an allocation failed last; left out if none did.",
};

/// What tells a device from others.
pub(super) fn labels(device: &Device) -> Labels {
    Labels::default()
        .with("device", device.index)
        .with_known("pci_bdf", device.id.pci.as_ref())
        .with_known("arch", device.arch)
        .with_known("board", device.board.as_ref())
        .with("chip_id", format!("{:#018x}", device.id.chip_id))
}
