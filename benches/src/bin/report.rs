//! Prints the tables of `docs/performance.md` from the benchmarks' results: `report [--update] [RESULTS
//! [OTHER_RESULTS]]`, those of a second machine beside those of the first.
//! With `--update` it puts them into the document instead.

use std::path::PathBuf;
use tt_shm_benches::markdown::{sections, update};
use tt_shm_benches::options::{documentation_folder, other_results_folder, results_folder};

fn main() -> std::io::Result<()> {
    let (options, folders): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let results = folders.first().map_or_else(results_folder, PathBuf::from);
    let beside = folders.get(1).map_or_else(other_results_folder, PathBuf::from);
    let sections = sections(&results, beside.is_dir().then_some(beside.as_path()));
    if options.iter().any(|option| option == "--update") {
        let path = documentation_folder().join("performance.md");
        let document = std::fs::read_to_string(&path)?;
        return std::fs::write(path, update(&document, &sections));
    }
    for (name, table) in sections {
        println!("## {name}\n\n{table}");
    }
    Ok(())
}
