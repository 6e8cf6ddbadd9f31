//! What is answered where.

use std::sync::{Arc, OnceLock};

use tt_shm_http::{Answer, Dropped, Feed, Need, Request, Route, Stats, Status};
use tt_shm_os::Namespace;

use super::desk::{Desk, View};
use super::events::{self, Ring};
use crate::cli::ServeArgs;
use crate::output::json;
use crate::output::prometheus::{About, Kind, Labels, Sample, Scope, TextFormat, label, write_scope};
use crate::output::snapshot_json::SnapshotJson;
use crate::settings::Settings;

/// What answers are made from.
#[derive(Debug)]
pub(super) struct Site {
    desk: Arc<Desk>,
    feed: Arc<Feed>,
    ring: Arc<Ring>,
    namespace: Namespace,
    scope: Scope,
    /// The labels of every series, as text.
    labels: String,
    stats: OnceLock<Arc<Stats>>,
}

impl Site {
    pub(super) fn new(
        desk: Arc<Desk>,
        feed: Arc<Feed>,
        ring: Arc<Ring>,
        args: &ServeArgs,
        settings: &Settings,
    ) -> Site {
        let given = args.label.iter().map(|(name, value)| label(name, value));
        let labels: Vec<String> =
            std::iter::once(label("host", &crate::model::host())).chain(given).collect();
        let (namespace, scope) = (settings.namespace.clone(), super::scope(args));
        Site { desk, feed, ring, namespace, scope, labels: labels.join(","), stats: OnceLock::new() }
    }

    /// The server's own counts, which are served, too.
    pub(super) fn counts(&self, stats: Arc<Stats>) {
        // Called once, before the server starts.
        let _ = self.stats.set(stats);
    }

    /// The routes.
    pub(super) fn routes(site: &Arc<Site>) -> Vec<Route> {
        type Answers = fn(&Site, &Request) -> Answer;
        let routes: [(&'static str, Need, Answers); 5] = [
            ("/", Need::Nothing, |_, _| Answer::text(INDEX)),
            ("/metrics", Need::TokenIfSet, Site::metrics),
            ("/api/v1/snapshot", Need::TokenIfSet, Site::snapshot),
            ("/api/v1/events", Need::Token, Site::events),
            ("/healthz", Need::Nothing, Site::healthz),
        ];
        let route = |(path, need, answer): (&'static str, Need, Answers)| {
            let site = Arc::clone(site);
            Route::new(path, need, move |request| answer(&site, request))
        };
        routes.into_iter().map(route).collect()
    }

    fn metrics(&self, request: &Request) -> Answer {
        let view = match self.desk.view() {
            Ok(view) => view,
            Err(why) => return Answer::failed(Status::Unavailable, why + "\n"),
        };
        let (mut text, format) = (Vec::new(), TextFormat::accepted(&request.accept));
        let more = self.own_samples(&view);
        match write_scope(&mut text, &view.model, &self.scope, format, &self.labels, more) {
            Ok(()) => Answer::whole(format.content_type(), Arc::new(text)),
            Err(error) => Answer::failed(Status::Unavailable, format!("{error}\n")),
        }
    }

    fn snapshot(&self, _: &Request) -> Answer {
        let mut text = Vec::new();
        let written = self.desk.view().and_then(|view| {
            let document = SnapshotJson::new(&view.model, self.namespace.as_str());
            json::write(&mut text, &document).map_err(|error| error.to_string())
        });
        match written {
            Ok(()) => Answer::whole("application/json", Arc::new(text)),
            Err(why) => Answer::failed(Status::Unavailable, why + "\n"),
        }
    }

    fn events(&self, _: &Request) -> Answer {
        match events::first(&self.namespace) {
            Ok(first) => match self.feed.subscribe(&[first], events::tell) {
                Some(subscription) => Answer::events(subscription),
                None => Answer::failed(Status::Unavailable, "too many streams of events\n"),
            },
            Err(error) => Answer::failed(Status::Unavailable, format!("cannot list the segments: {error}\n")),
        }
    }

    fn healthz(&self, _: &Request) -> Answer {
        match self.desk.view() {
            Ok(view) if view.health.is_empty() => Answer::text("ok\n"),
            Ok(view) => Answer::failed(Status::Unavailable, view.health.join("\n") + "\n"),
            Err(why) => Answer::failed(Status::Unavailable, why + "\n"),
        }
    }

    /// What the server tells of itself.
    fn own_samples(&self, view: &View) -> Vec<Sample> {
        let healthy = f64::from(u8::from(view.health.is_empty()));
        let mut samples = vec![(HEALTHY, Labels::default(), healthy)];
        let streams = self.feed.clients() as f64;
        samples.push((STREAMS, Labels::default(), streams));
        for (reason, lost) in [("slow_client", self.feed.lost()), ("overwritten", self.ring.lost())] {
            samples.push((LOST, Labels::default().with("reason", reason), lost as f64));
        }
        let Some(stats) = self.stats.get() else { return samples };
        for status in Status::ALL {
            let code = Labels::default().with("code", status.line().0);
            samples.push((ANSWERS, code, stats.answers(status) as f64));
        }
        for why in Dropped::ALL {
            let reason = Labels::default().with("reason", why.word());
            samples.push((DROPPED_CLIENTS, reason, stats.dropped(why) as f64));
        }
        samples
    }
}

const INDEX: &str = "\
tt-smi serve: read-only figures of the memory of Tenstorrent accelerators on this machine
/metrics           for Prometheus, OpenMetrics
/api/v1/snapshot   JSON, as tt-smi snapshot --json
/api/v1/events     server-sent events; needs the token
/healthz           200 if the figures are to be relied on, 503 and the reason if not
";

const HEALTHY: About = About {
    name: "tt_smi_healthy",
    kind: Kind::Gauge,
    help: "1 if the monitor is up to date and sees all processes, 0 if not: /healthz says why.",
};
const STREAMS: About =
    About { name: "tt_smi_serve_streams", kind: Kind::Gauge, help: "Clients that stream events." };
const LOST: About = About {
    name: "tt_smi_serve_lost_events_total",
    kind: Kind::Counter,
    help: "Events that streams lack: the client read too slowly, or the ring was overwritten. Streams say where.",
};
const ANSWERS: About =
    About { name: "tt_smi_serve_answers_total", kind: Kind::Counter, help: "Answers by HTTP status." };
const DROPPED_CLIENTS: About = About {
    name: "tt_smi_serve_dropped_clients_total",
    kind: Kind::Counter,
    help: "Clients that were dropped: too slow, gone, or too many.",
};
