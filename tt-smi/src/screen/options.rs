//! What the user chose before the screen opened.

use std::time::Duration;

use super::action::View;
use super::theme::Theme;
use crate::select::DeviceSelector;

/// The choices.
#[derive(Clone, Debug)]
pub struct Options {
    /// Colours and signs.
    pub theme: Theme,
    /// The first view.
    pub view: View,
    /// Between two looks at the figures.
    pub interval: Duration,
    /// Send no signals.
    pub readonly: bool,
    /// Only these devices; all if none is named.
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
