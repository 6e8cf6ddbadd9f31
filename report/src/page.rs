//! The page: one file with its style, its code and its data.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};

use crate::document::Document;

const STYLE: &str = include_str!("../page/style.css");
const MARKUP: &str = include_str!("../page/body.html");
/// In the order in which they depend on each other.
const CODE: [&str; 6] = [
    include_str!("../page/data.js"),
    include_str!("../page/words.js"),
    include_str!("../page/table.js"),
    include_str!("../page/chart.js"),
    include_str!("../page/map.js"),
    include_str!("../page/main.js"),
];

/// Writes the page of a document.
pub(crate) fn write(document: &Document, out: &mut dyn Write) -> io::Result<()> {
    let nonce = nonce();
    writeln!(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    // Nothing is loaded, and nothing runs but what has this page's number, which no name could know.
    writeln!(
        out,
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'nonce-{nonce}'; \
         style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'\">"
    )?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
    writeln!(out, "<meta name=\"color-scheme\" content=\"light dark\">")?;
    writeln!(out, "<title>{}</title>", markup(&document.title))?;
    writeln!(out, "<style nonce=\"{nonce}\">\n{STYLE}</style>\n</head>\n<body>\n{MARKUP}")?;
    let data = serde_json::to_string(document)?;
    writeln!(out, "<script type=\"application/json\" id=\"data\">{}</script>", script(&data))?;
    writeln!(out, "<script nonce=\"{nonce}\">\n\"use strict\";\n(() => {{")?;
    CODE.iter().try_for_each(|code| out.write_all(code.as_bytes()))?;
    writeln!(out, "}})();\n</script>\n</body>\n</html>")
}

/// A number that nobody can have known before.
fn nonce() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}

/// A text in markup.
fn markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// JSON in a script element: no text can end the element, begin a comment or be another element.
fn script(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", character as u32));
            }
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_text_ends_the_element_that_it_is_in() {
        let json = serde_json::to_string("</script><!--<script>&\u{2028}").unwrap();
        let inside = super::script(&json);
        assert!(!inside.contains(['<', '>', '&', '\u{2028}']));
        let back: String = serde_json::from_str(&inside).unwrap();
        assert_eq!(back, "</script><!--<script>&\u{2028}");
    }
}
