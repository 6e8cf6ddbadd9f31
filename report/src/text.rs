//! Texts of other processes: kept once, made visible, never interpreted.

use std::collections::HashMap;

use serde::Serialize;

/// The most characters of a text; what is longer ends with an ellipsis.
const MAX_CHARS: usize = 400;
/// The most different texts of a report. What comes later is [`Texts::MORE`].
const MAX_TEXTS: usize = 1 << 16;

/// The texts of a report, by number.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Texts {
    list: Vec<String>,
    #[serde(skip)]
    numbers: HashMap<String, u32>,
}

impl Texts {
    /// The number of the text that stands for none.
    pub(crate) const NONE: u32 = 0;
    /// The number of what there was no room for.
    pub(crate) const MORE: u32 = 1;

    pub(crate) fn new() -> Texts {
        let list = vec![String::new(), "(other names)".to_owned()];
        Texts { list, numbers: HashMap::new() }
    }

    /// The number of a text.
    pub(crate) fn number(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return Texts::NONE;
        }
        let text = visible(text);
        if let Some(number) = self.numbers.get(&text) {
            return *number;
        }
        if self.list.len() >= MAX_TEXTS {
            return Texts::MORE;
        }
        let number = self.list.len() as u32;
        self.list.push(text.clone());
        self.numbers.insert(text, number);
        number
    }

    pub(crate) fn get(&self, number: u32) -> &str {
        self.list.get(number as usize).map_or("", String::as_str)
    }
}

/// A text with everything spelled out that would not be seen, or would change how its surroundings look: control
/// characters, and marks that change the direction of text.
pub(crate) fn visible(text: &str) -> String {
    let mut out = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == MAX_CHARS {
            out.push('…');
            break;
        }
        let is_mark = matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{61c}');
        match is_mark || character.is_control() {
            true => out.extend(character.escape_unicode()),
            false => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_spelled_out() {
        assert_eq!(visible("a\u{202e}b\u{1b}[2J\n"), "a\\u{202e}b\\u{1b}[2J\\u{a}");
        assert_eq!(visible("größe 大"), "größe 大");
        assert_eq!(visible(&"x".repeat(1000)).chars().count(), MAX_CHARS + 1);
    }

    #[test]
    fn a_text_is_kept_once() {
        let mut texts = Texts::new();
        assert_eq!((texts.number("a"), texts.number("b"), texts.number("a"), texts.number("")), (2, 3, 2, 0));
        assert_eq!(texts.get(3), "b");
    }
}
