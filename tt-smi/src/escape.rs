//! Foreign text on a terminal: shown, never interpreted.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use unicode_width::UnicodeWidthStr;

/// Text that another process wrote. It is escaped for display and verbatim in JSON; being a type, it cannot be confused
/// with text that is already safe.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct Foreign(Arc<str>);

impl Foreign {
    /// The text itself: for comparisons, never for a terminal.
    pub fn raw(&self) -> &str {
        &self.0
    }
}

impl<T: Into<Arc<str>>> From<T> for Foreign {
    fn from(text: T) -> Foreign {
        Foreign(text.into())
    }
}

impl Serialize for Foreign {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&escape(&self.0))
    }
}

/// Escapes everything that a terminal might interpret: control characters, escape sequences, and marks that change the
/// direction of text or have no width.
///
/// ```
/// assert_eq!(tt_smi::escape::escape("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
/// assert_eq!(tt_smi::escape::escape("größe"), "größe");
/// ```
pub fn escape(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\\' || is_harmful(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Whether a terminal might interpret or hide a character.
pub(crate) fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Width of a text on a terminal: two columns for most Chinese, Japanese and Korean characters, none for combining
/// marks.
pub fn columns(text: &str) -> usize {
    // The usual case; looking up widths costs more than the rest of a line.
    if text.is_ascii() { text.len() } else { text.width() }
}

/// Cuts a text to at most `width` columns, with a mark if something is cut.
pub fn fit(text: &(impl fmt::Display + ?Sized), width: usize) -> String {
    let mut text = text.to_string();
    if columns(&text) <= width {
        return text;
    }
    let end = end_of(&text, width.saturating_sub(1));
    text.truncate(end);
    if width > 0 {
        text.push('…');
    }
    text
}

/// The text in exactly `width` columns, cut or padded.
///
/// ```
/// assert_eq!(tt_smi::escape::pad("重み", 6, false), "重み  ");
/// assert_eq!(tt_smi::escape::pad("重み", 3, true), "重…");
/// ```
pub fn pad(text: &str, width: usize, right: bool) -> String {
    let text = fit(text, width);
    let blanks = " ".repeat(width.saturating_sub(columns(&text)));
    if right { blanks + &text } else { text + &blanks }
}

/// Length of the longest prefix that takes at most this many columns.
fn end_of(text: &str, width: usize) -> usize {
    let mut end = 0;
    for (start, c) in text.char_indices() {
        let next = start + c.len_utf8();
        // Measured as a whole: a mark may widen the character before it.
        if columns(&text[..next]) > width {
            break;
        }
        end = next;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_unescaped() {
        let hostile = "\u{1b}]0;owned\u{7}\u{9b}31m\r\n\t\u{202e}\u{200b}\u{feff}\u{0}\u{7f}\u{85}";
        let shown = escape(hostile);
        assert!(!shown.chars().any(is_harmful), "{shown:?}");
        assert!(shown.contains("owned"));
    }

    #[test]
    fn a_backslash_cannot_pretend_to_be_an_escape() {
        assert_ne!(escape("\\u{1b}"), escape("\u{1b}"));
    }

    #[test]
    fn foreign_text_is_escaped_for_people_and_only_for_them() {
        let name = Foreign::from("a\\b\u{1b}[2J");
        assert_eq!(name.to_string(), "a\\\\b\\u{1b}[2J");
        assert_eq!(fit(&name, 4), "a\\\\…");
        assert_eq!(serde_json::to_value(&name).unwrap(), "a\\b\u{1b}[2J");
    }

    #[test]
    fn cutting_keeps_the_width() {
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("äöü", 3), "äöü");
        assert_eq!(fit("abc", 0), "");
        assert_eq!(fit("重み行列", 8), "重み行列");
        assert_eq!(fit("重み行列", 6), "重み…", "half a sign cannot be shown");
        assert_eq!(fit("e\u{301}te\u{301}", 3), "e\u{301}te\u{301}", "marks take no column");
    }

    #[test]
    fn padding_counts_columns() {
        for text in ["", "abc", "重み", "重み行列を掛ける", "e\u{301}", "❤\u{fe0f}❤\u{fe0f}"] {
            for width in 0..9 {
                for right in [false, true] {
                    assert_eq!(columns(&pad(text, width, right)), width, "{text:?} in {width}");
                }
            }
        }
    }
}
