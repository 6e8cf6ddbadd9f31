//! Writing processes.

use crate::Case;
use crate::select::{Visits, traps};
use std::collections::VecDeque;
use tt_shm_tests::Space;
use tt_shm_tests::points::case::{Found, Helper};
use tt_shm_tests::points::look::{aggregator, check_dead, check_living, read, segment_of};
use tt_shm_tests::points::oracle::{State, states};
use tt_shm_tests::points::point::Point;
use tt_shm_tests::points::step::Scenario;
use tt_shm_tests::points::trap::{End, Trap};
use tt_shm_tests::space::until;

const STEPPER: &str = env!("CARGO_BIN_EXE_stepper");

/// The points that a scenario is there for; none are all.
fn purpose(scenario: Scenario) -> &'static [Point] {
    use Point::*;
    match scenario {
        Scenario::Life => &[],
        Scenario::Growth => &[GrowthPopulated, GrowthPublished],
        Scenario::Cramped => &[UnlistedCount, SegmentState, EmitSlot, EmitRow, EmitHead],
        Scenario::Exit => &[TrackerReapChecked, TrackerReapUnlinked, SegmentUnlinkedAtExit],
        Scenario::Followed => &[Unknown],
    }
}

/// Cases per point: most where each store counts, few where a whole block is filled before it has a name.
fn most(point: Point) -> u64 {
    match point {
        Point::EmitSlot | Point::EmitRow | Point::EmitHead | Point::Anomaly => u64::MAX,
        Point::EmitCheckpoint => 120,
        _ => 16,
    }
}

/// Adds the cases of all scenarios.
pub(crate) fn cases(cases: &mut VecDeque<Case>, note: &mut impl FnMut(&Visits)) {
    for scenario in Scenario::ALL {
        let (ready, end) = census(scenario);
        note(&end);
        let purpose = purpose(scenario);
        for point in Point::ALL.iter().filter(|point| purpose.is_empty() || purpose.contains(point)) {
            for trap in traps(*point, end.of(*point), most(*point)) {
                let closing = trap.visit > ready.of(*point);
                let name = format!("{scenario:?} {}", trap.to_text());
                cases.push_back(Case { name, trap, run: Box::new(move || run(scenario, trap, closing)) });
            }
        }
        if scenario == Scenario::Life {
            followed_cases(cases, &ready);
        }
    }
}

/// Adds cases in which an aggregator follows the process before it is killed. Few: a death is noticed within
/// a quarter of a second.
fn followed_cases(cases: &mut VecDeque<Case>, visits: &Visits) {
    for point in [Point::EmitSlot, Point::EmitRow, Point::EmitCheckpoint, Point::EmitHead] {
        for trap in traps(point, visits.of(point), 9).filter(|trap| trap.end == End::Stop) {
            let name = format!("{} and killed", trap.to_text());
            cases.push_back(Case { name, trap, run: Box::new(move || run_followed(trap)) });
        }
    }
}

/// Visits before the last step, and with it.
fn census(scenario: Scenario) -> (Visits, Visits) {
    let space = Space::new();
    let mut helper = start(scenario, &space, None);
    helper.tell("");
    helper.lines_until("ready").expect("the scenario goes to its end");
    let ready = Visits::parse(helper.line());
    helper.end_input();
    if scenario == Scenario::Exit {
        // Nobody is left to tell that it was visited.
        assert!(helper.succeeds());
        return (ready.clone(), ready.with(Point::SegmentUnlinkedAtExit, 1));
    }
    let end = Visits::parse(helper.line());
    assert!(helper.succeeds());
    (ready, end)
}

/// Starts the helper; where it is to find a dead process's segment, with one.
fn start(scenario: Scenario, space: &Space, trap: Option<Trap>) -> Helper {
    if scenario == Scenario::Exit {
        let mut dead = Helper::start(STEPPER, &[&scenario.name()], space, None);
        dead.lines_until("ready").expect("it lives until it is killed");
        dead.kill();
    }
    Helper::start(STEPPER, &[&scenario.name()], space, trap)
}

fn run(scenario: Scenario, trap: Trap, closing: bool) -> Result<(), String> {
    let space = Space::new();
    let mut helper = start(scenario, &space, Some(trap));
    if closing || trap.end == End::Kill {
        helper.end_input();
    }
    let found = helper.wait_for(trap.end)?;
    let states = states(scenario);
    let seen = check_in_flight(&space, &mut helper, &states, found == Found::Stopped)?;
    let mut monitor = aggregator(space.namespace());
    let pid = helper.pid();
    if trap.end == End::Kill {
        check_dead(&monitor.snapshot(), pid, &seen)?;
        return nothing_left(&space);
    }
    check_living(&monitor.snapshot(), pid, &seen)?;
    helper.resume();
    if !closing {
        helper.lines_until("ready").ok_or("it did not go on")?;
        let last = last_of(&states[states.len() - 2]);
        let segment = segment_of(&space, pid)?;
        expect(&read(segment.as_ref())?, &[last])?;
        // One that saw it in flight and follows it, or one that comes now.
        if seen == State::Absent {
            monitor = aggregator(space.namespace());
        }
        monitor.settle();
        check_living(&monitor.snapshot(), pid, last)?;
    }
    if !helper.succeeds() {
        return Err("it did not end well".to_owned());
    }
    nothing_left(&space)
}

/// An aggregator that has followed a process reports exactly what it held when it was killed.
fn run_followed(trap: Trap) -> Result<(), String> {
    let space = Space::new();
    let mut helper = start(Scenario::Life, &space, Some(trap));
    helper.wait_for(trap.end)?;
    let seen = check_in_flight(&space, &mut helper, &states(Scenario::Life), true)?;
    let mut monitor = aggregator(space.namespace());
    check_living(&monitor.snapshot(), helper.pid(), &seen)?;
    helper.kill();
    until("the death to be noticed", || {
        monitor.poll();
        (monitor.segments() == 0).then_some(())
    });
    check_dead(&monitor.snapshot(), helper.pid(), &seen)?;
    nothing_left(&space)
}

/// What a reader sees is the state before or after the step in flight.
fn check_in_flight(
    space: &Space,
    helper: &mut Helper,
    states: &[Vec<State>],
    alive: bool,
) -> Result<State, String> {
    let taken = helper.lines_so_far().min(states.len() - 1);
    let absent = State::Absent;
    let before = taken.checked_sub(1).map_or(&absent, |step| last_of(&states[step]));
    let admissible: Vec<&State> = std::iter::once(before).chain(&states[taken]).collect();
    let segment = segment_of(space, helper.pid())?;
    let seen = read(segment.as_ref())?;
    expect(&seen, &admissible).map_err(|why| format!("in step {taken}: {why}"))?;
    match segment.map(|segment| segment.is_alive()) {
        Some(Ok(said)) if said != alive => Err(format!("it is said to be alive: {said}")),
        _ => Ok(seen),
    }
}

fn last_of(states: &[State]) -> &State {
    states.last().expect("every step leads somewhere")
}

fn expect(seen: &State, admissible: &[&State]) -> Result<(), String> {
    match admissible.contains(&seen) {
        true => Ok(()),
        false => Err(format!("{seen:?} is none of {admissible:?}")),
    }
}

fn nothing_left(space: &Space) -> Result<(), String> {
    let left = space.segments();
    if left.is_empty() { Ok(()) } else { Err(format!("{left:?} are left")) }
}
