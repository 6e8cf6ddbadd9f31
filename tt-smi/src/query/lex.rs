//! A query's text, taken apart: fields, operators and values, and where they stand.

use std::fmt;

use super::error::QueryError;

/// How a field is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Is,
    IsNot,
    More,
    AtLeast,
    Less,
    AtMost,
    Contains,
    ContainsNot,
}

/// Longer ones first: the text is compared in this order.
const OPS: [(&str, Op); 8] = [
    ("!=", Op::IsNot),
    ("!~", Op::ContainsNot),
    (">=", Op::AtLeast),
    ("<=", Op::AtMost),
    ("=", Op::Is),
    (">", Op::More),
    ("<", Op::Less),
    ("~", Op::Contains),
];

impl Op {
    /// Whether it holds of what is not so.
    pub(super) fn is_negated(self) -> bool {
        matches!(self, Op::IsNot | Op::ContainsNot)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(OPS.iter().find(|(_, op)| op == self).map_or("", |(text, _)| text))
    }
}

/// A term as it was typed.
#[derive(Debug)]
pub(super) struct RawTerm {
    pub(super) column: usize,
    /// Name of a field and how to compare it; a bare word has neither.
    pub(super) field: Option<(String, Op)>,
    pub(super) values: Vec<RawValue>,
}

/// One of the values of a term.
#[derive(Debug)]
pub(super) struct RawValue {
    pub(super) column: usize,
    pub(super) text: String,
}

/// Whether an operator begins with this.
pub(super) fn is_operator(c: char) -> bool {
    matches!(c, '=' | '!' | '>' | '<' | '~')
}

pub(super) fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'')
}

/// Takes a query apart.
pub(super) fn terms(text: &str) -> Result<Vec<RawTerm>, QueryError> {
    let mut lexer = Lexer { chars: text.chars().collect(), at: 0 };
    let mut terms = Vec::new();
    lexer.skip_blanks();
    while lexer.peek().is_some() {
        terms.push(lexer.term()?);
        lexer.skip_blanks();
    }
    Ok(terms)
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
}

impl Lexer {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn column(&self) -> usize {
        self.at + 1
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn term(&mut self) -> Result<RawTerm, QueryError> {
        let column = self.column();
        let is_word = |c: char| !c.is_whitespace() && c != ',' && !is_operator(c);
        if self.peek().is_some_and(|c| is_word(c) && !is_quote(c)) {
            let start = self.at;
            let field = self.take_while(is_word);
            self.skip_blanks();
            if let Some(op) = self.op()? {
                self.skip_blanks();
                let values = self.values(|_| true)?;
                return Ok(RawTerm { column, field: Some((field, op)), values });
            }
            self.at = start;
        }
        if self.peek().is_some_and(is_operator) {
            let help = "write FIELD OPERATOR VALUE, or put a word in quotes";
            return Err(QueryError::new(column, "no field before the operator", help));
        }
        let values = self.values(|c| !is_operator(c))?;
        Ok(RawTerm { column, field: None, values })
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let start = self.at;
        while self.peek().is_some_and(&wanted) {
            self.at += 1;
        }
        self.chars[start..self.at].iter().collect()
    }

    fn op(&mut self) -> Result<Option<Op>, QueryError> {
        let column = self.column();
        let rest = &self.chars[self.at..];
        let typed: String = rest.iter().take_while(|c| is_operator(**c)).collect();
        if typed.is_empty() {
            return Ok(None);
        }
        match OPS.iter().find(|(text, _)| *text == typed) {
            Some((text, op)) => {
                self.at += text.len();
                Ok(Some(*op))
            }
            None => {
                let help = "use = != > >= < <= ~ (contains) or !~";
                Err(QueryError::new(column, format!("no operator {typed:?}"), help))
            }
        }
    }

    /// `a,"b c",d`: plain text as far as `plain` allows.
    fn values(&mut self, plain: impl Fn(char) -> bool) -> Result<Vec<RawValue>, QueryError> {
        let mut values = Vec::new();
        loop {
            let column = self.column();
            let text = match self.peek() {
                Some(quote) if is_quote(quote) => self.quoted(quote)?,
                _ => self.take_while(|c| !c.is_whitespace() && c != ',' && plain(c)),
            };
            if text.is_empty() && self.at + 1 == column {
                return Err(QueryError::new(column, "a value is missing", "write \"\" for an empty one"));
            }
            values.push(RawValue { column, text });
            match self.peek() {
                Some(',') => self.at += 1,
                Some(c) if !c.is_whitespace() => {
                    let help = "put a blank, or the whole value in quotes";
                    return Err(QueryError::new(self.column(), format!("{c:?} follows a value"), help));
                }
                _ => return Ok(values),
            }
        }
    }

    /// In double quotes a backslash makes the next character plain; in single quotes nothing does.
    fn quoted(&mut self, quote: char) -> Result<String, QueryError> {
        let column = self.column();
        self.at += 1;
        let mut text = String::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            match c {
                _ if c == quote => return Ok(text),
                '\\' if quote == '"' && self.peek().is_some() => {
                    text.extend(self.peek());
                    self.at += 1;
                }
                _ => text.push(c),
            }
        }
        Err(QueryError::new(column, "a quote is not closed", format!("end it with {quote}")))
    }
}

/// A value so that it is read as what it is. A bare word may hold no operator.
pub(super) fn quote(text: &str, is_bare: bool) -> String {
    let breaks = |c: char| c.is_whitespace() || c == ',' || (is_bare && is_operator(c));
    let first_breaks = |c: char| is_quote(c) || is_operator(c);
    match text.is_empty() || text.starts_with(first_breaks) || text.contains(breaks) {
        true => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        false => text.to_owned(),
    }
}
