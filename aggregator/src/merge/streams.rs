//! Merges many streams that are each in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Repeatedly calls `step` on the stream with the earliest `head`, until every head is later than `limit`.
/// `step` must consume everything up to the time it is given, and at least the head.
///
/// A stream keeps its turn until it passes the head of the next one: processes tend to allocate in bursts,
/// and a burst then costs one heap operation.
pub(crate) fn merge<S>(
    streams: &mut [S],
    limit: u64,
    head: impl Fn(&S) -> Option<u64>,
    mut step: impl FnMut(&mut S, u64),
) {
    let due = |stream: &S| head(stream).filter(|time| *time <= limit);
    let heads = streams.iter().enumerate().filter_map(|(index, stream)| Some(Reverse((due(stream)?, index))));
    let mut heap: BinaryHeap<Reverse<(u64, usize)>> = heads.collect();
    while let Some(Reverse((_, index))) = heap.pop() {
        let next = heap.peek().map_or(limit, |Reverse((time, _))| *time);
        let stream = &mut streams[index];
        step(stream, next);
        if let Some(time) = due(stream) {
            heap.push(Reverse((time, index)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    fn merged(streams: &[&[u64]], limit: u64) -> (Vec<u64>, Vec<usize>) {
        let mut queues: Vec<VecDeque<u64>> = streams.iter().map(|s| s.iter().copied().collect()).collect();
        let mut out = Vec::new();
        let mut take = |q: &mut VecDeque<u64>, until| {
            while let Some(time) = q.pop_front_if(|time| *time <= until) {
                out.push(time);
            }
        };
        merge(&mut queues, limit, |q| q.front().copied(), &mut take);
        (out, queues.iter().map(VecDeque::len).collect())
    }

    #[test]
    fn streams_become_one_in_order() {
        let (out, left) = merged(&[&[1, 4, 5, 9], &[], &[2, 3, 6], &[7, 8]], 100);
        assert_eq!(out, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(left, [0, 0, 0, 0]);
    }

    #[test]
    fn many_streams_become_one_in_order() {
        let streams: Vec<Vec<u64>> =
            (1..40).map(|step| (step..500).step_by(step as usize).collect()).collect();
        let streams: Vec<&[u64]> = streams.iter().map(Vec::as_slice).collect();
        let (out, left) = merged(&streams, 400);
        assert!(out.is_sorted() && left.iter().all(|left| *left <= 100));
        assert_eq!(out.len() + left.iter().sum::<usize>(), streams.iter().map(|s| s.len()).sum());
    }

    #[test]
    fn what_is_too_young_waits() {
        let (out, left) = merged(&[&[1, 4, 50], &[2, 60], &[70]], 10);
        assert_eq!(out, [1, 2, 4]);
        assert_eq!(left, [1, 1, 1]);
    }

    #[test]
    fn equal_times_lose_nothing() {
        let (out, _) = merged(&[&[5, 5, 5], &[5, 5]], 5);
        assert_eq!(out.len(), 5);
    }
}
