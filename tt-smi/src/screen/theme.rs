//! Colours and drawing characters. Without colours, parts of a bar are letters; without Unicode, everything is ASCII.

use clap::ValueEnum;
use ratatui::style::{Color, Modifier, Style};
use tt_shm_reader::{Class, Memory};

use crate::model::{CLASSES, ClassInfo, Held, class_info};

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
    Of(Class),
    Free,
}

impl Part {
    /// One class of each that looks different, for a legend.
    pub fn legend() -> impl Iterator<Item = &'static ClassInfo> {
        let differs = |(place, info): &(usize, &ClassInfo)| {
            CLASSES[..*place].iter().all(|earlier| earlier.legend != info.legend)
        };
        let on_device = |info: &&ClassInfo| info.class.memory() != Memory::Host;
        CLASSES.iter().filter(on_device).enumerate().filter(differs).map(|(_, info)| info)
    }

    fn letter(self) -> char {
        match self {
            Part::Of(class) => class_info(class).letter,
            Part::Free => '·',
        }
    }

    fn color(self, palette: Palette) -> Color {
        let [default, safe, light] = match self {
            Part::Of(class) => class_info(class).colors,
            Part::Free => [Color::DarkGray, Color::Indexed(240), Color::Indexed(250)],
        };
        match palette {
            Palette::Default => default,
            Palette::Safe => safe,
            Palette::Light => light,
            Palette::Mono => Color::Reset,
        }
    }
}

/// How full a memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Normal,
    /// From 75 % on.
    High,
    /// From 90 % on.
    Full,
}

impl Level {
    pub(crate) fn of(used: u64, total: Option<u64>) -> Level {
        let Some(total) = total.filter(|total| *total > 0) else { return Level::Normal };
        let (used, total) = (u128::from(used), u128::from(total));
        match () {
            () if used * 10 >= total * 9 => Level::Full,
            () if used * 4 >= total * 3 => Level::High,
            () => Level::Normal,
        }
    }
}

/// What a memory's bar is made of.
pub(crate) fn parts(held: &Held, memory: Memory) -> Vec<(Part, u64)> {
    let classes = CLASSES.iter().map(|info| info.class).filter(|class| class.memory() == memory);
    classes.map(|class| (Part::Of(class), held.share(class).used)).collect()
}

/// Colours and characters in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Theme {
    pub palette: Palette,
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

    /// `theme safe, drawn with blocks`, in the words of the options.
    pub fn describe(self) -> String {
        let name = |value: Option<clap::builder::PossibleValue>| {
            value.map_or_else(String::new, |value| value.get_name().to_owned())
        };
        let (palette, signs) = (self.palette.to_possible_value(), self.signs.to_possible_value());
        format!("theme {}, drawn with {}", name(palette), name(signs))
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

    pub fn peak(&self) -> Style {
        self.fg(match self.palette {
            Palette::Safe => Color::Indexed(166),
            _ => Color::Red,
        })
    }

    pub fn heading(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The heading of the sort column.
    pub fn sorted(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }

    pub fn title(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED)
    }

    pub fn selected(&self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The selected row of a list that does not have the focus.
    pub fn chosen(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }

    /// Secondary text.
    pub fn dim(&self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub fn warn(&self) -> Style {
        let color = match self.palette {
            Palette::Safe => Color::Indexed(214),
            Palette::Light => Color::Indexed(130),
            _ => Color::Yellow,
        };
        self.fg(color).add_modifier(Modifier::BOLD)
    }

    /// How full something is: neutral, from 75 % on amber, from 90 % on red. Without colours, percentages say it.
    pub fn level(&self, used: u64, total: Option<u64>) -> Style {
        match Level::of(used, total) {
            Level::Normal => Style::new(),
            Level::High => self.warn(),
            Level::Full => self.alarm(),
        }
    }

    /// Something that is wrong.
    pub fn alarm(&self) -> Style {
        let color = match self.palette {
            Palette::Safe => Color::Indexed(202),
            Palette::Light => Color::Indexed(160),
            _ => Color::LightRed,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_begin_at_75_and_90_percent() {
        let level = |used| Level::of(used, Some(1000));
        assert_eq!(
            [749, 750, 899, 900, 2000].map(level),
            [Level::Normal, Level::High, Level::High, Level::Full, Level::Full]
        );
        assert_eq!(Level::of(u64::MAX, None), Level::Normal, "unknown is no alarm");
        assert_eq!(Level::of(u64::MAX, Some(0)), Level::Normal);
    }
}
