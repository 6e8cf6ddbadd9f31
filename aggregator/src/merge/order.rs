//! Whether an event comes after what other processes did on the same device.

/// The latest events of a device, of the process that was last and of all others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Order {
    last: u64,
    process: usize,
    others: u64,
}

impl Order {
    /// Notes an event; says whether another process's later event was folded before it. Events of one
    /// process are in order by themselves, so a device with one process never has a late one.
    #[inline]
    pub(crate) fn is_late(&mut self, process: usize, time: u64) -> bool {
        if process == self.process {
            self.last = self.last.max(time);
            return time < self.others;
        }
        if time >= self.last {
            *self = Order { last: time, process, others: self.last };
            return false;
        }
        self.others = self.others.max(time);
        true
    }

    /// Whether an event of a process would be late; notes nothing.
    pub(crate) fn is_behind(&self, process: usize, time: u64) -> bool {
        time < if process == self.process { self.others } else { self.last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_is_relative_to_other_processes() {
        let mut order = Order::default();
        assert!(!order.is_late(1, 10));
        assert!(!order.is_late(1, 5), "its own order is not in doubt");
        assert!(!order.is_late(2, 20));
        assert!(order.is_behind(1, 15) && !order.is_behind(2, 15) && !order.is_behind(1, 20));
        assert!(order.is_late(1, 15));
        assert!(!order.is_late(1, 20));
        assert!(!order.is_late(2, 20));
        assert!(order.is_late(2, 19));
        assert!(!order.is_late(3, 30));
        assert!(order.is_late(2, 25));
        assert!(!order.is_late(3, 26), "only 2 came before, at 25");
    }
}
