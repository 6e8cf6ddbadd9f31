//! A picture (SVG) of a terminal's screen.

mod color;
mod shapes;

use std::fmt::Write;
use std::num::NonZero;
use std::time::Duration;

use vt100::{Cell, Screen};

/// Size of a character.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 18.0;
/// Around the screen.
const MARGIN: f64 = 12.0;

/// Characters in a line that look the same.
struct Run {
    column: u16,
    text: String,
    foreground: String,
    background: Option<String>,
    bold: bool,
    dim: bool,
}

/// The picture.
pub fn svg(screen: &Screen) -> String {
    let (mut svg, size) = (String::new(), screen.size());
    draw_screen(&mut svg, screen);
    in_frame(size, &svg)
}

/// Several screens, each for some time, again and again.
pub fn animated(scenes: &[(Screen, Duration)]) -> String {
    let all: f64 = scenes.iter().map(|(_, time)| time.as_secs_f64()).sum();
    let (mut svg, mut from) = (String::new(), 0.0);
    for (screen, time) in scenes {
        let to = from + time.as_secs_f64() / all;
        // It is hidden before and after its time. A viewer that does not animate shows the first.
        let (hidden, values, times) = match from > 0.0 {
            true => ("hidden", "hidden;visible;hidden", format!("0;{from:.4};{:.4}", f64::min(to, 1.0))),
            false => ("visible", "visible;hidden", format!("0;{to:.4}")),
        };
        let _ = writeln!(
            svg,
            "<g visibility=\"{hidden}\"><animate attributeName=\"visibility\" values=\"{values}\" keyTimes=\"{times}\" \
             dur=\"{all:.1}s\" calcMode=\"discrete\" repeatCount=\"indefinite\"/>"
        );
        draw_screen(&mut svg, screen);
        svg += "</g>\n";
        from = to;
    }
    scenes.first().map_or_else(String::new, |(screen, _)| in_frame(screen.size(), &svg))
}

fn in_frame((rows, columns): (NonZero<u16>, NonZero<u16>), content: &str) -> String {
    let (width, height) =
        (f64::from(columns.get()) * WIDTH + 2.0 * MARGIN, f64::from(rows.get()) * HEIGHT + 2.0 * MARGIN);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{}\"/>\n{content}</svg>\n",
        color::BACKGROUND
    )
}

fn draw_screen(svg: &mut String, screen: &Screen) {
    let (rows, columns) = screen.size();
    for row in 0..rows.get() {
        for run in runs(screen, row, columns.get()) {
            draw(svg, row, &run);
        }
    }
}

fn runs(screen: &Screen, row: u16, columns: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for column in 0..columns {
        let Some(cell) = screen.cell(row, column).filter(|cell| !cell.is_wide_continuation()) else {
            continue;
        };
        let next = run_of(cell, column);
        match runs.last_mut().filter(|last| last.looks_like(&next)) {
            Some(last) => last.text += &next.text,
            None => runs.push(next),
        }
    }
    runs
}

fn run_of(cell: &Cell, column: u16) -> Run {
    let (mut front, mut back) = (color::hex(cell.fgcolor()), color::hex(cell.bgcolor()));
    if cell.inverse() {
        let shown = front.unwrap_or_else(|| color::FOREGROUND.to_owned());
        front = Some(back.unwrap_or_else(|| color::BACKGROUND.to_owned()));
        back = Some(shown);
    }
    Run {
        column,
        text: if cell.has_contents() { cell.contents().to_owned() } else { " ".to_owned() },
        foreground: front.unwrap_or_else(|| color::FOREGROUND.to_owned()),
        background: back,
        bold: cell.bold(),
        dim: cell.dim(),
    }
}

impl Run {
    fn looks_like(&self, other: &Run) -> bool {
        (&self.foreground, &self.background, self.bold, self.dim)
            == (&other.foreground, &other.background, other.bold, other.dim)
    }
}

fn draw(svg: &mut String, row: u16, run: &Run) {
    let (x, y) = (MARGIN + f64::from(run.column) * WIDTH, MARGIN + f64::from(row) * HEIGHT);
    let width = run.text.chars().count() as f64 * WIDTH;
    if let Some(background) = &run.background {
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill=\"{background}\"/>"
        );
    }
    let opacity = if run.dim { " opacity=\"0.65\"" } else { "" };
    let (mut shapes, mut dots) = (String::new(), String::new());
    for (place, sign) in run.text.chars().enumerate() {
        let x = x + place as f64 * WIDTH;
        shapes += &shapes::shape(sign, x, y);
        dots += &shapes::dots(sign, x, y);
    }
    if !dots.is_empty() {
        let stroke = format!("stroke=\"{}\" stroke-width=\"3\" stroke-linecap=\"round\"", run.foreground);
        shapes += &format!("<path d=\"{dots}\" {stroke}/>");
    }
    let texts = texts(run, x, y);
    if !(texts.is_empty() && shapes.is_empty()) {
        let _ = writeln!(svg, "<g fill=\"{}\"{opacity}>{shapes}{texts}</g>", run.foreground);
    }
}

/// The words, each at its own place: viewers differ in the width of characters, and in what they make of blanks.
fn texts(run: &Run, x: f64, y: f64) -> String {
    let weight = if run.bold { " font-weight=\"bold\"" } else { "" };
    // What is drawn as a shape is a blank in the text.
    let text: Vec<char> =
        run.text.chars().map(|sign| if shapes::is_shape(sign) { ' ' } else { sign }).collect();
    let mut texts = String::new();
    let mut place = 0;
    for word in text.split(|sign| *sign == ' ') {
        if !word.is_empty() {
            let (x, length) = (x + place as f64 * WIDTH, word.len() as f64 * WIDTH);
            let word = escaped(&word.iter().collect::<String>());
            let _ = write!(
                texts,
                "<text x=\"{x:.1}\" y=\"{:.1}\" textLength=\"{length:.1}\"{weight}>{word}</text>",
                y + 13.5
            );
        }
        place += word.len() + 1;
    }
    texts
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
