//! Colours, or letters where there are none.

use ratatui::style::{Color, Modifier, Style};

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
}

/// How things look. Without colour, parts of a bar are told apart by letters.
#[derive(Clone, Copy, Debug)]
pub struct Theme {
    colored: bool,
}

impl Theme {
    /// With or without colour.
    pub fn new(colored: bool) -> Theme {
        Theme { colored }
    }

    /// Sign and style of a part of a bar.
    pub fn part(&self, part: Part) -> (char, Style) {
        // Blue, orange and their like: told apart also by those who do not see red and green apart.
        let (letter, color) = match part {
            Part::Dram => ('D', Color::Blue),
            Part::Trace => ('T', Color::LightCyan),
            Part::L1 => ('L', Color::Cyan),
            Part::L1Small => ('S', Color::White),
            Part::Cb => ('C', Color::Magenta),
            Part::Kernels => ('K', Color::Yellow),
            Part::Free => ('·', Color::DarkGray),
        };
        match (self.colored, part) {
            (false, _) => (letter, Style::new()),
            (true, Part::Free) => ('·', Style::new().fg(color)),
            (true, _) => ('█', Style::new().fg(color)),
        }
    }

    /// The mark of the peak.
    pub fn peak(&self) -> Style {
        self.fg(Color::Red)
    }

    /// A heading.
    pub fn heading(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The line at the top.
    pub fn title(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED)
    }

    /// What matters less.
    pub fn dim(&self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// What to look at.
    pub fn warn(&self) -> Style {
        self.fg(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    fn fg(&self, color: Color) -> Style {
        if self.colored { Style::new().fg(color) } else { Style::new() }
    }
}
