//! The goals, each looked up in the results.

use crate::outcome::{Case, Outcome};
use std::collections::BTreeMap;
use std::path::Path;

/// One goal and what was found.
#[derive(Clone, Debug)]
pub struct Goal {
    /// What is to be.
    pub text: &'static str,
    /// What is, if it was measured.
    pub found: Option<f64>,
    /// Where it ends.
    pub bound: f64,
    /// Whether less is better.
    pub at_most: bool,
    /// Of both numbers.
    pub unit: &'static str,
}

impl Goal {
    /// Whether it is reached; nothing is known of what was not measured.
    pub fn reached(&self) -> Option<bool> {
        self.found.map(|found| if self.at_most { found <= self.bound } else { found >= self.bound })
    }
}

/// All benchmarks' results by name.
struct All(BTreeMap<String, Outcome>);

impl All {
    fn find(&self, bench: &str, name: &str, parameters: &[(&str, &str)]) -> Option<&Case> {
        self.0.get(bench)?.find(name, parameters)
    }

    fn emit(&self, handle: &str, live: &str) -> Option<&Case> {
        self.find("emit", handle, &[("live", live), ("order", "random")])
    }

    fn peer(&self, name: &str) -> Option<f64> {
        self.find("peers", name, &[])?.ratio
    }

    /// How many times slower the socket is at a percentile.
    fn socket(&self, at: impl Fn(&Case) -> Option<f64>) -> Option<f64> {
        let ours = self.find("peers", "shared", &[])?;
        Some(at(self.find("peers", "socket send", &[])?)? / at(ours)?)
    }

    fn dispatch_percent(&self, devices: &str) -> Option<f64> {
        let fixed = [("devices", devices), ("work us", "5"), ("tracking", "on")];
        Some(self.find("dispatch", "cached dispatch: added", &fixed)?.ratio? * 100.0)
    }

    fn slowest_p99_9(&self) -> Option<f64> {
        let live = ["1000", "10000", "100000"];
        let cases = live.iter().flat_map(|live| [self.emit("shared", live), self.emit("exclusive", live)]);
        cases.map(|case| Some(case?.percentiles?.p99_9)).try_fold(0.0, |most, p| Some(f64::max(most, p?)))
    }

    /// The shared handle as a multiple of the exclusive one, used by one thread: the larger of two sizes.
    fn shared_to_exclusive(&self) -> Option<f64> {
        let ratio = |live| Some(self.emit("shared", live)?.ns / self.emit("exclusive", live)?.ns);
        Some(f64::max(ratio("1000")?, ratio("10000")?))
    }

    /// How much later than without a tracker one of 1 000 events is done, where threads do other work in between.
    fn spaced_p99_9(&self, threads: &str) -> Option<f64> {
        let fixed = [("threads", threads), ("work us", "2")];
        let p99_9 = |name| Some(self.find("emit", name, &fixed)?.percentiles?.p99_9);
        Some(p99_9("shared")? - p99_9("loop alone")?)
    }

    fn hand_over(&self) -> Option<f64> {
        Some(self.find("emit", "hand-over to another thread", &[])?.ns)
    }

    fn disabled_ns(&self) -> Option<f64> {
        let ns = |name| Some(self.find("emit", name, &[])?.ns);
        Some((ns("tracking disabled")? - ns("loop alone")?).max(0.0))
    }

    fn slowest_start_ms(&self) -> Option<f64> {
        let ms = |aggregator| {
            Some(self.find("start", "tt-smi snapshot --json", &[("aggregator", aggregator)])?.ns / 1e6)
        };
        Some(f64::max(ms("none")?, ms("running")?))
    }

    /// With or without an aggregator, and so many steps a second.
    fn screen(&self, name: &str, aggregator: &str, steps: &str) -> Option<f64> {
        Some(self.find("screen", name, &[("aggregator", aggregator), ("steps", steps)])?.ns)
    }

    fn screen_percent(&self, aggregator: &str, steps: &str) -> Option<f64> {
        Some(self.screen("a second of ten pictures", aggregator, steps)? / 1e7)
    }

    /// The slowest.
    fn first_picture_ms(&self) -> Option<f64> {
        let cases = ["none", "running"].into_iter().flat_map(|who| ["200", "500"].map(|steps| (who, steps)));
        let ms = |(who, steps)| Some(self.screen("first picture", who, steps)? / 1e6);
        cases.map(ms).try_fold(0.0, |most, ms| Some(f64::max(most, ms?)))
    }

    /// The view that costs most, by its percentage of a core.
    fn dearest_view_percent(&self) -> Option<f64> {
        let cases = self.0.get("screen")?.results.iter().filter(|case| case.text("view").is_some());
        cases.map(|case| case.ns / 1e7).reduce(f64::max)
    }

