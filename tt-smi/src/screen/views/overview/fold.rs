//! Devices that look alike are one row, which opens.

use crate::model::{Device, Model, ranges};

/// Consecutive rows of devices, or one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Places in the list of devices, ascending; never empty.
    pub members: Vec<usize>,
}

impl Group {
    /// The place of the device that stands for all.
    pub(super) fn first(&self) -> usize {
        self.members[0]
    }

    pub(super) fn is_folded(&self) -> bool {
        self.members.len() > 1
    }

    /// `3`, or `0-3 x4`.
    pub(super) fn name(&self, devices: &[Device]) -> String {
        let indices = self.members.iter().filter_map(|place| Some(devices.get(*place)?.index));
        match self.members.len() {
            1 => ranges(indices),
            count => format!("{} x{count}", ranges(indices)),
        }
    }
}

/// What has to be the same on devices of one row: everything that the row shows of memory, and who holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Look {
    kind: String,
    totals: [Option<u64>; 2],
    used: [u64; 2],
    peaks: [(u64, Option<u64>); 2],
    flags: Vec<&'static str>,
    holders: Vec<u64>,
    has_failed: bool,
}

impl Look {
    fn of(device: &Device, model: &Model) -> Look {
        let memories = [&device.held.dram, &device.held.l1];
        let uses = |process: &&crate::model::Process| {
            process.usages.iter().any(|usage| usage.device == device.index)
        };
        Look {
            kind: device.kind(),
            totals: memories.map(|memory| memory.total),
            used: memories.map(|memory| memory.used),
            peaks: memories.map(|memory| (memory.peak.range.low, memory.peak.range.high)),
            flags: device.flags(),
            holders: model.processes.iter().filter(uses).map(|process| process.identity).collect(),
            has_failed: device.failure.is_some(),
        }
    }
}

/// Which devices are folded.
#[derive(Debug, Default)]
pub(super) struct Folding {
    groups: Vec<Group>,
    /// Chips whose row was opened.
    opened: Vec<u64>,
    /// How each chip looked at the last refresh.
    before: Vec<(u64, Look)>,
}

impl Folding {
    pub(super) fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Folds what looks alike. A process reports to its devices one after the other, so a difference that was not there
    /// at the last refresh does not break a row yet.
    pub(super) fn refresh(&mut self, model: &Model) {
        let looks: Vec<(u64, Look)> =
            model.devices.iter().map(|device| (device.id.chip_id, Look::of(device, model))).collect();
        let was = |chip: u64| self.before.iter().find(|(one, _)| *one == chip).map(|(_, look)| look);
        let mut groups: Vec<Group> = Vec::new();
        for (place, (chip, look)) in looks.iter().enumerate() {
            let alike = |group: &&mut Group| {
                let (leader, leaders) = &looks[group.first()];
                let is_same = look == leaders;
                let was_same = was(*chip).is_some_and(|look| Some(look) == was(*leader))
                    && self.groups_together(*leader, *chip, model);
                (is_same || was_same) && !self.opened.contains(chip)
            };
            match groups.iter_mut().find(alike) {
                Some(group) => group.members.push(place),
                None => groups.push(Group { members: vec![place] }),
            }
        }
        (self.groups, self.before) = (groups, looks);
    }

    /// Whether two chips are in one row now.
    fn groups_together(&self, one: u64, other: u64, model: &Model) -> bool {
        let chip = |place: &usize| model.devices.get(*place).map(|device| device.id.chip_id);
        self.groups.iter().any(|group| {
            let has = |wanted: u64| group.members.iter().any(|place| chip(place) == Some(wanted));
            has(one) && has(other)
        })
    }

    /// Opens a row; refresh after it.
    pub(super) fn open(&mut self, group: &Group, model: &Model) {
        self.opened
            .extend(group.members.iter().filter_map(|place| Some(model.devices.get(*place)?.id.chip_id)));
    }

    /// Closes all rows that were opened; returns whether there were any. Refresh after it.
    pub(super) fn close(&mut self) -> bool {
        !std::mem::take(&mut self.opened).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::More;
    use crate::screen::views::fixture;

    fn rows(folding: &Folding, model: &Model) -> Vec<String> {
        folding.groups().iter().map(|group| group.name(&model.devices)).collect()
    }

    #[test]
    fn alike_is_one_row_until_a_difference_lasts() {
        let mut model = fixture::data(4, 1, More::None).model;
        let mut folding = Folding::default();
        folding.refresh(&model);
        assert_eq!(rows(&folding, &model), ["0-3 x4"]);
        model.devices[2].held.dram.used += 1;
        folding.refresh(&model);
        assert_eq!(rows(&folding, &model), ["0-3 x4"], "perhaps only not reported yet");
        folding.refresh(&model);
        assert_eq!(rows(&folding, &model), ["0-1,3 x3", "2"]);
        model.devices[2].held.dram.used -= 1;
        folding.refresh(&model);
        assert_eq!(rows(&folding, &model), ["0-3 x4"]);
    }

    #[test]
    fn a_row_opens_and_closes() {
        let model = fixture::data(3, 1, More::None).model;
        let mut folding = Folding::default();
        folding.refresh(&model);
        let group = folding.groups()[0].clone();
        folding.open(&group, &model);
        folding.refresh(&model);
        assert_eq!(rows(&folding, &model), ["0", "1", "2"]);
        assert!(folding.close() && !folding.close());
        folding.refresh(&model);
        assert_eq!(rows(&folding, &model), ["0-2 x3"]);
    }
}
