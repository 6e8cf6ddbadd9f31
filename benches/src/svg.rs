//! Two kinds of plot, as SVG: lines over a logarithmic axis, and bars.

use std::fmt::Write;

const WIDTH: f64 = 720.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 200.0;
const TOP: f64 = 44.0;
const PLOT_HEIGHT: f64 = 300.0;
const BAR_HEIGHT: f64 = 26.0;
const BAR_LEFT: f64 = 300.0;
const COLORS: [&str; 6] = ["#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#57606a"];

/// Points that belong together.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// In the legend.
    pub name: String,
    /// By x.
    pub points: Vec<(f64, f64)>,
}

/// Lines; both axes are logarithmic, since everything here spans decades.
#[derive(Clone, Debug)]
pub struct Lines {
    /// Above the plot.
    pub title: String,
    /// Below the x axis.
    pub x_label: String,
    /// Where the x axis has numbers, and what they are called.
    pub x_ticks: Vec<(f64, String)>,
    /// The lines; y in nanoseconds.
    pub series: Vec<Series>,
}

/// Bars over a logarithmic axis, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Bars {
    /// Above the plot.
    pub title: String,
    /// From top to bottom.
    pub bars: Vec<(String, f64)>,
}

/// Nanoseconds with a unit that keeps the number short.
pub fn duration(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        size if size < 1e3 => (ns, "ns"),
        size if size < 1e6 => (ns / 1e3, "us"),
        size if size < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let digits = if value.abs() < 10.0 { 1 } else { 0 };
    format!("{value:.digits$} {unit}")
}

/// A range of decades that holds all values.
#[derive(Clone, Copy, Debug)]
struct Decades {
    low: f64,
    high: f64,
}

