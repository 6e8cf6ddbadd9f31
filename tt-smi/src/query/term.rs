//! One condition.

use std::fmt;
use std::ops::RangeInclusive;

use tt_shm_reader::Class;

use super::Record;
use super::error::QueryError;
use super::field::{self, Field, Nature};
use super::lex::{Op, RawTerm, RawValue, quote};
use super::quantity;
use super::test::{ClassSet, Test};
use super::text::Needle;
use crate::select::ClassFilter;

/// The fields that a bare word is looked for in.
const NAMES: [Field; 2] = [Field::Name, Field::Command];

/// A condition.
#[derive(Clone, Debug)]
pub(super) struct Term {
    /// Where it was typed: for messages only.
    column: usize,
    /// `None`: a bare word.
    field: Option<(Field, Op)>,
    /// As they are written shortest.
    values: Vec<String>,
    test: Test,
}

/// Terms that mean the same are equal, wherever they were typed.
impl PartialEq for Term {
    fn eq(&self, other: &Term) -> bool {
        (self.field, &self.values) == (other.field, &other.values)
    }
}

impl Eq for Term {}

impl Term {
    pub(super) fn new(raw: RawTerm, fields: &[Field]) -> Result<Term, QueryError> {
        let RawTerm { column, field, values } = raw;
        let Some((name, op)) = field else {
            let values: Vec<String> = values.into_iter().map(|value| value.text).collect();
            let test = Test::Contains(values.iter().map(|text| Needle::new(text)).collect());
            return Ok(Term { column, field: None, values, test });
        };
        let field = Field::from_name(&name).ok_or_else(|| {
            QueryError::new(column, format!("no field {name:?}"), field::help(&name, fields))
        })?;
        let (values, test) = resolve(field, op, &values)?;
        Ok(Term { column, field: Some((field, op)), values, test })
    }

    /// An error if its field is not among these.
    pub(super) fn check(&self, fields: &[Field]) -> Result<(), QueryError> {
        let (what, known) = match self.field {
            Some((field, _)) => (format!("there is no {field} here"), fields.contains(&field)),
            None => ("there is no name here".to_owned(), NAMES.iter().any(|name| fields.contains(name))),
        };
        let help = || format!("the fields are {}", field::list(fields));
        if known { Ok(()) } else { Err(QueryError::new(self.column, what, help())) }
    }

    /// Whether it takes no look at text.
    pub(super) fn is_quick(&self) -> bool {
        matches!(self.test, Test::Within(_) | Test::OfClass(_))
    }

    /// Whether it holds.
    pub(super) fn matches(&self, record: &impl Record) -> bool {
        match self.field {
            Some((field, op)) => self.test.holds(&record.value(field)) != op.is_negated(),
            None => NAMES.into_iter().any(|name| self.test.holds(&record.value(name))),
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((field, op)) = self.field {
            write!(f, "{field}{op}")?;
        }
        let values: Vec<String> =
            self.values.iter().map(|value| quote(value, self.field.is_none())).collect();
        f.write_str(&values.join(","))
    }
}

/// The values of a field as they are written shortest, and what they mean.
fn resolve(field: Field, op: Op, values: &[RawValue]) -> Result<(Vec<String>, Test), QueryError> {
    let nature = field.nature();
    let is_number = matches!(nature, Nature::Size | Nature::Time | Nature::Count);
    let contains = matches!(op, Op::Contains | Op::ContainsNot);
    let compares = !contains && !matches!(op, Op::Is | Op::IsNot);
    let (first, more) = (&values[0], values.get(1));
    if is_number && contains {
        let help = format!("use = != > >= < or <= with {field}");
        return Err(QueryError::new(first.column, format!("{field} is a number and contains nothing"), help));
    }
    if !is_number && compares {
        let help = format!("use = != ~ or !~ with {field}");
        return Err(QueryError::new(first.column, format!("{field} is no number"), help));
    }
    if let Some(more) = more.filter(|_| compares) {
        let help = "give one, or use = with several";
        return Err(QueryError::new(more.column, format!("{op} compares with one value"), help));
    }
    match nature {
        Nature::Class => classes(values, contains),
        Nature::Size | Nature::Time | Nature::Count => numbers(field, op, values),
        Nature::Word(words) if !contains => one_of(field, words, values),
        _ => Ok(texts(values, contains)),
    }
}

fn numbers(field: Field, op: Op, values: &[RawValue]) -> Result<(Vec<String>, Test), QueryError> {
    let nature = field.nature();
    let may_be_range = matches!(op, Op::Is | Op::IsNot);
    let mut ranges = Vec::new();
    for RawValue { column, text } in values {
        let range = quantity::range(text, nature, may_be_range).map_err(|expected| {
            QueryError::new(*column, format!("{field} cannot be {text:?}"), format!("give {expected}"))
        })?;
        ranges.push(range);
    }
    let texts = ranges.iter().map(|range| quantity::canonical(range, nature)).collect();
    Ok((texts, Test::Within(ranges.iter().flat_map(|range| meant(op, range)).collect())))
}

/// The numbers that an operator means; none are more than the largest.
fn meant(op: Op, range: &RangeInclusive<u64>) -> Option<RangeInclusive<u64>> {
    let (low, high) = (*range.start(), *range.end());
    match op {
        Op::More => high.checked_add(1).map(|from| from..=u64::MAX),
        Op::AtLeast => Some(low..=u64::MAX),
        Op::Less => low.checked_sub(1).map(|to| 0..=to),
        Op::AtMost => Some(0..=high),
        _ => Some(range.clone()),
    }
}

fn classes(values: &[RawValue], contains: bool) -> Result<(Vec<String>, Test), QueryError> {
    let mut texts = Vec::new();
    let mut set = Vec::new();
    for RawValue { column, text } in values {
        let name = text.to_lowercase();
        if contains {
            set.extend(Class::ALL.into_iter().filter(|class| class.name().contains(&name)));
        } else {
            let filter: ClassFilter = name.parse().map_err(|_| {
                let names = Class::ALL.map(Class::name).join(", ");
                let help = format!("there are {names}, and kernel for all kernels");
                QueryError::new(*column, format!("no class {text:?}"), help)
            })?;
            set.extend(Class::ALL.into_iter().filter(|class| filter.matches(*class)));
        }
        texts.push(name);
    }
    Ok((texts, Test::OfClass(set.into_iter().collect::<ClassSet>())))
}

fn one_of(field: Field, words: &[&str], values: &[RawValue]) -> Result<(Vec<String>, Test), QueryError> {
    let mut found = Vec::new();
    for RawValue { column, text } in values {
        let word = text.to_lowercase();
        if !words.contains(&word.as_str()) {
            let help = format!("there are {}", words.join(", "));
            return Err(QueryError::new(*column, format!("no {field} {text:?}"), help));
        }
        found.push(word);
    }
    Ok((found.clone(), Test::IsWord(found)))
}

fn texts(values: &[RawValue], contains: bool) -> (Vec<String>, Test) {
    let texts: Vec<String> = values.iter().map(|value| value.text.clone()).collect();
    let test = match contains {
        true => Test::Contains(texts.iter().map(|text| Needle::new(text)).collect()),
        false => Test::Equals(texts.clone()),
    };
    (texts, test)
}
