//! Signs that fonts draw with gaps between lines, drawn as what they are: blocks, lines and dots.

use super::{HEIGHT, WIDTH};

/// Bits of a Braille pattern by column and row of its dots.
const DOTS: [(u32, f64, f64); 8] = [
    (0x01, 0.0, 0.0),
    (0x02, 0.0, 1.0),
    (0x04, 0.0, 2.0),
    (0x08, 1.0, 0.0),
    (0x10, 1.0, 1.0),
    (0x20, 1.0, 2.0),
    (0x40, 0.0, 3.0),
    (0x80, 1.0, 3.0),
];

/// Whether a sign is drawn as a shape.
pub(super) fn is_shape(sign: char) -> bool {
    matches!(sign, '\u{2581}'..='\u{2590}' | '\u{2594}' | '\u{2595}' | '│' | '─' | '\u{2800}'..='\u{28ff}')
}

/// The shape, or nothing.
pub(super) fn shape(sign: char, x: f64, y: f64) -> String {
    match sign {
        // The lower eighths.
        '▁'..='█' => {
            let height = HEIGHT * f64::from(sign as u32 - 0x2580) / 8.0;
            rect(x, y + HEIGHT - height, WIDTH, height)
        }
        // The left eighths.
        '▉'..='▏' => rect(x, y, WIDTH * f64::from(0x2590 - sign as u32) / 8.0, HEIGHT),
        '▐' => rect(x + WIDTH / 2.0, y, WIDTH / 2.0, HEIGHT),
        '▔' => rect(x, y, WIDTH, HEIGHT / 8.0),
        '▕' => rect(x + WIDTH * 7.0 / 8.0, y, WIDTH / 8.0, HEIGHT),
        '│' => rect(x + WIDTH / 2.0 - 0.6, y, 1.2, HEIGHT),
        '─' => rect(x, y + HEIGHT / 2.0 - 0.6, WIDTH, 1.2),
        _ => String::new(),
    }
}

fn rect(x: f64, y: f64, width: f64, height: f64) -> String {
    // A little wider, so that neighbours meet.
    format!("<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\"/>", width + 0.1)
}

/// The dots of a Braille sign as a path of points; nothing for other signs.
pub(super) fn dots(sign: char, x: f64, y: f64) -> String {
    let pattern = (sign as u32).checked_sub(0x2800).filter(|pattern| *pattern <= 0xff).unwrap_or(0);
    let is_set = |(bit, ..): &&(u32, f64, f64)| pattern & bit != 0;
    let dot = |(_, column, row): &(u32, f64, f64)| {
        let (x, y) = (x + WIDTH * (0.25 + column * 0.5), y + HEIGHT * (0.125 + row * 0.25));
        format!("M{x:.1} {y:.1}h0")
    };
    DOTS.iter().filter(is_set).map(dot).collect()
}
