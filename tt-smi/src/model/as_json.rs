//! How single values are written as JSON: words, by one table for each type, which its schema lists too; ids in
//! hexadecimal; ages in the unit of their key.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use tt_shm_reader::{Anomaly, Class, CoreType, EventKind, KernelType, MarkerPhase};

/// A type whose values are words.
pub trait Word: Copy + 'static {
    /// Every value.
    const ALL: &'static [Self];

    /// The word for it.
    fn word(self) -> &'static str;
}

/// Gives a type of this crate its words: `words!(Cause { Exhausted => "exhausted" })`.
macro_rules! words {
    ($type:ident { $($variant:ident => $word:literal),+ $(,)? }) => {
        impl $crate::model::Word for $type {
            const ALL: &'static [$type] = &[$($type::$variant),+];

            fn word(self) -> &'static str {
                match self {
                    $($type::$variant => $word),+
                }
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::model::word(self, serializer)
            }
        }

        #[cfg(test)]
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $crate::schema::words::<$type>(generator)
            }
        }
    };
}
pub(crate) use words;

/// Of a type of another crate, which cannot have `Serialize` here.
macro_rules! foreign_words {
    ($type:ident, $all:expr, $word:expr) => {
        impl Word for $type {
            const ALL: &'static [$type] = &$all;

            fn word(self) -> &'static str {
                $word(self)
            }
        }
    };
}

foreign_words!(Class, Class::ALL, Class::name);
foreign_words!(EventKind, EventKind::ALL, EventKind::label);
foreign_words!(Anomaly, Anomaly::ALL, Anomaly::name);
foreign_words!(CoreType, [CoreType::Tensix, CoreType::Ethernet], |core_type| match core_type {
    CoreType::Tensix => "tensix",
    CoreType::Ethernet => "ethernet",
});
foreign_words!(
    KernelType,
    [KernelType::Application, KernelType::Fabric, KernelType::Dispatch],
    |kernel_type| match kernel_type {
        KernelType::Application => "application",
        KernelType::Fabric => "fabric",
        KernelType::Dispatch => "dispatch",
    }
);
foreign_words!(
    MarkerPhase,
    [MarkerPhase::Begin, MarkerPhase::End, MarkerPhase::Instant],
    |phase| match phase {
        MarkerPhase::Begin => "begin",
        MarkerPhase::End => "end",
        MarkerPhase::Instant => "instant",
    }
);

/// Serializes the word for a value.
pub(crate) fn word<T: Word, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(value.word())
}

/// The same; null for `None`.
pub(crate) fn word_or_null<T: Word, S: Serializer>(
    value: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value.map(T::word).serialize(serializer)
}

/// Serializes the words for values.
pub(crate) fn words_of<T: Word, S: Serializer>(values: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(|value| value.word()))
}

/// What is called `UNKNOWN` if a later version has it.
pub(crate) fn event_name(kind: Option<EventKind>) -> &'static str {
    kind.map_or("UNKNOWN", EventKind::label)
}

/// Serializes the name of a kind of event.
pub(crate) fn event<S: Serializer>(kind: &Option<EventKind>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(event_name(*kind))
}

/// Serializes numbers by the words they belong to, in alphabetical order.
pub(crate) fn by_word<T: Word, S: Serializer>(
    numbers: &[(T, u64)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let by_word: BTreeMap<&str, u64> = numbers.iter().map(|(key, number)| (key.word(), *number)).collect();
    by_word.serialize(serializer)
}

/// The same, of numbers by class code.
pub(crate) fn by_class<S: Serializer>(
    numbers: &[u64; Class::COUNT],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    by_word(&Class::ALL.map(|class| (class, numbers[class as usize])), serializer)
}

/// Serializes an id: `0x00000000000000a5`.
pub(crate) fn hex<S: Serializer>(id: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{id:#018x}"))
}

/// Serializes nanoseconds as seconds.
pub(crate) fn seconds<S: Serializer>(nanos: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(*nanos as f64 / 1e9)
}

/// Serializes nanoseconds as whole milliseconds.
pub(crate) fn millis<S: Serializer>(nanos: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(nanos / 1_000_000)
}
