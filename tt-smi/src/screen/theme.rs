//! Colours and drawing characters. Without colours, parts of a bar are letters; without Unicode, everything is ASCII.

use clap::ValueEnum;
use ratatui::style::{Color, Modifier, Style};

/// A colour theme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Palette {
    /// For dark terminals, in the terminal's own sixteen colours.
    #[default]
    Default,
    /// Distinguishable without telling red from green.
    Safe,
    /// For light terminals.
    Light,
    /// No colours; letters instead.
    Mono,
}

/// Characters to draw graphs with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Signs {
    /// Braille, eight dots per character.
    #[default]
    Braille,
    /// Block elements, in eighths.
    Blocks,
    /// ASCII only.
    Ascii,
}

/// A part of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Buffers in DRAM.
    Dram,
    /// Trace buffers.
    Trace,
    /// Buffers in L1.
    L1,
    /// Buffers in the L1_SMALL region.
    L1Small,
    /// Resident circular buffers.
    Cb,
    /// Resident kernels.
    Kernels,
    /// Free memory.
    Free,
}

impl Part {
    /// The parts in the legend.
    pub const ALL: [Part; 6] = [Part::Dram, Part::Trace, Part::L1, Part::L1Small, Part::Cb, Part::Kernels];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Part::Dram => "dram",
            Part::Trace => "trace",
            Part::L1 => "l1",
            Part::L1Small => "l1_small",
            Part::Cb => "cb",
            Part::Kernels => "kernels",
            Part::Free => "free",
        }
    }

    fn letter(self) -> char {
        match self {
            Part::Dram => 'D',
            Part::Trace => 'T',
            Part::L1 => 'L',
            Part::L1Small => 'S',
            Part::Cb => 'C',
            Part::Kernels => 'K',
            Part::Free => '·',
        }
    }

    fn color(self, palette: Palette) -> Color {
        // The colours of Okabe and Ito, mapped to the nearest of the 256 that old terminals have too.
        let safe = [75, 214, 32, 250, 175, 220, 240];
        let default = [
            Color::Blue,
            Color::LightCyan,
            Color::Cyan,
            Color::White,
            Color::Magenta,
            Color::Yellow,
            Color::DarkGray,
        ];
        let light = [25, 37, 30, 244, 90, 136, 250];
        match palette {
            Palette::Default => default[self as usize],
            Palette::Safe => Color::Indexed(safe[self as usize]),
            Palette::Light => Color::Indexed(light[self as usize]),
            Palette::Mono => Color::Reset,
        }
    }
}

/// Colours and characters in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Theme {
    /// The colours.
    pub palette: Palette,
    /// The characters.
    pub signs: Signs,
}

impl Theme {
    /// No colours, all characters.
    pub const MONO: Theme = Theme { palette: Palette::Mono, signs: Signs::Braille };

    /// The next theme, cyclically.
    pub fn next_palette(self) -> Theme {
        Theme { palette: next(self.palette), ..self }
    }

    /// The next characters, cyclically.
    pub fn next_signs(self) -> Theme {
        Theme { signs: next(self.signs), ..self }
    }

    /// Whether there are colours.
    pub fn is_colored(&self) -> bool {
        self.palette != Palette::Mono
    }

    /// Character and style of a part of a bar.
    pub fn part(&self, part: Part) -> (char, Style) {
        let style = self.fg(part.color(self.palette));
        match (self.is_colored(), part) {
            (false, _) | (true, Part::Free) => (part.letter(), style),
            (true, _) => ('█', style),
        }
    }

    /// The peak marker.
    pub fn peak(&self) -> Style {
        self.fg(match self.palette {
            Palette::Safe => Color::Indexed(166),
            _ => Color::Red,
        })
    }

    /// A heading.
    pub fn heading(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The heading of the sort column.
    pub fn sorted(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }

    /// The title line.
    pub fn title(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED)
    }

    /// The selected row.
    pub fn selected(&self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Secondary text.
    pub fn dim(&self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// A warning.
    pub fn warn(&self) -> Style {
        let color = match self.palette {
            Palette::Safe => Color::Indexed(214),
            Palette::Light => Color::Indexed(130),
            _ => Color::Yellow,
        };
        self.fg(color).add_modifier(Modifier::BOLD)
    }

    /// A good state.
    pub fn good(&self) -> Style {
        self.fg(match self.palette {
            Palette::Safe => Color::Indexed(75),
            _ => Color::Green,
        })
    }

    fn fg(&self, color: Color) -> Style {
        if self.is_colored() { Style::new().fg(color) } else { Style::new() }
    }
}

/// The variant after this one, cyclically.
fn next<T: ValueEnum + PartialEq + Copy>(now: T) -> T {
    let all = T::value_variants();
    let place = all.iter().position(|variant| *variant == now).unwrap_or(0);
    all[(place + 1) % all.len()]
}
