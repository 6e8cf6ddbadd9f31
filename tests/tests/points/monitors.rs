//! Aggregators.

use crate::Case;
use crate::select::{Visits, traps};
use std::collections::VecDeque;
use tt_shm_aggregator::{Aggregator, Claim, Config, TablePublisher};
use tt_shm_os::{path_of, table_file_name, table_lock_file_name};
use tt_shm_reader::{Segment, Table};
use tt_shm_tests::points::case::Helper;
use tt_shm_tests::points::look::{Moments, check_table, segment_of};
use tt_shm_tests::points::oracle::{State, states};
use tt_shm_tests::points::point::Point;
use tt_shm_tests::points::step::{FIRST_CHIP, Scenario, Step};
use tt_shm_tests::points::trap::{End, Trap};
use tt_shm_tests::{Space, Truth, monitor};

const STEPPER: &str = env!("CARGO_BIN_EXE_stepper");
const PUBLISHER: &str = env!("CARGO_BIN_EXE_publisher");

/// What an aggregator is doing when it is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It takes over from one that was killed.
    Start,
    /// It publishes what happened.
    Publish,
    /// It reclaims what a dead process held.
    Bury,
    /// It ends.
    Close,
}

impl Phase {
    fn command(self) -> &'static str {
        match self {
            Phase::Start => "start",
            Phase::Publish => "publish",
            Phase::Bury => "bury",
            Phase::Close => "close",
        }
    }
}

/// Cases per point.
fn most(phase: Phase) -> u64 {
    if phase == Phase::Publish { 30 } else { 5 }
}

/// Adds the cases of all phases.
pub(crate) fn cases(cases: &mut VecDeque<Case>, note: &mut impl FnMut(&Visits)) {
    for phase in [Phase::Start, Phase::Publish, Phase::Bury, Phase::Close] {
        let visits = census(phase);
        note(&visits);
        for point in Point::ALL {
            for trap in traps(*point, certain(*point, visits.of(*point)), most(phase)) {
                let name = format!("{phase:?} {}", trap.to_text());
                cases.push_back(Case { name, trap, run: Box::new(move || run(phase, trap)) });
            }
        }
    }
}

/// Visits that every run has. History gets a bucket more whenever a quarter of a second is over; three of nine
/// words are always written for each of the two devices.
fn certain(point: Point, visits: u64) -> u64 {
    if point == Point::TableHistory { visits.min(2 * 3 * 9) } else { visits }
}

fn census(phase: Phase) -> Visits {
    let mut scene = Scene::set(phase, None);
    scene.monitor.tell(phase.command());
    scene.monitor.lines_until("done").expect("it does as told");
    scene.monitor.tell("visits");
    let visits = Visits::parse(scene.monitor.line());
    scene.monitor.kill();
    visits
}

/// One process that writes, and an aggregator with a trap that is about to do something.
struct Scene {
    space: Space,
    host: Helper,
    monitor: Helper,
    segment: Segment,
    /// Of its ring, at the first and the second state.
    positions: [u64; 2],
    passed: Vec<Truth>,
    first: Truth,
    second: Truth,
}

impl Scene {
    fn set(phase: Phase, trap: Option<Trap>) -> Scene {
        let space = Space::new();
        let mut host = Helper::start(STEPPER, &[&Scenario::Followed.name()], &space, None);
        let steps = Scenario::Followed.steps();
        let pause = steps.iter().position(|step| matches!(step, Step::Pause)).expect("it pauses");
        (0..=pause).for_each(|_| drop(host.line().expect("it takes its steps")));
        let states = states(Scenario::Followed);
        let segment = segment_of(&space, host.pid()).ok().flatten().expect("it has a segment");
        let before = segment.words().head();
        let passed: Vec<Truth> = states.iter().flatten().filter_map(truth_of).collect();
        let last_of = |states: &[State]| states.last().and_then(truth_of).expect("something to be followed");
        let (first, second) = (last_of(&states[pause]), last_of(&states[steps.len() - 2]));
        let mut monitor = Helper::start(PUBLISHER, &[], &space, trap);
        let told = |monitor: &mut Helper, command: &str| {
            monitor.tell(command);
            monitor.lines_until("done").expect("it does as told");
        };
        if phase == Phase::Start {
            let mut earlier = Helper::start(PUBLISHER, &[], &space, None);
            told(&mut earlier, "start");
            earlier.kill();
            leave_requests(&space);
        } else {
            told(&mut monitor, "start");
        }
        host.tell("go on");
        host.lines_until("ready").expect("it goes on");
        let positions = [before, segment.words().head()];
        if matches!(phase, Phase::Bury | Phase::Close) {
            told(&mut monitor, "publish");
        }
        if phase == Phase::Bury {
            host.kill();
        }
        told(&mut monitor, "arm");
        Scene { space, host, monitor, segment, positions, passed, first, second }
    }

