//! Draws the documentation's plots from the benchmarks' results: `plot [RESULTS [FOLDER]]`.

use std::path::PathBuf;
use tt_shm_benches::figures::draw_all;
use tt_shm_benches::options::{documentation_folder, results_folder};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1).map(PathBuf::from);
    let results = arguments.next().unwrap_or_else(results_folder);
    let folder = arguments.next().unwrap_or_else(|| documentation_folder().join("performance"));
    for file in draw_all(&results, &folder)? {
        println!("{file}");
    }
    Ok(())
}
