//! Replays the fuzzer's corpus, so that what it once found stays fixed where no fuzzer is installed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fastrand::Rng;
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

/// Chance instead of coverage, where there is no fuzzer: `TT_FUZZ_SECONDS=60 cargo test -p tt-shm-tests --test
/// hostile_corpus -- --ignored --nocapture`.
#[test]
#[ignore = "runs for a given time, not to an end: .ci/fuzz starts it where there is no fuzzer"]
fn random_variations_do_no_harm() {
    let seconds = std::env::var("TT_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    for (target, body) in BODIES {
        let inputs: Vec<Vec<u8>> = corpus(target).iter().map(|file| std::fs::read(file).unwrap()).collect();
        let (start, mut random, mut runs) = (Instant::now(), Rng::with_seed(1), 0_u64);
        while start.elapsed() < Duration::from_secs(seconds) {
            let input = splice(&mut random, &inputs);
            let result = std::panic::catch_unwind(|| body(&input));
            assert!(result.is_ok(), "{target} fails on {input:?}");
            runs += 1;
        }
        println!("{target}: {runs} inputs");
    }
}

/// Parts of two inputs, some bytes changed.
fn splice(random: &mut Rng, inputs: &[Vec<u8>]) -> Vec<u8> {
    let mut input = Vec::new();
    for _ in 0..2 {
        let from = &inputs[random.usize(..inputs.len())];
        // Whole changes of 11 bytes most of the time (see the module `patch`).
        let cut = random.usize(..=from.len()) / 11 * 11;
        input.extend(if random.bool() { &from[..cut] } else { &from[cut..] });
    }
    for _ in 0..random.usize(..8) {
        let value = [0, 1, 0x7f, 0x80, 0xff, random.u8(..)];
        if let Some(byte) = random.choice(&mut input) {
            *byte = value[random.usize(..value.len())];
        }
    }
    input
}
