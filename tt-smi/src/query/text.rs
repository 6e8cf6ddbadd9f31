//! Text inside text, whatever its case.

/// A text to look for, made small once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Needle {
    small: String,
    /// Whether it was ASCII as typed: the Kelvin sign is not, and its small letter is.
    is_ascii: bool,
}

impl Needle {
    pub(super) fn new(text: &str) -> Needle {
        Needle { small: text.to_lowercase(), is_ascii: text.is_ascii() }
    }

    /// Whether it is in there. Most names are plain ASCII: those are compared where they lie.
    pub(super) fn is_in(&self, text: &str) -> bool {
        if !self.is_ascii {
            return text.to_lowercase().contains(&self.small);
        }
        let (needle, text) = (self.small.as_bytes(), text.as_bytes());
        let Some((first, rest)) = needle.split_first() else { return true };
        let last = text.len().saturating_sub(rest.len());
        let begins = |at: &usize| text[*at].eq_ignore_ascii_case(first);
        (0..last).filter(begins).any(|at| text[at + 1..at + needle.len()].eq_ignore_ascii_case(rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_does_not_matter() {
        for (needle, text, expected) in [
            ("LLama", "my llama-3", true),
            ("a-3", "my llama-3", true),
            ("-3x", "my llama-3", false),
            ("", "", true),
            ("a", "", false),
            ("aab", "aaab", true),
            ("GRÖSSE", "größe grösse", true),
            ("300\u{212a}", "300\u{212a}", true),
            ("longer than the text", "text", false),
        ] {
            assert_eq!(Needle::new(needle).is_in(text), expected, "{needle:?} in {text:?}");
        }
    }
}
