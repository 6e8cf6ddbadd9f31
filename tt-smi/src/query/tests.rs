use std::borrow::Cow;
use std::cell::Cell;

use proptest::prelude::*;
use tt_shm_reader::{Class, EventKind};

use super::field::Nature;
use super::*;

/// A record with one field; nothing else is known of it.
struct One<'a>(Field, Value<'a>);

impl Record for One<'_> {
    fn value(&self, field: Field) -> Value<'_> {
        if field == self.0 { self.1.clone() } else { Value::Unknown }
    }
}

#[track_caller]
fn query(text: &str) -> Query {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[track_caller]
fn matches(text: &str, field: Field, value: Value<'_>) -> bool {
    query(text).matches(&One(field, value))
}

fn text(text: &str) -> Value<'_> {
    Value::Text(text.into())
}

#[test]
fn numbers_are_compared() {
    let mib = Value::Number(1 << 20);
    let holds =
        ["size=1MiB", "size>=1MiB", "size<=1MiB", "size>1MB", "size<2MiB", "size!=1MB", "size=1KiB-1MiB"];
    for holding in holds {
        assert!(matches(holding, Field::Size, mib.clone()), "{holding}");
    }
    for failing in ["size>1MiB", "size<1MiB", "size!=1MiB", "size=1,2,3", "size!=0-2MiB"] {
        assert!(!matches(failing, Field::Size, mib.clone()), "{failing}");
    }
    assert!(matches("age>1h", Field::Age, Value::Number(3_600_000_000_001)));
    assert!(!matches("id>18446744073709551615", Field::Id, Value::Number(u64::MAX)));
    assert!(!matches("id<0", Field::Id, Value::Number(0)));
}

#[test]
fn one_of_several_is_enough_and_all_terms_must_hold() {
    assert!(matches("pid=42,43", Field::Pid, Value::Number(43)));
    assert!(!matches("pid=42,43 pid!=43", Field::Pid, Value::Number(43)));
    assert!(matches("device=0-3", Field::Device, Value::Number(3)));
    assert!(!matches("device=0-3", Field::Device, Value::Number(4)));
    let several = || Value::Numbers(Cow::Owned(vec![4, 9]));
    assert!(matches("device=0-4", Field::Device, several()));
    assert!(!matches("device!=0-4", Field::Device, several()));
    assert!(matches("device!=5", Field::Device, several()));
}

#[test]
fn kernel_means_all_three_classes() {
    for class in Class::ALL {
        let is_kernel = class.kernel_type().is_some();
        assert_eq!(matches("class=Kernel", Field::Class, Value::Class(class)), is_kernel);
        assert_eq!(matches("class!=kernel", Field::Class, Value::Class(class)), !is_kernel);
        assert_eq!(matches("class~kern", Field::Class, Value::Class(class)), is_kernel);
    }
    assert!(matches("class=dram,l1", Field::Class, Value::Class(Class::L1)));
    assert!(!matches("class=dram,l1", Field::Class, Value::Class(Class::L1Small)));
    let both: ClassSet = [Class::Dram, Class::Cb].into_iter().collect();
    assert!(matches("class=cb", Field::Class, Value::Classes(both)));
    assert!(!matches("class!=cb", Field::Class, Value::Classes(both)));
}

#[test]
fn text_is_exact_or_contained() {
    assert!(matches("name=Llama", Field::Name, text("Llama")));
    assert!(!matches("name=llama", Field::Name, text("Llama")));
    assert!(matches("name~LAM", Field::Name, text("Llama")));
    assert!(!matches("name!~LAM", Field::Name, text("Llama")));
    assert!(matches("name=\"a, \\\"b\\\"\"", Field::Name, text("a, \"b\"")));
    assert!(matches("name='a\\'", Field::Name, text("a\\")));
    assert!(matches("kind=alloc", Field::Kind, text("ALLOC")));
    assert!(!matches("kind=alloc", Field::Kind, text("CB_ALLOC")));
    assert!(matches("command~--x=1", Field::Command, text("run --X=1")));
}

#[test]
fn a_bare_word_is_in_the_name_or_the_command() {
    assert!(matches("llama", Field::Name, text("my LLAMA")));
    assert!(matches("'--seed 7',llama", Field::Command, text("run --seed 7")));
    assert!(!matches("llama", Field::Site, text("llama")));
}

#[test]
fn unknown_matches_only_what_denies() {
    for denying in ["size!=1", "name!~a", "class!=dram", "kind!=free"] {
        assert!(matches(denying, Field::Pid, Value::Number(1)), "{denying}");
    }
    for asking in ["size=0", "size>=0", "size<1", "name~\"\"", "class=dram", "kind=free", "word"] {
        assert!(!matches(asking, Field::Pid, Value::Number(1)), "{asking}");
    }
}

#[test]
fn nothing_matches_everything() {
    for text in ["", " \t\n"] {
        assert!(query(text).is_empty() && query(text) == Query::default());
        assert!(matches(text, Field::Pid, Value::Unknown));
    }
}

