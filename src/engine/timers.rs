//! When to look at what again.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::time::Instant;

/// At most one time for each key. What is over takes its time with it, so the times of a host that runs much do not pile
/// up until they pass.
#[derive(Debug)]
pub(super) struct Timers<K> {
    queue: BTreeSet<(Instant, K)>,
    times: HashMap<K, Instant>,
}

impl<K: Copy + Ord + Hash> Timers<K> {
    pub(super) fn new() -> Timers<K> {
        Timers { queue: BTreeSet::new(), times: HashMap::new() }
    }

    /// Sets the time of a key, in place of an earlier or later one.
    pub(super) fn set(&mut self, key: K, at: Option<Instant>) {
        if self.times.get(&key).copied() == at {
            return;
        }
        if let Some(before) = self.times.remove(&key) {
            self.queue.remove(&(before, key));
        }
        if let Some(at) = at {
            self.times.insert(key, at);
            self.queue.insert((at, key));
        }
    }

    /// Sets the time of a key unless it has an earlier one.
    pub(super) fn set_at_latest(&mut self, key: K, at: Instant) {
        if self.times.get(&key).is_none_or(|before| at < *before) {
            self.set(key, Some(at));
        }
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// A key whose time has come; it has none afterwards.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<K> {
        let (at, key) = *self.queue.first().filter(|(at, _)| *at <= now)?;
        self.queue.remove(&(at, key));
        self.times.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn keys_are_due_in_the_order_of_their_times() {
        let mut timers = Timers::new();
        let now = Instant::now();
        let at = |ms| now + Duration::from_millis(ms);
        timers.set(1, Some(at(30)));
        timers.set(2, Some(at(10)));
        timers.set(3, Some(at(20)));
        assert_eq!(timers.next(), Some(at(10)));
        assert_eq!(timers.take_due(now), None);
        let due: Vec<i32> = std::iter::from_fn(|| timers.take_due(at(20))).collect();
        assert_eq!((due, timers.next()), (vec![2, 3], Some(at(30))));
    }

    #[test]
    fn a_key_has_one_time_and_leaves_nothing_behind() {
        let mut timers = Timers::new();
        let now = Instant::now();
        for ms in 1..100 {
            timers.set(7, Some(now + Duration::from_millis(ms)));
        }
        timers.set_at_latest(7, now + Duration::from_secs(9));
        assert_eq!(timers.next(), Some(now + Duration::from_millis(99)), "an earlier time stands");
        timers.set_at_latest(7, now);
        assert_eq!((timers.take_due(now), timers.take_due(now + Duration::from_secs(10))), (Some(7), None));
        timers.set(7, Some(now));
        timers.set(7, None);
        assert_eq!((timers.next(), timers.queue.len(), timers.times.len()), (None, 0, 0));
    }
}
