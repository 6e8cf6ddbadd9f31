//! Counts instructions and holds them against `benches/budgets.json`: `budget [--accept]`.
//!
//! Ends with 1 if a case is more than 5 % over its budget. With `--accept`, what was counted becomes the budget.

use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::error::Error;
use std::process::ExitCode;
use tt_shm_benches::budget::book::{Book, Page, Recorded, Tools};
use tt_shm_benches::budget::callgrind::{RUN_CASE, instructions};
use tt_shm_benches::budget::cases::CASES;
use tt_shm_benches::budget::verdict::{Verdict, compare, heading};

const ACCEPT: &str = "cargo run --release -p tt-shm-benches --bin budget -- --accept";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        [RUN_CASE, name] => run(name),
        [] => check(),
        ["--accept"] => accept(),
        _ => Err("usage: budget [--accept]".into()),
    };
    result.unwrap_or_else(|error| {
        eprintln!("budget: {error}");
        ExitCode::FAILURE
    })
}

/// Under valgrind: one case.
fn run(name: &str) -> Result<ExitCode, Box<dyn Error>> {
    let case = CASES.iter().find(|case| case.name == name).ok_or(format!("there is no case {name}"))?;
    println!("{}", (case.run)());
    Ok(ExitCode::SUCCESS)
}

/// Attempts at a case that seems to be over its budget.
const ATTEMPTS: usize = 3;

/// The instructions of a case; if they seem too many, the least of some attempts. What follows a clock does
/// more in smaller portions when it was interrupted for long.
fn least(case: &str, budget: Option<f64>) -> Result<f64, Box<dyn Error>> {
    let mut least = f64::INFINITY;
    for _ in 0..ATTEMPTS {
        // A tenth of an instruction is as fine as it need be.
        least = least.min((instructions(case)? * 10.0).round() / 10.0);
        if Verdict::of(Some(least), budget) != Verdict::Over {
            break;
        }
    }
    Ok(least)
}

fn count(book: &Book) -> Result<Recorded, Box<dyn Error>> {
    if cfg!(debug_assertions) {
        return Err(
            "budgets are of release builds: cargo run --release -p tt-shm-benches --bin budget".into()
        );
    }
    let tools = Tools::now()?;
    let mut counted = BTreeMap::new();
    let budgets = budgets(book);
    for case in CASES {
        let budget = budgets.and_then(|budgets| budgets.get(case.name)).copied();
        counted.insert(case.name.to_owned(), least(case.name, budget)?);
    }
    Ok(Recorded { tools, instructions: counted })
}

fn check() -> Result<ExitCode, Box<dyn Error>> {
    let book = Book::read()?;
    let now = count(&book)?;
    let verdicts = show(&book, &now);
    if let Some(Page::Unrecorded(why)) = book.page(ARCH) {
        println!(
            "\nNothing was compared: no budgets are recorded for {ARCH} ({why}).\nTo record them: {ACCEPT}"
        );
        return Ok(ExitCode::SUCCESS);
    }
    if verdicts.iter().any(|verdict| *verdict != Verdict::Within) {
        println!("\nIf this is as it should be, accept it (and say why in the commit): {ACCEPT}");
    }
    Ok(if verdicts.iter().any(|verdict| verdict.fails()) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn accept() -> Result<ExitCode, Box<dyn Error>> {
    let mut book = Book::read()?;
    let now = count(&book)?;
    show(&book, &now);
    book.accept(ARCH, now);
    book.write()?;
    println!("\nThe counts are the budgets now: {}", Book::path().display());
    Ok(ExitCode::SUCCESS)
}

fn budgets(book: &Book) -> Option<&BTreeMap<String, f64>> {
    match book.page(ARCH) {
        Some(Page::Recorded(recorded)) => Some(&recorded.instructions),
        Some(Page::Unrecorded(_)) | None => None,
    }
}

/// Prints the table, and says what it comes to.
fn show(book: &Book, now: &Recorded) -> Vec<Verdict> {
    if let Some(Page::Recorded(recorded)) = book.page(ARCH) {
        for difference in recorded.tools.differences(&now.tools) {
            println!("note: {difference}");
        }
    }
    let none = BTreeMap::new();
    let lines = compare(&now.instructions, budgets(book).unwrap_or(&none));
    println!("{}", heading());
    for line in &lines {
        println!("{line}");
    }
    lines.iter().map(|line| line.verdict).collect()
}
