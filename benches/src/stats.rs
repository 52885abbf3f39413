//! The little statistics that the suite needs: medians, and how far apart the rounds were.

/// The middle of some values; of an even number of them, the mean of the middle two. NaN of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[half],
        _ => (sorted[half - 1] + sorted[half]) / 2.0,
    }
}

/// What the rounds say together: their median, and the lowest and highest of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub mid: f64,
    pub low: f64,
    pub high: f64,
}

impl Estimate {
    /// `None` without a round.
    pub fn of(rounds: &[f64]) -> Option<Estimate> {
        if rounds.is_empty() {
            return None;
        }
        let low = rounds.iter().copied().fold(f64::INFINITY, f64::min);
        let high = rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Estimate { mid: median(rounds), low, high })
    }

    /// Of `a` and `b` put together round by round. What one of the two has more rounds of is not used: a slow machine is
    /// slow for both sides of the same round.
    pub fn of_pairs(a: &[f64], b: &[f64], with: impl Fn(f64, f64) -> f64) -> Option<Estimate> {
        Estimate::of(&a.iter().zip(b).map(|(&a, &b)| with(a, b)).collect::<Vec<_>>())
    }
}

/// SplitMix64: an order that looks random and is the same in every run with the same seed.
pub struct Shuffle(pub u64);

impl Shuffle {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Fisher and Yates; the bias of the remainder is nothing at these lengths.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, (self.next() % (i as u64 + 1)) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[7.0]), 7.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn ratios_are_formed_round_by_round() {
        // Both sides three times as slow in the second round: the ratio doesn't notice.
        let ratio = Estimate::of_pairs(&[2.0, 6.0, 2.2], &[1.0, 3.0, 1.0], |a, b| a / b).unwrap();
        assert_eq!(ratio, Estimate { mid: 2.0, low: 2.0, high: 2.2 });
    }

    #[test]
    fn rounds_that_only_one_side_has_are_not_used() {
        assert_eq!(Estimate::of_pairs(&[1.0, 100.0], &[1.0], |a, b| a / b).unwrap().high, 1.0);
        assert_eq!(Estimate::of_pairs(&[1.0], &[], |a, b| a / b), None);
    }

    #[test]
    fn a_shuffle_keeps_everything_and_can_be_repeated() {
        let order = |seed| {
            let mut items: Vec<u32> = (0..20).collect();
            Shuffle(seed).shuffle(&mut items);
            items
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        let mut sorted = order(1);
        sorted.sort();
        assert_eq!(sorted, (0..20).collect::<Vec<_>>());
    }
}
