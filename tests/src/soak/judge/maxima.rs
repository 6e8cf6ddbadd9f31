//! Largest values of a quantity over any span of time that ends now.

use super::account::Summary;
use std::rc::Rc;

/// Who held what at a moment: identities and their accounts.
pub type Holders = Rc<Vec<(u64, Rc<Summary>)>>;

/// A time during which a quantity did not change.
#[derive(Clone, Default)]
pub struct Span {
    /// When it reached this value.
    pub start: u64,
    /// The value.
    pub value: u64,
    /// Who held it, if that is kept.
    pub holders: Option<Holders>,
}

/// The spans that are the largest of all after them.
#[derive(Default)]
pub struct Maxima {
    /// Each with its end; ends rise, values do not.
    spans: Vec<(u64, Span)>,
    /// The one that lasts.
    pub current: Span,
}

impl Maxima {
    /// From `ticks` on there is another value.
    pub fn change(&mut self, ticks: u64, value: u64, holders: Option<&Holders>) {
        if value == self.current.value {
            return;
        }
        let span = Span { start: ticks, value, holders: holders.cloned() };
        let old = std::mem::replace(&mut self.current, span);
        // A span that a larger one follows at once is the largest of nothing.
        if value < old.value {
            while self.spans.last().is_some_and(|(_, top)| top.value < old.value) {
                self.spans.pop();
            }
            self.spans.push((ticks, old));
        }
    }

    /// The spans that reach beyond `from` and have the largest value of all that do, but the current one.
    pub fn since(&self, from: u64) -> Best {
        let mut best = Best { from, value: 0, spans: Vec::new(), current: self.current.clone() };
        let first = self.spans.partition_point(|(end, _)| *end <= from);
        for (_, span) in self.spans[first..].iter().take_while(|(_, s)| s.value == self.spans[first].1.value)
        {
            best.value = span.value;
            best.spans.push(span.clone());
        }
        best
    }
}

/// The largest value since a moment, and when that was.
pub struct Best {
    from: u64,
    /// The value.
    pub value: u64,
    /// Every span that had it.
    pub spans: Vec<Span>,
    current: Span,
}

impl Best {
    /// From `ticks` on there is another value.
    pub fn change(&mut self, ticks: u64, value: u64, holders: impl FnOnce() -> Option<Holders>) {
        if value == self.current.value {
            return;
        }
        // Only of what may become the largest.
        let holders = if value >= self.value { holders() } else { None };
        let old = std::mem::replace(&mut self.current, Span { start: ticks, value, holders });
        self.close(ticks, old);
    }

    fn close(&mut self, end: u64, span: Span) {
        if end <= self.from || span.value < self.value {
            return;
        }
        if span.value > self.value {
            self.value = span.value;
            self.spans.clear();
        }
        self.spans.push(span);
    }

    /// The value lasts until `end`.
    pub fn end(mut self, end: u64) -> Best {
        let last = self.current.clone();
        self.close(end.max(self.from + 1), last);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_since_any_moment() {
        let mut maxima = Maxima::default();
        for (ticks, value) in [(10, 5), (20, 9), (30, 3), (40, 7), (50, 2), (60, 4)] {
            maxima.change(ticks, value, None);
        }
        let since = |from| {
            let best = maxima.since(from).end(70);
            (best.value, best.spans[0].start)
        };
        assert_eq!(since(0), (9, 20));
        assert_eq!(since(29), (9, 20), "it lasted until 30");
        assert_eq!(since(30), (7, 40));
        assert_eq!(since(49), (7, 40));
        assert_eq!(since(50), (4, 60));
        assert_eq!(since(65), (4, 60));
    }
}