    fn table(&self) -> Result<Table, String> {
        Table::open(self.space.namespace()).map_err(|error| error.to_string())
    }

    /// The table says exactly how it is in the end.
    fn check_end(&self, phase: Phase) -> Result<(), String> {
        let living = [(self.host.pid(), self.second.clone())];
        let expected = if phase == Phase::Bury { &[][..] } else { &living[..] };
        let table = self.table()?.snapshot();
        monitor::compare(&table, expected)?;
        // All that the process ever had is within what the device had at most; in a window that was opened after
        // all of it had happened, what it still has.
        for (_, device) in table.devices.iter().filter(|_| phase != Phase::Bury) {
            let truth = &self.second.devices[(device.entry.chip_id - FIRST_CHIP) as usize];
            let peak = if table.windows == 0 { truth.dram_peak } else { truth.dram_used };
            let said = device.dram_peak;
            if !(said.low..=said.high).contains(&peak) {
                let windows = table.windows;
                return Err(format!(
                    "a peak of {said:?} in window {windows}, and a process alone had {peak}"
                ));
            }
        }
        Ok(())
    }
}

fn truth_of(state: &State) -> Option<Truth> {
    match state {
        State::Present(world) => Some(world.truth.clone()),
        State::Absent => None,
    }
}

/// What an aggregator finds at its start: a table half made, and somebody who wants a new window of peaks.
fn leave_requests(space: &Space) {
    let uid = rustix::process::geteuid().as_raw();
    let table = table_file_name(space.namespace(), uid);
    std::fs::write(path_of(&format!("{table}-0123456789abcdef")), "half").expect("a file in /dev/shm");
    let reset = table_lock_file_name(space.namespace(), uid).replace(".lock", ".reset-0123456789abcdef");
    std::fs::write(path_of(&reset), "").expect("a file in /dev/shm");
}

fn run(phase: Phase, trap: Trap) -> Result<(), String> {
    let mut scene = Scene::set(phase, Some(trap));
    scene.monitor.tell(phase.command());
    scene.monitor.wait_for(trap.end)?;
    check_in_flight(&scene, phase, trap.point)?;
    match trap.end {
        End::Kill => succeed(&scene, phase),
        End::Stop => go_on(&mut scene, phase),
    }?;
    let left: Vec<_> =
        scene.space.files().into_iter().filter(|path| path.to_string_lossy().contains(".table")).collect();
    if left.is_empty() { Ok(()) } else { Err(format!("{left:?} are left")) }
}

/// Readers find a table at any time, and in it rows of before or after.
fn check_in_flight(scene: &Scene, phase: Phase, point: Point) -> Result<(), String> {
    let table = match scene.table() {
        Err(_) if point == Point::TableUnlinked => return Ok(()),
        table => table?,
    };
    let (first, second) = (Some(&scene.first), Some(&scene.second));
    let states = match phase {
        Phase::Start | Phase::Publish => vec![first, second],
        Phase::Bury => vec![second, None],
        Phase::Close => vec![second],
    };
    let moments = Moments {
        pid: scene.host.pid(),
        identity: scene.segment.identity(),
        states: &states,
        positions: scene.positions,
        passed: &scene.passed,
    };
    check_table(&table, &moments)
}

/// Another aggregator takes over from one that was killed, and is exact.
fn succeed(scene: &Scene, phase: Phase) -> Result<(), String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let claim = Claim::take(scene.space.namespace()).map_err(|error| text(&error))?;
    let config = Config { watch: false, ..Config::new(scene.space.namespace().clone()) };
    let aggregator = Aggregator::resume(config, claim.adopt()).map_err(|error| text(&error))?;
    let publisher = TablePublisher::create(claim, &aggregator).map_err(|error| text(&error))?;
    scene.check_end(phase)?;
    if phase == Phase::Bury && !scene.space.segments().is_empty() {
        return Err("the dead process's segment is left".to_owned());
    }
    publisher.close().map_err(|error| text(&error))?;
    Ok(())
}

/// One that was stopped is still the only one, and is exact when it goes on.
fn go_on(scene: &mut Scene, phase: Phase) -> Result<(), String> {
    if Claim::take(scene.space.namespace()).is_ok() {
        return Err("another could take the place of one that was stopped".to_owned());
    }
    scene.monitor.resume();
    scene.monitor.lines_until("done").ok_or("it did not go on")?;
    if phase != Phase::Close {
        scene.check_end(phase)?;
        scene.monitor.tell("close");
        scene.monitor.lines_until("done").ok_or("it did not close")?;
    }
    if scene.monitor.succeeds() { Ok(()) } else { Err("it did not end well".to_owned()) }
}
