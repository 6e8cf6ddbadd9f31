//! Columns that line up.

use std::io::{self, Write};

use crate::output::paint::Paint;

/// On which side of a column the text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Lines of cells under headings. Cells are plain text, already escaped.
#[derive(Debug, Default)]
pub struct Columns {
    heads: Vec<(&'static str, Align)>,
    lines: Vec<Vec<String>>,
}

impl Columns {
    /// With these headings.
    pub fn new(heads: &[(&'static str, Align)]) -> Columns {
        Columns { heads: heads.to_vec(), lines: Vec::new() }
    }

    /// Adds a line.
    pub fn push(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.heads.len());
        self.lines.push(cells);
    }

    /// Whether there is no line.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Writes headings and lines, two spaces between columns, nothing at the ends of lines.
    pub fn write(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        let widths: Vec<usize> = (0..self.heads.len()).map(|column| self.width(column)).collect();
        let heads: Vec<&str> = self.heads.iter().map(|(head, _)| *head).collect();
        writeln!(out, "{}", paint.bold(&self.line(&heads, &widths)))?;
        for line in &self.lines {
            let cells: Vec<&str> = line.iter().map(String::as_str).collect();
            writeln!(out, "{}", self.line(&cells, &widths))?;
        }
        Ok(())
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.lines.iter().map(|line| line[column].chars().count());
        cells.chain([self.heads[column].0.chars().count()]).max().unwrap_or(0)
    }

    fn line(&self, cells: &[&str], widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, width), (_, align)) in cells.iter().zip(widths).zip(&self.heads) {
            match align {
                Align::Left => line += &format!("{cell:<width$}  "),
                Align::Right => line += &format!("{cell:>width$}  "),
            }
        }
        line.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_right_and_words_left() {
        let mut columns = Columns::new(&[("NAME", Align::Left), ("BYTES", Align::Right)]);
        columns.push(vec!["größe".into(), "1".into()]);
        columns.push(vec!["b".into(), "1000000".into()]);
        let mut out = Vec::new();
        columns.write(&mut out, Paint::PLAIN).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "NAME     BYTES\ngröße        1\nb      1000000\n");
    }
}
