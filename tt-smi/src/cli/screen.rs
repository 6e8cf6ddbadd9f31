//! Options of the live screen.

use std::time::Duration;

use clap::Args;

use super::values::interval;
use crate::screen::{Palette, Signs, View};
use crate::select::DeviceSelector;

/// What the screen shows, and how. Options take precedence over the settings (`tt-smi config`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Live screen")]
pub struct ScreenArgs {
    /// Only this device: index, PCI address or chip id; may be repeated
    #[arg(long, value_name = "DEVICE")]
    pub device: Vec<DeviceSelector>,
    /// View to start with
    #[arg(long, value_enum, value_name = "VIEW")]
    pub view: Option<View>,
    /// Refresh interval, such as 100ms or 2s
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub interval: Option<Duration>,
    /// Colour theme
    #[arg(long, value_enum, value_name = "THEME")]
    pub theme: Option<Palette>,
    /// Characters to draw graphs with
    #[arg(long, value_enum, value_name = "SIGNS")]
    pub graph: Option<Signs>,
    /// Draw with ASCII characters only
    #[arg(long)]
    pub ascii: bool,
    /// Disable sending signals to processes (F9)
    #[arg(long)]
    pub readonly: bool,
}

impl ScreenArgs {
    /// Whether any of them was given.
    pub fn is_any(&self) -> bool {
        *self != ScreenArgs::default()
    }
}
