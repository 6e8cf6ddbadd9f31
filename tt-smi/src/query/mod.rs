//! What a user wants to see: `class=kernel size>1MiB pid=42,43 llama`.
//!
//! A query is terms with blanks between; all of them must hold. A term is `FIELD OP VALUE`, or a bare word that
//! the name or the command line must contain.
//!
//! | operator | holds if the value |
//! |---|---|
//! | `=` `!=` | is one of those listed, or none: `class=dram,l1`, `pid=42,43`, `device=0-3`, `size=1KiB-4KiB` |
//! | `>` `>=` `<` `<=` | is larger or smaller: `size>=1.5GiB`, `age<10m` |
//! | `~` `!~` | contains one of those listed, or none; upper and lower case are the same |
//!
//! Sizes: `KiB MiB GiB TiB` are powers of 1024, `KB MB GB TB` (or `k M G T`) of 1000. Times: `ns us ms s m h d`; a
//! bare number is seconds. Other numbers may be hexadecimal or end in `k M G`. Quotes keep blanks and commas:
//! `name="layer 1"`; in double quotes a backslash makes the next character plain. `class=kernel` means all three
//! classes of kernels.
//!
//! **Unknown is not a value**: what is not known of a record matches `!=` and `!~`, and nothing else. A set, such
//! as the devices of a process, matches if one of its members does; with `!=` if none of them is listed.
//!
//! ```
//! use tt_smi::query::{ALLOCATION_FIELDS, Query};
//! let query: Query = "class=kernel size > 1024KiB".parse()?;
//! assert_eq!(query.to_string(), "class=kernel size>1MiB");
//! query.check(ALLOCATION_FIELDS)?;
//! assert_eq!(
//!     "name~a sise>1".parse::<Query>().unwrap_err().to_string(),
//!     "column 8: no field \"sise\"; did you mean size?"
//! );
//! # Ok::<(), tt_smi::query::QueryError>(())
//! ```

mod error;
mod field;
mod lex;
mod quantity;
mod records;
mod term;
mod test;
mod text;

pub use error::QueryError;
pub use field::Field;
pub(crate) use quantity::{share_millionths, size_bytes, time_ns};
pub use records::{ALLOCATION_FIELDS, EVENT_FIELDS, PROCESS_FIELDS, PROGRAM_FIELDS};
pub(crate) use records::{DEVICE_FIELDS, FAILURE_FIELDS};
pub use test::{ClassSet, Value};

use std::fmt;
use std::str::FromStr;

use lex::RawTerm;
use term::Term;

/// Something that a query can be asked of.
pub trait Record {
    /// What it has in a field; [`Value::Unknown`] if it does not know, or has no such field.
    fn value(&self, field: Field) -> Value<'_>;
}

/// What must hold of a record. The default matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    terms: Vec<Term>,
}

impl Query {
    /// Whether it matches everything because it says nothing.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// An error if it asks for a field that is not among these.
    pub fn check(&self, fields: &[Field]) -> Result<(), QueryError> {
        self.terms.iter().try_for_each(|term| term.check(fields))
    }

    /// Understands a query about what has these fields; an error names no others.
    pub fn about(text: &str, fields: &[Field]) -> Result<Query, QueryError> {
        let query = Query::parse(text, fields)?;
        query.check(fields)?;
        Ok(query)
    }

    fn parse(text: &str, fields: &[Field]) -> Result<Query, QueryError> {
        let raw = lex::terms(text)?;
        raw.iter().zip(raw.iter().skip(1)).try_for_each(|(number, word)| refuse_lone_unit(number, word))?;
        let terms = raw.into_iter().map(|raw| Term::new(raw, fields));
        Ok(Query { terms: terms.collect::<Result<_, _>>()? })
    }

    /// Whether every term holds.
    pub fn matches(&self, record: &impl Record) -> bool {
        // Numbers and classes first: what they rule out need not be searched for words.
        let holds = |quick: bool| {
            self.terms.iter().filter(move |term| term.is_quick() == quick).all(|term| term.matches(record))
        };
        holds(true) && holds(false)
    }
}

/// `size>1 MiB` would mean more than one byte, and a name with "MiB" in it.
fn refuse_lone_unit(number: &RawTerm, word: &RawTerm) -> Result<(), QueryError> {
    let Some((name, op)) = &number.field else { return Ok(()) };
    let ([.., last], [unit], None) = (&number.values[..], &word.values[..], &word.field) else {
        return Ok(());
    };
    let nature = Field::from_name(name).map(Field::nature);
    let is_unit = nature.is_some_and(|nature| quantity::is_unit(&unit.text, nature));
    if !is_unit || !last.text.ends_with(|c: char| c.is_ascii_digit()) {
        return Ok(());
    }
    let help = format!("write the unit next to its number: {name}{op}{}{}", last.text, unit.text);
    Err(QueryError::new(word.column, format!("{:?} stands alone", unit.text), help))
}

impl FromStr for Query {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Query, QueryError> {
        Query::parse(text, &Field::ALL)
    }
}

/// The shortest way to write it.
impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, term) in self.terms.iter().enumerate() {
            let blank = if place == 0 { "" } else { " " };
            write!(f, "{blank}{term}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
