//! `tt-smi serve`: figures over HTTP, from a process of its own that needs no privileges.
//!
//! Three kinds of threads: the one that started reads the source when somebody asks (`desk`); one follows the rings while
//! somebody streams events (`events`); those of the server (`tt_shm_http`) answer from what both give (`routes`). None
//! waits for a client.

mod desk;
mod events;
mod health;
mod routes;

#[cfg(test)]
pub(crate) use events::{Following, Lost};

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use tt_shm_http::{Feed, FeedLimits, Hosts, Limits, Server, Token};

use crate::cli::ServeArgs;
use crate::exit::Usage;
use crate::output::prometheus::Scope;
use crate::settings::Settings;
use crate::signals::Stop;
use crate::source::Source;
use desk::Desk;
use events::Ring;
use routes::Site;

/// Bytes of events that may wait for one client.
const QUEUE_BYTES: usize = 1 << 20;

/// Serves until a signal.
pub(crate) fn run(args: &ServeArgs, settings: &Settings) -> anyhow::Result<()> {
    let stop = Stop::on_signals().context("cannot catch signals")?;
    let token = args.token_file.as_deref().map(Token::read).transpose()?;
    refuse_open_doors(&args.listen, token.is_some())?;
    let mut source = Source::open(&settings.namespace)?;
    let desk = Arc::new(Desk::new(settings.namespace.clone()));
    let ring = Arc::new(Ring::default());
    // Half of the places at most are streams, so that a scrape gets in.
    let feed = Arc::new(Feed::new(FeedLimits { clients: (args.max_clients / 2).max(1), bytes: QUEUE_BYTES }));
    let site = Arc::new(Site::new(Arc::clone(&desk), Arc::clone(&feed), Arc::clone(&ring), args, settings));
    let limits = Limits { clients: args.max_clients, ..Limits::default() };
    let own_name = crate::model::host();
    let hosts = Hosts::new(args.allow_host.iter().cloned().chain([own_name]));
    let server =
        Server::bind(&args.listen, limits, hosts, token, Site::routes(&site)).context("cannot listen")?;
    site.counts(server.stats());
    for address in server.addresses() {
        eprintln!("tt-smi: listening on http://{address}/metrics");
    }
    let running = server.start().context("cannot start a thread")?;
    let follower = {
        let (feed, ring, namespace, stop) =
            (Arc::clone(&feed), Arc::clone(&ring), settings.namespace.clone(), stop.clone());
        std::thread::Builder::new()
            .name("events".to_owned())
            .spawn(move || events::follow(&feed, &ring, &namespace, &|| stop.is_set()))
            .context("cannot start a thread")?
    };
    desk.work(&mut source, &|| stop.is_set());
    feed.close();
    running.stop();
    let _ = follower.join();
    Ok(())
}

/// Who is not on this machine needs a token.
fn refuse_open_doors(addresses: &[SocketAddr], has_token: bool) -> anyhow::Result<()> {
    match addresses.iter().find(|address| !address.ip().is_loopback()) {
        Some(address) if !has_token => Err(anyhow::Error::new(Usage(format!(
            "--listen {address} is not a loopback address: everybody who reaches it could read who runs what here. \
             Give --token-file FILE, and put a proxy with TLS before it (docs/fleet.md)"
        )))),
        _ => Ok(()),
    }
}

/// The series that are told.
fn scope(args: &ServeArgs) -> Scope {
    Scope {
        pids: args.pids,
        brief: args.brief,
        dropped_labels: args.drop_label.clone(),
        max_series: args.max_series,
    }
}