    /// Of 100 000 live allocations, folded or not.
    fn long_list_percent(&self) -> Option<f64> {
        let of = |mesh| self.find("screen", "a second of ten pictures, allocations", &[("mesh", mesh)]);
        Some(f64::max(of("true")?.ns, of("false")?.ns) / 1e7)
    }

    /// The largest, in KiB.
    fn picture_kib(&self) -> Option<f64> {
        let cases = self.0.get("screen")?.results.iter();
        cases
            .filter_map(|case| case.number("bytes of a picture"))
            .reduce(f64::max)
            .map(|bytes| bytes / 1024.0)
    }

    fn folds_per_us(&self) -> Option<f64> {
        let fixed = [("rings", "8"), ("turn", "64")];
        Some(1e3 / self.find("aggregate", "fold, per event", &fixed)?.ns)
    }
}

/// The goals as far as there are results for them in a folder.
pub fn goals(results: &Path) -> Vec<Goal> {
    let benches = ["emit", "peers", "dispatch", "read", "aggregate", "start", "screen"];
    let read = |bench: &str| Some((bench.to_owned(), Outcome::read(results, bench).ok()?));
    let all = All(benches.into_iter().filter_map(read).collect());
    let ratio = |handle, live| all.emit(handle, live).and_then(|case| case.ratio);
    let most = |text, found, bound, unit| Goal { text, found, bound, at_most: true, unit };
    let least = |text, found, bound, unit| Goal { text, found, bound, at_most: false, unit };
    vec![
        most("exclusive, 1 000 live, multiple of the limit", ratio("exclusive", "1000"), 2.0, "x"),
        most("shared, 1 000 live, multiple of the limit", ratio("shared", "1000"), 3.0, "x"),
        most("shared, one thread, multiple of exclusive", all.shared_to_exclusive(), 1.15, "x"),
        most("shared, 10 000 live, random", ratio("shared", "10000"), 4.0, "x"),
        most("exclusive, 100 000 live, random", ratio("exclusive", "100000"), 8.0, "x"),
        most("shared, 100 000 live, random (stretch: 6)", ratio("shared", "100000"), 8.0, "x"),
        most("2 threads, 2 us apart: p99.9 beyond the loop", all.spaced_p99_9("2"), 1000.0, "ns"),
        most("4 threads, the same", all.spaced_p99_9("4"), 1000.0, "ns"),
        most("8 threads, the same", all.spaced_p99_9("8"), 1000.0, "ns"),
        most("hand-over to another thread, median", all.hand_over(), 2000.0, "ns"),
        most("p99.9 up to 100 000 live, both handles", all.slowest_p99_9(), 1000.0, "ns"),
        most("tracking disabled, beyond the loop alone", all.disabled_ns(), 1.0, "ns"),
        least("socket send, p50, multiple of ours", all.socket(|c| Some(c.percentiles?.p50)), 10.0, "x"),
        least("socket send, p99.9, multiple of ours", all.socket(|c| Some(c.percentiles?.p99_9)), 100.0, "x"),
        least("socket QUERY, multiple of one row read", query_ratio(&all), 1000.0, "x"),
        least("tt-metal's region, multiple of ours", all.peer("tt-metal region"), 1.0, "x"),
        least("LTTng-UST, multiple of ours", all.peer("LTTng-UST tracepoint"), 1.0, "x"),
        most("ours, multiple of rtrb + timestamp", all.peer("rtrb + timestamp").map(f64::recip), 3.0, "x"),
        most("added to a dispatch of 5 us, 4 devices", all.dispatch_percent("4"), 4.0, "%"),
        most("added to a dispatch of 5 us, 1 device", all.dispatch_percent("1"), 1.5, "%"),
        most("`tt-smi snapshot --json`", all.slowest_start_ms(), 15.0, "ms"),
        most("first picture of the screen", all.first_picture_ms(), 100.0, "ms"),
        most("screen at 10 a second, 8 devices", all.screen_percent("running", "500"), 2.0, "% of a core"),
        most("the same, no aggregator, 200 steps", all.screen_percent("none", "200"), 2.0, "% of a core"),
        most("the same, no aggregator, 500 steps", all.screen_percent("none", "500"), 2.0, "% of a core"),
        most("every other view, 8 devices", all.dearest_view_percent(), 2.0, "% of a core"),
        most("the same, 100 000 live allocations", all.long_list_percent(), 3.0, "% of a core"),
        most("bytes of a picture, 32 devices", all.picture_kib(), 4.0, "KiB"),
        least("folded from 8 rings by one core", all.folds_per_us(), 20.0, "M events/s"),
    ]
}

fn query_ratio(all: &All) -> Option<f64> {
    all.find("read", "socket QUERY, one device", &[])?.ratio
}
