//! Converts a finished picture to ASCII. Done in one place after everything is drawn, so that no view has to care.

use ratatui::buffer::Buffer;

/// Replaces every character that is not ASCII.
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
