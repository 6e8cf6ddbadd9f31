//! Foreign text on a terminal: shown, never obeyed.

/// A name from another process with everything that a terminal might obey written out: control characters,
/// escapes, and the marks that change the direction of text or have no width.
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

fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Cuts a text to at most `width` characters, with a mark where something is missing.
pub fn fit(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    if width > 0 {
        cut.push('…');
    }
    cut
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
    fn cutting_keeps_the_width() {
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("äöü", 3), "äöü");
        assert_eq!(fit("abc", 0), "");
    }
}
