//! Call sites for debugging: the functions that led to an allocation, innermost first.

use std::backtrace::Backtrace;

/// Functions that are kept.
const FRAMES: usize = 6;

/// The caller's functions outside this crate, such as `load_weights < run < main`.
pub(crate) fn capture() -> String {
    let backtrace = Backtrace::force_capture().to_string();
    let functions = backtrace.lines().filter_map(|line| {
        // "  12: path::to::function"; other lines give the file.
        let (number, function) = line.trim_start().split_once(": ")?;
        number.bytes().all(|byte| byte.is_ascii_digit()).then_some(function)
    });
    let outside = functions.skip_while(|function| is_ours(function)).filter(|function| !is_runtime(function));
    outside.take(FRAMES).collect::<Vec<_>>().join(" < ")
}

fn is_ours(function: &str) -> bool {
    function.contains("tt_shm_writer::") || function.contains("std::backtrace")
}

fn is_runtime(function: &str) -> bool {
    ["std::", "core::", "__libc_start", "_start", "<unknown>"].iter().any(|part| function.starts_with(part))
}
