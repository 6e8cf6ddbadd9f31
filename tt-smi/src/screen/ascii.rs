//! The finished picture in characters that every terminal has. One place, after everything is drawn: no view
//! has to think of it, and none can forget.

use ratatui::buffer::Buffer;

/// Replaces what is not ASCII.
pub(crate) fn transliterate(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if !cell.symbol().is_ascii() {
            let sign = cell.symbol().chars().next().map_or(' ', plain);
            cell.set_char(sign);
        }
    }
}

fn plain(c: char) -> char {
    match c {
        '│' | '┃' | '▏' | '▕' | '▌' | '▐' => '|',
        '─' | '━' => '-',
        '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┬' | '┴' | '┼' | '╭' | '╮' | '╰' | '╯' => {
            '+'
        }
        '▔' => '"',
        '▀' => '"',
        '█' | '▉' | '▊' | '▋' | '▍' | '▎' | '▓' | '▒' => '#',
        '▁' | '▂' | '▃' => '_',
        '▄' | '▅' | '▆' | '▇' => '=',
        '░' | '·' => '.',
        '…' => '~',
        '▲' | '↑' => '^',
        '▼' | '↓' => 'v',
        '▶' | '→' | '›' | '≥' => '>',
        '◀' | '←' | '‹' => '<',
        '•' | '●' | '◆' => '*',
        '°' => ' ',
        'µ' | 'μ' => 'u',
        '×' => 'x',
        '\u{2800}' => ' ',
        '\u{2801}'..='\u{28ff}' => '*',
        _ => '?',
    }
}
