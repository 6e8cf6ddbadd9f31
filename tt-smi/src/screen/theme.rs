//! Colours and signs. Without colour, parts of a bar are letters; without Unicode, everything is ASCII.

use clap::ValueEnum;
use ratatui::style::{Color, Modifier, Style};

/// A set of colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Palette {
    /// For dark terminals, in the terminal's own sixteen colours.
    #[default]
    Default,
    /// Told apart also by those who do not see red and green apart.
    Safe,
    /// For light terminals.
    Light,
    /// No colours: letters instead.
    Mono,
}

/// What graphs are drawn with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Signs {
    /// Eight dots in a character.
    #[default]
    Braille,
    /// Eighths of blocks.
    Blocks,
    /// Characters that every terminal has.
    Ascii,
}

/// What a piece of a bar stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Buffers in DRAM.
    Dram,
    /// Trace buffers.
    Trace,
    /// Buffers in L1.
    L1,
    /// Buffers in the small region of L1.
    L1Small,
    /// Resident circular buffers.
    Cb,
    /// Resident kernels.
    Kernels,
    /// Nothing.
    Free,
}

impl Part {
    /// Those of the legend.
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
        // The colours of Okabe and Ito, nearest in the cube of 256 that also old terminals have.
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

/// How things look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Theme {
    /// The colours.
    pub palette: Palette,
    /// The signs.
    pub signs: Signs,
}

impl Theme {
    /// No colours, but all signs.
    pub const MONO: Theme = Theme { palette: Palette::Mono, signs: Signs::Braille };

    /// The next colours, round and round.
    pub fn next_palette(self) -> Theme {
        Theme { palette: next(self.palette), ..self }
    }

    /// The next signs, round and round.
    pub fn next_signs(self) -> Theme {
        Theme { signs: next(self.signs), ..self }
    }

    /// Whether there are colours.
    pub fn is_colored(&self) -> bool {
        self.palette != Palette::Mono
    }

    /// Sign and style of a part of a bar.
    pub fn part(&self, part: Part) -> (char, Style) {
        let style = self.fg(part.color(self.palette));
        match (self.is_colored(), part) {
            (false, _) | (true, Part::Free) => (part.letter(), style),
            (true, _) => ('█', style),
        }
    }

    /// The mark of the peak.
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

    /// The heading of the column that is sorted by.
    pub fn sorted(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }

    /// The line at the top.
    pub fn title(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED)
    }

    /// The selected row.
    pub fn selected(&self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// What matters less.
    pub fn dim(&self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// What to look at.
    pub fn warn(&self) -> Style {
        let color = match self.palette {
            Palette::Safe => Color::Indexed(214),
            Palette::Light => Color::Indexed(130),
            _ => Color::Yellow,
        };
        self.fg(color).add_modifier(Modifier::BOLD)
    }

    /// What is as it should be.
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

/// The variant after this one, round and round.
fn next<T: ValueEnum + PartialEq + Copy>(now: T) -> T {
    let all = T::value_variants();
    let place = all.iter().position(|variant| *variant == now).unwrap_or(0);
    all[(place + 1) % all.len()]
}