#[test]
fn errors_say_what_where_and_what_to_do() {
    for (text, message) in [
        ("sizee>1", "column 1: no field \"sizee\"; did you mean size?"),
        ("a=1 name~b", "column 1: no field \"a\"; the fields are class, size"),
        ("pid=1 size>>2", "column 11: no operator \">>\"; use ="),
        ("size>1XB", "column 6: size cannot be \"1XB\"; give a size, such as 4096, 64KiB"),
        ("age>", "column 5: a value is missing"),
        ("pid=1,", "column 7: a value is missing"),
        ("=1", "column 1: no field before the operator"),
        ("name=\"ä", "column 6: a quote is not closed; end it with \""),
        ("ä name=\"b\"c", "column 11: 'c' follows a value"),
        ("class=ram", "column 7: no class \"ram\"; there are dram, trace"),
        ("kind=aloc", "column 6: no kind \"aloc\"; there are alloc, free"),
        ("size~1", "column 6: size is a number"),
        ("name>a", "column 6: name is no number; use = != ~ or !~"),
        ("size>1,2", "column 8: > compares with one value"),
        ("size>1-2", "column 6: size cannot be \"1-2\""),
    ] {
        let error = text.parse::<Query>().unwrap_err().to_string();
        assert!(error.starts_with(message), "{text}: {error}");
    }
}

#[test]
fn a_field_that_the_records_lack_is_an_error_that_lists_theirs() {
    let error = query("size>1 site~x").check(EVENT_FIELDS).unwrap_err();
    assert_eq!(error.column(), 8);
    let text = error.to_string();
    assert!(text.starts_with("column 8: there is no site here; the fields are kind, class"), "{text}");
    for fields in [ALLOCATION_FIELDS, PROGRAM_FIELDS, EVENT_FIELDS, &PROCESS_FIELDS] {
        query("word device=0").check(fields).unwrap();
    }
    assert!(query("word").check(&[Field::Size]).is_err());
}

#[test]
fn the_words_of_events_are_all_known() {
    for kind in EventKind::ALL {
        let label = kind.label();
        assert!(matches(&format!("kind={label}"), Field::Kind, text(label)), "{label}");
    }
    let Nature::Word(words) = Field::Kind.nature() else { panic!("kinds are words") };
    assert_eq!(words.len(), EventKind::ALL.len());
}

#[test]
fn fields_are_asked_only_as_long_as_terms_hold() {
    struct Counted(Cell<u32>);
    impl Record for Counted {
        fn value(&self, _: Field) -> Value<'_> {
            self.0.set(self.0.get() + 1);
            Value::Unknown
        }
    }
    let counted = Counted(Cell::new(0));
    assert!(!query("name~a size=1 pid=2 id=3").matches(&counted));
    assert_eq!(counted.0.get(), 1);
    assert!(!query("name~a size!=1 class!=dram").matches(&counted));
    assert_eq!(counted.0.get(), 4, "words are looked for last");
}

/// Texts that look like queries, so that most of the parser is reached.
fn pieces() -> impl Strategy<Value = String> {
    let names: Vec<&str> = Field::ALL.into_iter().map(Field::name).collect();
    let others =
        ["=", "!=", ">", ">=", "<", "<=", "~", "!~", "!", ",", "-", "\"", "'", "\\", " ", "\t", "ä", "K"];
    let values =
        ["1", "0x1f", "1.5GiB", "10k", "500ms", "2h", "kernel", "dram", "ALLOC", "tensix", "stopped", "0-3"];
    let pieces: Vec<String> = names.into_iter().chain(others).chain(values).map(str::to_owned).collect();
    let piece = prop_oneof![8 => prop::sample::select(pieces), 1 => any::<String>()];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4000) })]

    #[test]
    fn any_text_is_read_or_refused_and_what_is_read_can_be_written(text in pieces()) {
        match text.parse::<Query>() {
            Ok(query) => {
                let written = query.to_string();
                let again: Query = written.parse().unwrap();
                prop_assert_eq!(&again, &query, "{:?} was written as {:?}", text, written);
                prop_assert_eq!(again.to_string(), written);
            }
            Err(error) => {
                prop_assert!((1..=text.chars().count() + 1).contains(&error.column()), "{}", error);
            }
        }
    }

    #[test]
    fn any_name_can_be_asked_for(name in any::<String>(), other in any::<String>()) {
        for field in ["name=", "name~", ""] {
            let asked = format!("{field}{}", lex::quote(&name, field.is_empty()));
            let query: Query = asked.parse().unwrap();
            prop_assert!(query.matches(&One(Field::Name, Value::Text(name.as_str().into()))), "{:?}", asked);
            if field == "name=" {
                prop_assert_eq!(query.matches(&One(Field::Name, Value::Text(other.as_str().into()))), name == other);
            }
        }
    }
}
