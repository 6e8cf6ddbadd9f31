//! The keys of the file, and what they may be.

use std::time::Duration;

use clap::ValueEnum;

use super::Config;
use crate::cli::interval;
use crate::screen::{Palette, Signs, View};

/// A setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// [`Config::theme`].
    Theme,
    /// [`Config::ascii`].
    Ascii,
    /// [`Config::interval`].
    Interval,
    /// [`Config::readonly`].
    Readonly,
    /// [`Config::color`].
    Color,
    /// [`Config::graph`].
    Graph,
    /// [`Config::view`].
    View,
}

impl Key {
    /// Every key, in the order of the file.
    pub(crate) const ALL: [Key; 7] =
        [Key::Theme, Key::Color, Key::Ascii, Key::Graph, Key::View, Key::Interval, Key::Readonly];

    /// Its name in the file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Key::Theme => "theme",
            Key::Ascii => "ascii",
            Key::Interval => "interval",
            Key::Readonly => "readonly",
            Key::Color => "color",
            Key::Graph => "graph",
            Key::View => "view",
        }
    }

    /// Its name in the environment: `TT_SMI_THEME`.
    pub(crate) fn env(self) -> String {
        format!("TT_SMI_{}", self.name().to_ascii_uppercase())
    }

    /// What it is for.
    pub(crate) fn about(self) -> &'static str {
        match self {
            Key::Theme => "Colours of the screen; safe needs no difference between red and green.",
            Key::Ascii => "Draw the screen with characters that every terminal has.",
            Key::Interval => "Time between two looks, of the screen and of `tt-smi watch`.",
            Key::Readonly => "The screen sends no signals to processes.",
            Key::Color => "When to use colours; NO_COLOR is honoured.",
            Key::Graph => "What graphs are drawn with.",
            Key::View => "The view that the screen begins with.",
        }
    }

    /// What it may be.
    pub(crate) fn allowed(self) -> String {
        match self {
            Key::Theme => words::<Palette>(),
            Key::Color => words::<crate::cli::ColorChoice>(),
            Key::Graph => words::<Signs>(),
            Key::View => words::<View>(),
            Key::Ascii | Key::Readonly => "true or false".to_owned(),
            Key::Interval => "a time from 20ms to 1h, such as 500ms or 2s".to_owned(),
        }
    }

    /// Sets it; `false` if the text is not allowed.
    #[must_use]
    pub(super) fn set(self, config: &mut Config, text: &str) -> bool {
        match self {
            Key::Theme => put(&mut config.theme, word(text)),
            Key::Color => put(&mut config.color, word(text)),
            Key::Graph => put(&mut config.graph, word(text)),
            Key::View => put(&mut config.view, word(text)),
            Key::Ascii => put(&mut config.ascii, text.parse().ok()),
            Key::Readonly => put(&mut config.readonly, text.parse().ok()),
            Key::Interval => put(&mut config.interval, interval(text).ok()),
        }
    }

    /// A line of the file: `interval = "500ms"`.
    pub(crate) fn line(self, config: &Config) -> String {
        let value = match self {
            Key::Theme => quoted(config.theme),
            Key::Color => quoted(config.color),
            Key::Graph => quoted(config.graph),
            Key::View => quoted(config.view),
            Key::Ascii => config.ascii.to_string(),
            Key::Readonly => config.readonly.to_string(),
            Key::Interval => format!("\"{}\"", short(config.interval)),
        };
        format!("{} = {value}", self.name())
    }
}

fn put<T>(place: &mut T, value: Option<T>) -> bool {
    let is_allowed = value.is_some();
    if let Some(value) = value {
        *place = value;
    }
    is_allowed
}

fn word<T: ValueEnum>(text: &str) -> Option<T> {
    T::from_str(text, true).ok()
}

/// `default, safe, light or mono`.
fn words<T: ValueEnum>() -> String {
    let names: Vec<String> = T::value_variants().iter().map(|value| name(value)).collect();
    let (last, others) = names.split_last().expect("there are several");
    format!("{} or {last}", others.join(", "))
}

fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn quoted(value: impl ValueEnum) -> String {
    format!("\"{}\"", name(&value))
}

/// `500ms`, `2s`.
fn short(time: Duration) -> String {
    match time.subsec_millis() {
        0 => format!("{}s", time.as_secs()),
        _ => format!("{}ms", time.as_millis()),
    }
}
