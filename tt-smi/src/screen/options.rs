//! Options given before the screen opens.

use std::time::Duration;

use super::action::View;
use super::theme::Theme;
use crate::select::DeviceSelector;

#[derive(Clone, Debug)]
pub struct Options {
    pub theme: Theme,
    /// The first view.
    pub view: View,
    pub interval: Duration,
    /// Disables sending signals.
    pub readonly: bool,
    /// Devices to show; all if empty.
    pub devices: Vec<DeviceSelector>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            theme: Theme::default(),
            view: View::default(),
            interval: Duration::from_millis(500),
            readonly: false,
            devices: Vec::new(),
        }
    }
}
