//! Why a query cannot be understood.

use std::fmt;

/// What is wrong with a query, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError {
    column: usize,
    what: String,
    help: String,
}

impl QueryError {
    pub(super) fn new(column: usize, what: impl Into<String>, help: impl Into<String>) -> QueryError {
        QueryError { column, what: what.into(), help: help.into() }
    }

    /// The character that it is about, from 1.
    pub fn column(&self) -> usize {
        self.column
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}; {}", self.column, self.what, self.help)
    }
}

impl std::error::Error for QueryError {}
