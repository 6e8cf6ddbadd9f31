//! Where the parts of the overview are. With less room, parts disappear from the bottom up; the largest processes stay.

use ratatui::layout::{Constraint, Layout, Rect};

/// From this width on there is a pane at the side.
const WITH_SIDE: u16 = 160;
/// From this height on there is a graph below the devices, if none is at the side.
const WITH_CHART: u16 = 30;
/// Height of that graph.
const CHART: u16 = 9;
/// From this height on, bars have a legend.
const WITH_LEGEND: u16 = 14;
/// From this height on, there is a line about the selected device.
const WITH_ABOUT: u16 = 18;
/// Most lines for alarms; where there are many devices or processes, fewer.
const ALARMS: u16 = 4;
/// Least and most lines for names.
const NAMES: [u16; 2] = [6, 14];

#[derive(Clone, Copy, Debug)]
pub(super) struct Zones {
    pub totals: Rect,
    pub alarms: Rect,
    pub heading: Rect,
    pub devices: Rect,
    /// More about the selected device.
    pub about: Rect,
    pub legend: Rect,
    pub chart: Rect,
    pub processes: Rect,
    /// What the selected device's memory is used for.
    pub names: Rect,
    /// Empty if there is no room at the side.
    pub side: Rect,
}

/// How much there is to show.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content {
    pub alarms: usize,
    pub devices: usize,
    pub processes: usize,
}

impl Zones {
    pub(super) fn of(area: Rect, content: Content) -> Zones {
        let side = if area.width >= WITH_SIDE { area.width * 2 / 5 } else { 0 };
        let main = Rect { width: area.width - side, ..area };
        let height = area.height;
        let small = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        let (devices, processes) = (small(content.devices).max(1), small(content.processes));
        let (most_alarms, most_devices, least_processes) = match height {
            40.. => (3, 16, 5),
            30.. => (2, 10, 5),
            16.. => (1, 6, 5),
            _ => (1, 4, 3),
        };
        let legend = u16::from(height >= WITH_LEGEND);
        let about = u16::from(height >= WITH_ABOUT && content.devices > 0);
        // More alarms are better than a graph or names, but not than a device or a process.
        let spare =
            height.saturating_sub(2 + legend + about + devices.saturating_add(processes).saturating_add(1));
        let alarms = small(content.alarms).min(most_alarms.max(spare.min(ALARMS)));
        let fixed = 2 + alarms + legend + about;
        // Each with its heading.
        let (all, least) = (processes.max(1) + 1, processes.clamp(1, least_processes) + 1);
        let room = height.saturating_sub(fixed + least).max(1);
        // What processes do not need, devices may have.
        let spare = height.saturating_sub(fixed + all);
        let devices = devices.min(most_devices.max(spare)).min(room);
        let left = height.saturating_sub(fixed + devices + least);
        let chart = if side == 0 && height >= WITH_CHART && left >= CHART { CHART } else { 0 };
        // A graph takes what is left over, as long as all processes are there.
        let chart = chart.max(if chart > 0 {
            height.saturating_sub(fixed + devices + all).min(2 * CHART)
        } else {
            0
        });
        let spare = height.saturating_sub(fixed + devices + chart + all);
        let names = if spare >= NAMES[0] { spare.min(NAMES[1]) } else { 0 };
        let length = Constraint::Length;
        let rows = [
            length(1),
            length(alarms),
            length(1),
            length(devices),
            length(about),
            length(legend),
            length(chart),
            Constraint::Min(0),
            length(names),
        ];
        let [totals, alarms, heading, devices, about, legend, chart, processes, names] =
            main.layout(&Layout::vertical(rows));
        let side = Rect { x: main.right(), width: side, ..area };
        Zones { totals, alarms, heading, devices, about, legend, chart, processes, names, side }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heights(width: u16, height: u16, devices: usize, processes: usize) -> [u16; 5] {
        let content = Content { alarms: 5, devices, processes };
        let zones = Zones::of(Rect::new(0, 0, width, height), content);
        [zones.alarms, zones.devices, zones.chart, zones.processes, zones.names].map(|area| area.height)
    }

    #[test]
    fn many_devices_leave_room_for_the_largest_processes() {
        assert_eq!(heights(80, 20, 32, 8), [1, 6, 0, 9, 0], "all eight, and their heading");
        assert_eq!(heights(80, 20, 32, 80), [1, 6, 0, 9, 0]);
        assert_eq!(heights(80, 20, 32, 2), [1, 12, 0, 3, 0], "room that nobody else needs");
        assert_eq!(heights(60, 11, 32, 80), [1, 4, 0, 4, 0]);
        assert_eq!(heights(60, 4, 32, 80), [1, 1, 0, 0, 0]);
    }

    #[test]
    fn a_graph_needs_height_and_is_not_there_twice() {
        assert_eq!(heights(120, 36, 4, 3), [4, 4, 18, 6, 0]);
        assert_eq!(heights(120, 36, 4, 30), [2, 4, 9, 17, 0]);
        assert_eq!(heights(200, 46, 4, 3), [4, 4, 0, 20, 14]);
    }

    #[test]
    fn alarms_come_before_names() {
        assert_eq!(heights(80, 20, 4, 4), [4, 4, 0, 8, 0]);
    }
}
