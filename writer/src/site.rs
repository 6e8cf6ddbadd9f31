//! Call sites for debugging: the functions that led to an allocation, innermost first.

use std::backtrace::Backtrace;

/// The number of functions that are kept.
const FRAMES: usize = 6;

/// The caller's functions outside this crate, such as `load_weights (src/model.rs:12) < main (src/main.rs:5)`.
pub(crate) fn capture() -> String {
    sites(&Backtrace::force_capture().to_string())
}

/// A function, and the source location of the call.
struct Frame<'a> {
    function: &'a str,
    place: Option<&'a str>,
}

fn sites(backtrace: &str) -> String {
    let frames = frames(backtrace);
    // This crate's frames are on top. What is inlined into them does not have a name of this crate, but a
    // file of it.
    let first = frames.iter().rposition(is_ours).map_or(0, |last| last + 1);
    let outside = frames[first..].iter().filter(|frame| !is_runtime(frame));
    outside.take(FRAMES).map(describe).collect::<Vec<_>>().join(" < ")
}

/// Parses lines such as "  12: path::to::function", each possibly followed by "             at
/// ./src/file.rs:34:5".
fn frames(backtrace: &str) -> Vec<Frame<'_>> {
    let mut frames: Vec<Frame<'_>> = Vec::new();
    for line in backtrace.lines().map(str::trim_start) {
        let numbered = line.split_once(": ").filter(|(number, _)| number.bytes().all(|b| b.is_ascii_digit()));
        match (line.strip_prefix("at "), frames.last_mut(), numbered) {
            (Some(place), Some(frame), _) => frame.place = Some(place),
            (_, _, Some((_, function))) => frames.push(Frame { function, place: None }),
            _ => {}
        }
    }
    frames
}

fn is_ours(frame: &Frame<'_>) -> bool {
    frame.function.contains("tt_shm_writer::")
        || frame.place.is_some_and(|place| place.contains("writer/src/"))
}

fn is_runtime(frame: &Frame<'_>) -> bool {
    let runtime =
        ["std::", "core::", "__rust_", "__libc_start", "_start", "<unknown>", "start_thread", "clone"];
    let library = frame.place.is_some_and(|place| place.contains("/library/"));
    library || runtime.iter().any(|part| frame.function.starts_with(part))
}

/// Formats a frame as `load_weights (src/model.rs:12)`, without the column and without type parameters, which
/// are longer than the rest.
fn describe(frame: &Frame<'_>) -> String {
    let name = frame.function.split('<').next().filter(|name| !name.is_empty()).unwrap_or(frame.function);
    match frame.place.map(|place| place.rsplit_once(':').map_or(place, |(place, _column)| place)) {
        Some(place) => format!("{name} ({})", place.trim_start_matches("./")),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_the_writer_and_of_the_runtime_are_left_out() {
        let backtrace = "\
   0: std::backtrace::Backtrace::force_capture
             at /rustc/59807/library/std/src/backtrace.rs:312:9
   1: capture
             at ./writer/src/site.rs:10:11
   2: alloc<tt_shm_writer::tracker::Tracker, tt_shm_writer::device::Device>
             at ./writer/src/record.rs:90:40
   3: load_weights<alloc::string::String>
             at ./src/model.rs:12:7
   4: core::ops::function::FnOnce::call_once
             at /rustc/59807/library/core/src/ops/function.rs:250:5
   5: host::main
             at ./src/main.rs:5:3
   6: __libc_start_main
";
        assert_eq!(sites(backtrace), "load_weights (src/model.rs:12) < host::main (src/main.rs:5)");
    }

    #[test]
    fn functions_without_a_place_are_named_all_the_same() {
        assert_eq!(sites("   0: tt_shm_writer::site::capture\n   1: run\n   2: main\n"), "run < main");
    }
}
