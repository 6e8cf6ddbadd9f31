//! An aggregator that looks and publishes only when it is told to, a line on standard output behind each
//! command, and has a trap somewhere: see [`tt_shm_tests::points`]. The daemon does the same by the clock,
//! and nobody could say which visit of a point belongs to what.

use anyhow::{Context, Result};
use std::time::Duration;
use tt_shm_aggregator::{Aggregator, Claim, Config, TablePublisher};
use tt_shm_reader::Namespace;
use tt_shm_tests::points::trap::{arm, visits};

fn main() -> Result<()> {
    let namespace = Namespace::new(&std::env::var("TT_SHM_NAMESPACE")?)?;
    let mut running = None;
    for line in std::io::stdin().lines() {
        match line?.as_str() {
            "arm" => arm(),
            "start" => running = Some(start(&namespace)?),
            "publish" => {
                let (aggregator, publisher) = running.as_mut().context("not started")?;
                aggregator.settle();
                publisher.publish(aggregator)?;
            }
            "bury" => {
                let (aggregator, publisher) = running.as_mut().context("not started")?;
                while aggregator.segments() > 0 {
                    aggregator.poll();
                    std::thread::sleep(Duration::from_millis(1));
                }
                publisher.publish(aggregator)?;
            }
            "close" => {
                let (_, publisher) = running.take().context("not started")?;
                publisher.close()?.remove_lock_file_while_held()?;
            }
            "visits" => println!("{}", serde_json::to_string(&visits())?),
            other => anyhow::bail!("unknown command {other}"),
        }
        println!("done");
    }
    Ok(())
}

fn start(namespace: &Namespace) -> Result<(Aggregator, TablePublisher)> {
    let claim = Claim::take(namespace)?;
    let config = Config { accept_resets: true, watch: false, ..Config::new(namespace.clone()) };
    let aggregator = Aggregator::resume(config, claim.adopt())?;
    let publisher = TablePublisher::create(claim, &aggregator)?;
    Ok((aggregator, publisher))
}
