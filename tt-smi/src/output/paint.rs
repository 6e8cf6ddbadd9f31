//! Colours of plain text. The live screen has its own.

/// Colours text, or leaves it as it is.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    /// Whether to colour.
    pub colored: bool,
}

impl Paint {
    /// Leaves everything as it is.
    pub const PLAIN: Paint = Paint { colored: false };

    /// A heading.
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// What matters less.
    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    /// What an operator should look at.
    pub fn warn(self, text: &str) -> String {
        self.wrap("33", text)
    }

    /// By how full something is: green, yellow from 75 %, red from 90 %.
    pub fn fullness(self, used: u64, total: Option<u64>, text: &str) -> String {
        let Some(total) = total.filter(|total| *total > 0) else { return text.to_owned() };
        let percent = used as f64 * 100.0 / total as f64;
        let code = if percent >= 90.0 {
            "31"
        } else if percent >= 75.0 {
            "33"
        } else {
            "32"
        };
        self.wrap(code, text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.colored { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
