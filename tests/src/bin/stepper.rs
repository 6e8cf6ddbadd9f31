//! A process that takes the steps of a scenario, a line on standard output behind each, and has a trap
//! somewhere: see [`tt_shm_tests::points`]. The last step waits for the end of standard input.

use anyhow::{Context, Result};
use tt_shm_tests::points::step::{Scenario, Step, Stepper};
use tt_shm_tests::points::trap::{arm, visits};

fn main() -> Result<()> {
    let name = std::env::args().nth(1).context("which scenario?")?;
    let scenario = Scenario::ALL.into_iter().find(|scenario| scenario.name() == name);
    let scenario = scenario.with_context(|| format!("there is no scenario {name}"))?;
    let mut stepper = Stepper::new(scenario.live_capacity());
    let mut steps = scenario.steps();
    let last = steps.pop();
    arm();
    for step in steps {
        stepper.take(step)?;
        println!("step");
        if matches!(step, Step::Pause) {
            std::io::stdin().read_line(&mut String::new())?;
        }
    }
    println!("ready");
    println!("{}", serde_json::to_string(&visits())?);
    // More lines, or the end.
    while std::io::stdin().read_line(&mut String::new())? > 0 {}
    last.map_or(Ok(()), |step| stepper.take(step))?;
    println!("{}", serde_json::to_string(&visits())?);
    Ok(())
}
