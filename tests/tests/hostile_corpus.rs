//! Replays the fuzzer's corpus, so that what it once found stays fixed where no fuzzer is installed.

use std::path::{Path, PathBuf};

use tt_shm_tests::fuzz::BODIES;

fn corpus(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn the_corpus_does_no_harm() {
    for (target, body) in BODIES {
        let files = corpus(target);
        assert!(files.len() >= 10, "{target} has a corpus of {} files only", files.len());
        for file in files {
            let input = std::fs::read(&file).unwrap();
            // A failure names the file; a panic alone would not.
            let result = std::panic::catch_unwind(|| body(&input));
            assert!(result.is_ok(), "{} fails", file.display());
        }
    }
}

/// Inputs that are wild in another way each time the corpus grows: cut, doubled, one byte changed.
#[test]
fn variations_of_the_corpus_do_no_harm() {
    for (target, body) in BODIES {
        for (number, file) in corpus(target).into_iter().enumerate() {
            let input = std::fs::read(&file).unwrap();
            let mut changed = input.clone();
            if let Some(byte) = changed.get_mut(number * 7 % input.len().max(1)) {
                *byte ^= 1 << (number % 8);
            }
            for varied in [&input[..input.len() / 2], &[&input[..], &input[..]].concat()[..], &changed[..]] {
                let result = std::panic::catch_unwind(|| body(varied));
                assert!(result.is_ok(), "{}, varied, fails: {varied:?}", file.display());
            }
        }
    }
}
