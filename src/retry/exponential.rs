//! The policy whose pauses grow; the only file that names the crate `backoff`.
//!
//! That crate does the interval arithmetic and nothing else, and none of its types leaves this
//! file, so that it can be replaced here alone.

use std::time::Duration;

use backoff::ExponentialBackoffBuilder;
use backoff::backoff::Backoff;

use super::{RetryPolicy, SHORTEST_DELAY};

/// The pauses are spread over half to one and a half of their interval.
const SPREAD: f64 = 0.5;

const DEFAULT_MAX_RETRIES: u32 = 10;
const DEFAULT_MAX_DELAY: Duration = Duration::from_secs(60);

/// Doubles the pause from retry to retry, and spreads it by chance.
///
/// The n-th pause, counted from zero, lies anywhere between one half and one and a half of
/// `base × 2ⁿ`; by the spread, clients that lost the same server do not come back all at once. No
/// pause is longer than [`max_delay`](Self::max_delay), and none is shorter than 1 ms.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use zookeeper_framework::{ExponentialBackoff, RetryPolicy};
///
/// let policy = ExponentialBackoff::new(Duration::from_millis(100))
///     .max_retries(8)
///     .max_delay(Duration::from_secs(5));
///
/// let delays: Vec<_> = policy.delays().collect();
/// assert_eq!(delays.len(), 8);
/// assert!(delays[0] >= Duration::from_millis(50));
/// assert!(delays[7] <= Duration::from_secs(5));
/// ```
#[doc(alias = "ExponentialBackoffRetry")]
#[doc(alias = "BoundedExponentialBackoffRetry")]
#[derive(Clone, Debug)]
pub struct ExponentialBackoff {
    base: Duration,
    max_retries: u32,
    max_delay: Duration,
}

impl ExponentialBackoff {
    /// Starts with pauses of about `base`; a base below 1 ms is raised to 1 ms.
    ///
    /// Unless set otherwise it gives up after 10 retries, and no pause is longer than 60 s (or one
    /// and a half of `base`, where that is more).
    pub fn new(base: Duration) -> Self {
        let base = base.max(SHORTEST_DELAY);
        let max_delay = DEFAULT_MAX_DELAY.max(base.saturating_add(base / 2));
        Self { base, max_retries: DEFAULT_MAX_RETRIES, max_delay }
    }

    /// Gives up after `retries` retries, so after `retries + 1` attempts; zero means no retry.
    #[must_use]
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.max_retries = retries;
        self
    }

    /// Makes no pause longer than `delay`; a value below 1 ms is raised to 1 ms.
    #[must_use]
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay.max(SHORTEST_DELAY);
        self
    }
}

impl RetryPolicy for ExponentialBackoff {
    fn delays(&self) -> Box<dyn Iterator<Item = Duration> + Send> {
        // The longest interval is such that its spread ends at the longest pause. Cutting the
        // pauses off instead would make half of the late ones equal, and clients would meet again.
        let longest = self.max_delay.div_f64(1.0 + SPREAD);
        let mut intervals = ExponentialBackoffBuilder::new()
            .with_initial_interval(self.base.min(longest))
            .with_max_interval(longest)
            .with_multiplier(2.0)
            .with_randomization_factor(SPREAD)
            .with_max_elapsed_time(None)
            .build();
        let max_delay = self.max_delay;
        let delays = (0..self.max_retries).map_while(move |_| intervals.next_backoff());
        Box::new(delays.map(move |delay| delay.clamp(SHORTEST_DELAY, max_delay)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_stay_within_their_spread() {
        let base = Duration::from_millis(100);
        for _ in 0..100 {
            let policy = ExponentialBackoff::new(base).max_retries(8);
            let mut interval = base;
            for delay in policy.delays() {
                assert!(delay >= interval / 2, "{delay:?} of {interval:?}");
                assert!(delay <= interval * 3 / 2 + Duration::from_nanos(1));
                interval *= 2;
            }
            assert_eq!(interval, base * 256);
        }
    }

    #[test]
    fn no_pause_is_longer_than_the_longest_and_late_ones_differ() {
        let longest = Duration::from_secs(3);
        let policy = ExponentialBackoff::new(Duration::from_secs(1)).max_delay(longest);
        let late: Vec<_> = policy.max_retries(200).delays().skip(2).collect();
        assert!(late.iter().all(|&delay| delay >= longest / 4 && delay <= longest));
        let at_the_limit = late.iter().filter(|&&delay| delay == longest).count();
        assert!(at_the_limit < late.len() / 10, "{at_the_limit} of {} are equal", late.len());
    }

    #[test]
    fn pauses_are_spread_by_chance() {
        let policy = ExponentialBackoff::new(Duration::from_secs(1));
        let first = policy.delays().collect::<Vec<_>>();
        assert_ne!(first, policy.delays().collect::<Vec<_>>());
    }

    #[test]
    fn extremes_neither_overflow_nor_reach_zero() {
        let durations = [Duration::ZERO, Duration::from_nanos(1), SHORTEST_DELAY, Duration::MAX];
        for base in durations {
            for max_delay in durations {
                let policy = ExponentialBackoff::new(base).max_delay(max_delay);
                for delay in policy.max_retries(u32::MAX).delays().take(300) {
                    assert!(delay >= SHORTEST_DELAY);
                    assert!(delay <= max_delay.max(SHORTEST_DELAY));
                }
            }
        }
        assert_eq!(ExponentialBackoff::new(Duration::MAX).max_retries(0).delays().next(), None);
    }

    #[test]
    fn a_long_base_is_not_cut_by_the_default_limit() {
        let base = Duration::from_secs(600);
        assert!(ExponentialBackoff::new(base).delays().all(|delay| delay >= base / 2));
    }
}
