//! What the sources themselves must keep to: `unsafe` only where `docs/soundness.md` says why it is sound, and
//! dependencies only under licences, and in as many versions, as `deny.toml` allows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every Rust file that is under version control or about to be.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            sources(&path, found);
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
}

/// The identifier behind a word, as in `fn name(`.
fn after<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let rest = line.split_once(word)?.1;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    Some(&rest[..end]).filter(|name| !name.is_empty())
}

/// A line without what follows `//` and without what is quoted.
fn code(line: &str) -> String {
    let line = line.split("//").next().unwrap_or_default();
    line.split('"').step_by(2).collect()
}

/// The place of every attribute that exports a function.
const EXPORTED: &str = "exported names";

/// The function, or `impl`, of every use of the keyword.
fn unsafe_places(text: &str) -> Vec<String> {
    let mut function = "-".to_owned();
    let mut places = Vec::new();
    for line in text.lines().map(code) {
        if let Some(name) = after(&line, "fn ") {
            function = name.to_owned();
        }
        let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        for _ in words.filter(|word| *word == "unsafe") {
            // The attribute of a function that other libraries find by its name. Of these, a file may have many.
            if line.contains(concat!("un", "safe(no_mangle)")) {
                places.push(EXPORTED.to_owned());
                continue;
            }
            let implemented =
                line.contains("unsafe impl").then(|| after(&line, "> ").or(after(&line, "impl ")));
            places
                .push(implemented.flatten().map_or_else(|| function.clone(), |name| format!("impl {name}")));
        }
    }
    places
}

type Places = BTreeMap<(String, String), usize>;

/// Rows `| file | place | number | fact |` of the document.
fn listed(document: &str) -> Places {
    let mut places = Places::new();
    for line in document.lines() {
        let cells: Vec<&str> = line.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        if let [_, file, place, number, fact, _] = cells[..]
            && let Ok(number) = number.parse()
        {
            assert!(fact.len() > 20, "{file}, {place}: no fact makes it sound");
            assert!(
                places.insert((file.to_owned(), place.to_owned()), number).is_none(),
                "{file}, {place} twice"
            );
        }
    }
    places
}

#[test]
fn unsafe_is_where_the_list_says_why_it_is_sound() {
    let root = root();
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 100, "the sources were not found");
    let mut found = Places::new();
    for file in files {
        let name = file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        for place in unsafe_places(&read(&file)) {
            *found.entry((name.clone(), place)).or_default() += 1;
        }
    }
    let listed = listed(&read(&root.join("docs/soundness.md")));
    assert!(
        found == listed,
        "docs/soundness.md differs from the sources\nfound {found:#?}\nlisted {listed:#?}"
    );
}

#[test]
fn the_keyword_is_found_where_it_is_and_nowhere_else() {
    let text =
        "fn a() {\n  KEYWORD { x() }; // KEYWORD\n  say('KEYWORD')\n}\nKEYWORD impl<T> Sync for M<T> {}\n";
    let text = format!("{text}pub KEYWORD fn b() {{}}\n#![forbid(KEYWORD_code)]");
    let text = text.replace("KEYWORD", concat!("un", "safe")).replace('\'', "\"");
    assert_eq!(unsafe_places(&text), ["a", "impl Sync", "b"]);
}

/// Where tests are not discovered, each file is a part of the suite or a program of its own.
#[test]
fn no_test_file_is_forgotten() {
    let mut suites = 0;
    for package in std::fs::read_dir(root()).unwrap().flatten().map(|entry| entry.path()) {
        let Ok(suite) = std::fs::read_to_string(package.join("tests/suite.rs")) else { continue };
        suites += 1;
        let manifest = read(&package.join("Cargo.toml"));
        for file in std::fs::read_dir(package.join("tests")).unwrap().flatten().map(|entry| entry.path()) {
            let name = file.file_stem().unwrap().to_str().unwrap();
            let runs = suite.contains(&format!("\nmod {name};\n"))
                || manifest.contains(&format!("[[test]]\nname = \"{name}\"\n"));
            assert!(runs || file.extension().is_none(), "nothing runs {}", file.display());
        }
    }
    assert_eq!(suites, 8);
}

/// Name, version and licence of every package that is built here; `cargo metadata` lists others as well.
fn packages() -> Vec<(String, String, String)> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.args(["tree", "--offline", "--locked", "--workspace", "--prefix", "none", "--no-dedupe"]);
    command.args(["--format", "{p}|{l}"]);
    let output = command.current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let package = |line: &str| {
        let (package, licence) = line.split_once('|')?;
        let mut words = package.split(' ');
        Some((
            words.next()?.to_owned(),
            words.next()?.to_owned(),
            licence.trim_end_matches(" (*)").to_owned(),
        ))
    };
    let found: BTreeSet<_> = String::from_utf8(output.stdout).unwrap().lines().filter_map(package).collect();
    assert!(found.len() > 50, "cargo tree lists {} packages only", found.len());
    found.into_iter().collect()
}

/// The quoted strings of a list in `deny.toml`, which is one to a line.
fn allowed(document: &str, list: &str) -> BTreeSet<String> {
    let list = document.split_once(&format!("\n{list} = [")).expect("the list is there").1;
    let lines = list.split("\n]").next().unwrap_or_default().lines();
    lines.filter_map(|line| line.split('"').nth(1)).map(str::to_owned).collect()
}

/// Whether an SPDX expression can be met. AND binds closer than OR; nobody nests deeper than one pair of brackets.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let flat = expression.replace('/', " OR ");
    let parts = flat.split(" AND ").map(|part| part.trim().trim_matches(['(', ')']));
    let mut parts = parts.map(|part| part.split(" OR "));
    parts.all(|mut choices| choices.any(|licence| allowed.contains(licence.trim())))
}

#[test]
fn licences_are_those_that_are_allowed() {
    let allowed = allowed(&read(&root().join("deny.toml")), "allow");
    assert!(
        is_allowed("(MIT OR GPL-3.0) AND Unicode-3.0", &allowed) && !is_allowed("MIT AND GPL-3.0", &allowed)
    );
    for (name, version, licence) in packages() {
        assert!(is_allowed(&licence, &allowed), "{name} {version} is under {licence:?}");
    }
}

#[test]
fn packages_that_are_there_twice_are_known() {
    let known = allowed(&read(&root().join("deny.toml")), "skip");
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, version, _) in packages() {
        versions.entry(name).or_default().insert(version);
    }
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        assert!(
            known.contains(name),
            "{name} is there in versions {versions:?}: one too many, or add it to deny.toml"
        );
    }
}
