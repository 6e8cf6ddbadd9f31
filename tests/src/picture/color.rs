//! The colours of a terminal.

use vt100::Color;

pub(super) const BACKGROUND: &str = "#16181d";
pub(super) const FOREGROUND: &str = "#d8dee9";

/// The sixteen that a terminal names.
const NAMED: [&str; 16] = [
    "#20242c", "#e06c75", "#98c379", "#e5c07b", "#5ea2ee", "#c678dd", "#4bb8c4", "#c8ccd4", "#5c6370",
    "#ff7b85", "#b5e890", "#ffd78a", "#82bdff", "#e08cff", "#7fe3ee", "#ffffff",
];
/// Steps of the cube.
const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// `#rrggbb`; `None` for the terminal's own.
pub(super) fn hex(color: Color) -> Option<String> {
    match color {
        Color::Default => None,
        Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
        Color::Idx(index @ 0..16) => Some(NAMED[usize::from(index)].to_owned()),
        Color::Idx(index @ 16..232) => {
            let place = usize::from(index - 16);
            let [red, green, blue] = [place / 36, place / 6 % 6, place % 6].map(|step| STEPS[step]);
            Some(format!("#{red:02x}{green:02x}{blue:02x}"))
        }
        Color::Idx(index) => {
            let grey = 8 + 10 * (index - 232);
            Some(format!("#{grey:02x}{grey:02x}{grey:02x}"))
        }
    }
}
