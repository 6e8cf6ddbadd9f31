//! What a value must be: resolved once, asked of every record.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use tt_shm_reader::Class;

use super::text::Needle;

/// What a record has in a field. Sizes are in bytes, times in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Not known, or the record has no such field.
    Unknown,
    /// A number, size or time.
    Number(u64),
    /// Several numbers, such as the devices of a process.
    Numbers(Cow<'a, [u64]>),
    /// A text, exactly as it was written.
    Text(Cow<'a, str>),
    /// A memory class.
    Class(Class),
    /// Several memory classes.
    Classes(ClassSet),
}

impl Value<'_> {
    /// A number, if it is known.
    pub fn number(number: Option<impl Into<u64>>) -> Value<'static> {
        number.map_or(Value::Unknown, |number| Value::Number(number.into()))
    }

    /// A text, if it is known.
    pub fn text(text: Option<&str>) -> Value<'_> {
        text.map_or(Value::Unknown, |text| Value::Text(text.into()))
    }
}

/// A set of memory classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassSet(u16);

impl ClassSet {
    /// Whether they have a class in common.
    pub fn overlaps(self, other: ClassSet) -> bool {
        self.0 & other.0 != 0
    }
}

impl From<Class> for ClassSet {
    fn from(class: Class) -> ClassSet {
        ClassSet(1 << class as u16)
    }
}

impl FromIterator<Class> for ClassSet {
    fn from_iter<T: IntoIterator<Item = Class>>(classes: T) -> ClassSet {
        ClassSet(classes.into_iter().fold(0, |set, class| set | ClassSet::from(class).0))
    }
}

/// What one of the values must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// In one of these ranges.
    Within(Vec<RangeInclusive<u64>>),
    /// One of these classes.
    OfClass(ClassSet),
    /// One of these texts.
    Equals(Vec<String>),
    /// One of these words, in upper or lower case.
    IsWord(Vec<String>),
    /// Contains one of these.
    Contains(Vec<Needle>),
}

impl Test {
    /// Whether it holds; of what is unknown, or of another kind, it never does.
    pub(super) fn holds(&self, value: &Value<'_>) -> bool {
        match (self, value) {
            (Test::Within(ranges), Value::Number(number)) => is_within(ranges, number),
            (Test::Within(ranges), Value::Numbers(numbers)) => {
                numbers.iter().any(|number| is_within(ranges, number))
            }
            (Test::OfClass(set), Value::Class(class)) => set.overlaps((*class).into()),
            (Test::OfClass(set), Value::Classes(classes)) => set.overlaps(*classes),
            (Test::Equals(texts), Value::Text(text)) => texts.iter().any(|wanted| wanted == text),
            (Test::IsWord(words), Value::Text(text)) => {
                words.iter().any(|word| word.eq_ignore_ascii_case(text))
            }
            (Test::Contains(needles), Value::Text(text)) => needles.iter().any(|needle| needle.is_in(text)),
            _ => false,
        }
    }
}

fn is_within(ranges: &[RangeInclusive<u64>], number: &u64) -> bool {
    ranges.iter().any(|range| range.contains(number))
}
