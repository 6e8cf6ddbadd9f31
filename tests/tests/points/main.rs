//! Every test point: a process is killed there and, in another run, stopped there, and what is left must be
//! its state before or after the one operation in flight.

mod monitors;
mod select;
mod writers;

use select::Visits;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use tt_shm_tests::points::coverage::Coverage;
use tt_shm_tests::points::point::Point;
use tt_shm_tests::points::trap::Trap;

/// Cases that run at the same time. They wait most of the time.
const THREADS: usize = 6;

/// One process and its end.
struct Case {
    name: String,
    trap: Trap,
    run: Box<dyn Fn() -> Result<(), String> + Send>,
}

#[test]
fn every_point() {
    let mut coverage = Coverage::default();
    let (mut cases, mut note) = (VecDeque::new(), |visits: &Visits| count(&mut coverage, visits));
    writers::cases(&mut cases, &mut note);
    monitors::cases(&mut cases, &mut note);
    let (coverage, cases, failures) = (Mutex::new(coverage), Mutex::new(cases), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(case) = next(&cases) {
                    match attempt(&case) {
                        Ok(()) => coverage.lock().unwrap().ended(case.trap.point, case.trap.end),
                        Err(why) => failures.lock().unwrap().push(format!("{}: {why}", case.name)),
                    }
                }
            });
        }
    });
    let (coverage, failures) = (coverage.into_inner().unwrap(), failures.into_inner().unwrap());
    // On standard error, which a test runner shows even of what passed if it is asked to.
    eprintln!(
        "{coverage}{} points, {} cases right, {} wrong",
        Point::ALL.len() - 1,
        coverage.cases(),
        failures.len()
    );
    let shown: Vec<_> = failures.iter().take(10).map(String::as_str).collect();
    assert!(failures.is_empty(), "{} cases are wrong, the first:\n{}", failures.len(), shown.join("\n"));
    assert_eq!(coverage.gaps(), Vec::<String>::new());
}

fn next(cases: &Mutex<VecDeque<Case>>) -> Option<Case> {
    cases.lock().unwrap().pop_front()
}

fn attempt(case: &Case) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| (case.run)())).unwrap_or_else(|_| Err("panicked, see above".to_owned()))
}

fn count(coverage: &mut Coverage, visits: &Visits) {
    for point in Point::ALL {
        coverage.visited(*point, visits.of(*point));
    }
}
