//! The examples run, what they assert holds, and they leave nothing behind.

#[path = "../examples/profiler.rs"]
mod profiler;
#[path = "../examples/step_peak.rs"]
mod step_peak;
#[path = "../examples/timeline.rs"]
mod timeline;

use tt_shm_reader::{Namespace, segment_paths};

fn run(name: &str, main: fn() -> Result<(), Box<dyn std::error::Error>>) {
    main().unwrap();
    let namespace = Namespace::new(&format!("{name}-{}", std::process::id())).unwrap();
    assert_eq!(segment_paths(&namespace).unwrap(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_profiler_that_reads_its_own_peaks() {
    run("profiler", profiler::main);
}

#[test]
fn events_beside_the_time_line_of_a_host_profiler() {
    run("timeline", timeline::main);
}

#[test]
fn the_peak_of_a_step_and_what_was_in_it() {
    run("step-peak", step_peak::main);
}
