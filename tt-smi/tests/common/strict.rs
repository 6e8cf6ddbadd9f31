//! A strict reader of the text format, for tests: what it accepts, Prometheus does.

use std::collections::{HashMap, HashSet};

/// Every series and its value; panics at the first thing that Prometheus or its linter would not like.
pub(crate) fn read(text: &str) -> HashMap<String, f64> {
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is not ended");
    let (mut series, mut families, mut family) = (HashMap::new(), HashSet::new(), None);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help text");
            assert!(!help.is_empty() && !help.contains('\\'), "{line}");
            let of_type =
                lines.next().and_then(|line| line.strip_prefix("# TYPE ")).expect("TYPE follows HELP");
            let (typed, kind) = of_type.split_once(' ').expect("a type");
            assert_eq!(typed, name);
            assert!(families.insert(name), "{name} is there twice");
            check_name(name, kind);
            family = Some(name);
        } else {
            let (labelled, value) = line.rsplit_once(' ').expect("a value");
            let name = labelled.split('{').next().unwrap_or(labelled);
            assert_eq!(Some(name), family, "a series outside of its family");
            check_labels(&labelled[name.len()..]);
            let value: f64 = value.parse().expect("a number");
            assert!(value.is_finite() && value >= 0.0, "{line}");
            assert!(series.insert(labelled.to_owned(), value).is_none(), "{labelled} is there twice");
        }
    }
    series
}

fn check_name(name: &str, kind: &str) {
    assert!(is_word(name), "{name}");
    assert!(["gauge", "counter"].contains(&kind), "{kind}");
    assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
    for scaled in ["kilobyte", "kb", "mb", "megabyte", "milli", "mhz", "percent"] {
        assert!(!name.contains(scaled), "{name} is not in base units");
    }
}

fn is_word(text: &str) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(is_start) && text.chars().all(|c| is_start(c) || c.is_ascii_digit())
}

/// `{name="value",...}` with `\\`, `\"` and `\n` as the only escapes.
fn check_labels(text: &str) {
    if text.is_empty() {
        return;
    }
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).expect("braces");
    let mut chars = inner.chars().peekable();
    let mut names = HashSet::new();
    loop {
        let name: String = std::iter::from_fn(|| chars.next_if(|c| *c != '=')).collect();
        assert!(is_word(&name) && !name.starts_with("__"), "label {name:?} in {text}");
        assert!(names.insert(name), "a label is there twice in {text}");
        assert_eq!((chars.next(), chars.next()), (Some('='), Some('"')), "{text}");
        loop {
            match chars.next().expect("the value ends") {
                '"' => break,
                '\\' => assert!(matches!(chars.next(), Some('\\' | '"' | 'n')), "escape in {text}"),
                c => assert!(!c.is_control(), "{c:?} in {text}"),
            }
        }
        match chars.next() {
            None => return,
            c => assert_eq!(c, Some(','), "{text}"),
        }
    }
}
