//! Metrics of devices.

use super::family::{Families, Kind, Labels};
use crate::model::{COLUMNS, Device, Model};

/// Adds every figure of every device. What is not known is left out.
pub(super) fn add(families: &mut Families, model: &Model) {
    for column in COLUMNS.iter() {
        for device in &model.devices {
            if let Some(value) = column.of_device(device).number() {
                families.add(&column.metrics[0], Kind::Gauge, &column.help, labels(device), value);
            }
        }
    }
}

/// What tells a device from others.
pub(super) fn labels(device: &Device) -> Labels {
    Labels::default()
        .with("device", device.index)
        .with_known("pci_bdf", device.id.pci.as_ref())
        .with_known("arch", device.arch)
        .with_known("board", device.board.as_ref())
        .with("chip_id", format!("{:#018x}", device.id.chip_id))
}