impl Decades {
    fn of(values: impl Iterator<Item = f64>) -> Decades {
        let logs: Vec<f64> = values.filter(|value| *value > 0.0).map(f64::log10).collect();
        let low = logs.iter().copied().fold(f64::INFINITY, f64::min).floor();
        let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max).ceil();
        if low.is_finite() {
            Decades { low, high: high.max(low + 1.0) }
        } else {
            Decades { low: 0.0, high: 1.0 }
        }
    }

    /// From 0 to 1.
    fn place(self, value: f64) -> f64 {
        let log = if value > 0.0 { value.log10() } else { self.low };
        ((log - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    fn ticks(self) -> impl Iterator<Item = f64> {
        (self.low as i32..=self.high as i32).map(|power| 10_f64.powi(power))
    }
}

impl Lines {
    /// The picture.
    pub fn draw(&self) -> String {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let (x, y) = (self.x_range(), Decades::of(points().map(|point| point.1)));
        let place = |point: &(f64, f64)| {
            let right = LEFT + x.0.mul_add(-x.1, point.0.log10() * x.1) * (WIDTH - LEFT - RIGHT);
            (right, TOP + (1.0 - y.place(point.1)) * PLOT_HEIGHT)
        };
        let mut svg = Canvas::new(WIDTH, TOP + PLOT_HEIGHT + 56.0, &self.title);
        for tick in y.ticks() {
            let height = TOP + (1.0 - y.place(tick)) * PLOT_HEIGHT;
            svg.line((LEFT, height), (WIDTH - RIGHT, height), "#d0d7de");
            svg.text(LEFT - 8.0, height + 4.0, "end", "#24292f", &duration(tick));
        }
        for (value, name) in &self.x_ticks {
            let (right, _) = place(&(*value, 1.0));
            svg.line((right, TOP), (right, TOP + PLOT_HEIGHT), "#eaeef2");
            svg.text(right, TOP + PLOT_HEIGHT + 18.0, "middle", "#24292f", name);
        }
        let middle = LEFT.midpoint(WIDTH - RIGHT);
        svg.text(middle, TOP + PLOT_HEIGHT + 40.0, "middle", "#57606a", &self.x_label);
        for (number, series) in self.series.iter().enumerate() {
            let color = COLORS[number % COLORS.len()];
            svg.path(series.points.iter().map(place), color);
            let legend = TOP + 10.0 + number as f64 * 20.0;
            svg.line((WIDTH - RIGHT + 16.0, legend), (WIDTH - RIGHT + 40.0, legend), color);
            svg.text(WIDTH - RIGHT + 46.0, legend + 4.0, "start", "#24292f", &series.name);
        }
        svg.end()
    }

    /// Logarithm of the first tick, and one over the span.
    fn x_range(&self) -> (f64, f64) {
        let logs = || self.x_ticks.iter().map(|(value, _)| value.log10());
        let low = logs().fold(f64::INFINITY, f64::min);
        let high = logs().fold(f64::NEG_INFINITY, f64::max);
        if high > low { (low, 1.0 / (high - low)) } else { (0.0, 1.0) }
    }
}

impl Bars {
    /// The picture.
    pub fn draw(&self) -> String {
        let range = Decades::of(self.bars.iter().map(|bar| bar.1));
        let height = TOP + self.bars.len() as f64 * BAR_HEIGHT;
        let width = WIDTH - BAR_LEFT - 80.0;
        let mut svg = Canvas::new(WIDTH, height + 40.0, &self.title);
        for tick in range.ticks() {
            let right = BAR_LEFT + range.place(tick) * width;
            svg.line((right, TOP), (right, height), "#d0d7de");
            svg.text(right, height + 18.0, "middle", "#57606a", &duration(tick));
        }
        for (number, (name, ns)) in self.bars.iter().enumerate() {
            let top = TOP + number as f64 * BAR_HEIGHT;
            let length = (range.place(*ns) * width).max(1.0);
            svg.bar((BAR_LEFT, top + 4.0), (length, BAR_HEIGHT - 8.0));
            svg.text(BAR_LEFT - 8.0, top + 17.0, "end", "#24292f", name);
            svg.text(BAR_LEFT + length + 6.0, top + 17.0, "start", "#24292f", &duration(*ns));
        }
        svg.end()
    }
}

/// The few elements that are needed.
struct Canvas(String);

impl Canvas {
    fn new(width: f64, height: f64, title: &str) -> Canvas {
        let mut canvas = Canvas(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height:.0}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{width}\" height=\"{height:.0}\" fill=\"#ffffff\"/>\n"
        ));
        canvas.text(16.0, 24.0, "start", "#24292f", title);
        canvas
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{element}").expect("a string takes everything");
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), color: &str) {
        self.add(format_args!(
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{color}\"/>",
            from.0, from.1, to.0, to.1
        ));
    }

    fn bar(&mut self, at: (f64, f64), size: (f64, f64)) {
        self.add(format_args!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
            at.0, at.1, size.0, size.1, COLORS[0]
        ));
    }

    fn path(&mut self, points: impl Iterator<Item = (f64, f64)>, color: &str) {
        let points: Vec<String> = points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        self.add(format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>",
            points.join(" ")
        ));
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, color: &str, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{color}\">{text}</text>"
        ));
    }

    fn end(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        assert_eq!(duration(6.04), "6.0 ns");
        assert_eq!(duration(63.4), "63 ns");
        assert_eq!(duration(1_090_000.0), "1.1 ms");
    }

    #[test]
    fn a_plot_has_all_that_it_is_given() {
        let ticks = vec![(1.0, "1".to_owned()), (10.0, "10".to_owned())];
        let series = vec![Series { name: "a<b".to_owned(), points: vec![(1.0, 20.0), (10.0, 3000.0)] }];
        let lines = Lines { title: "t".to_owned(), x_label: "x".to_owned(), x_ticks: ticks, series }.draw();
        assert!(lines.contains("a&lt;b") && lines.contains("<polyline") && lines.ends_with("</svg>\n"));
        let bars = Bars { title: "t".to_owned(), bars: vec![("one".to_owned(), 12.0)] }.draw();
        assert!(bars.contains("one") && bars.contains("12 ns"));
    }
}
