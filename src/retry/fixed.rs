//! Policies whose pauses are all alike.

use std::iter;
use std::time::Duration;

use super::{RetryPolicy, SHORTEST_DELAY};

/// Gives up after a fixed number of retries, with the same pause before each.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use zookeeper_framework::{RetryNTimes, RetryPolicy};
///
/// let policy = RetryNTimes::new(3, Duration::from_millis(200));
/// assert_eq!(policy.delays().collect::<Vec<_>>(), [Duration::from_millis(200); 3]);
/// ```
#[derive(Clone, Debug)]
pub struct RetryNTimes {
    retries: u32,
    delay: Duration,
}

impl RetryNTimes {
    /// Retries up to `retries` times, so `retries + 1` attempts in all, `delay` apart.
    ///
    /// Zero is a value like any other for both: no retry, and no pause.
    pub fn new(retries: u32, delay: Duration) -> Self {
        Self { retries, delay }
    }
}

impl RetryPolicy for RetryNTimes {
    fn delays(&self) -> Box<dyn Iterator<Item = Duration> + Send> {
        let delay = self.delay;
        Box::new((0..self.retries).map(move |_| delay))
    }
}

/// Retries once.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use zookeeper_framework::{RetryOneTime, RetryPolicy};
///
/// let policy = RetryOneTime::new(Duration::from_secs(1));
/// assert_eq!(policy.delays().collect::<Vec<_>>(), [Duration::from_secs(1)]);
/// ```
#[derive(Clone, Debug)]
pub struct RetryOneTime {
    delay: Duration,
}

impl RetryOneTime {
    /// Retries once, after `delay`; zero means at once.
    pub fn new(delay: Duration) -> Self {
        Self { delay }
    }
}

impl RetryPolicy for RetryOneTime {
    fn delays(&self) -> Box<dyn Iterator<Item = Duration> + Send> {
        Box::new(iter::once(self.delay))
    }
}

/// Never gives up on an attempt; a deadline of the call, no connection for the
/// [connection timeout](crate::ClientBuilder::connection_timeout), or closing the client ends it.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use zookeeper_framework::{RetryForever, RetryPolicy};
///
/// let policy = RetryForever::new(Duration::from_secs(1));
/// assert_eq!(policy.delays().nth(1_000_000), Some(Duration::from_secs(1)));
/// ```
#[derive(Clone, Debug)]
pub struct RetryForever {
    delay: Duration,
}

impl RetryForever {
    /// Retries for ever, `delay` apart; a delay below 1 ms is raised to 1 ms.
    pub fn new(delay: Duration) -> Self {
        Self { delay: delay.max(SHORTEST_DELAY) }
    }
}

impl RetryPolicy for RetryForever {
    fn delays(&self) -> Box<dyn Iterator<Item = Duration> + Send> {
        Box::new(iter::repeat(self.delay))
    }
}

/// Never retries: the first error of a call is its result.
///
/// # Examples
///
/// ```
/// use zookeeper_framework::{NoRetry, RetryPolicy};
///
/// assert_eq!(NoRetry.delays().next(), None);
/// ```
// No field could ever say anything, and `non_exhaustive` would forbid users to name the value.
#[allow(clippy::exhaustive_structs)]
#[derive(Clone, Debug)]
pub struct NoRetry;

impl RetryPolicy for NoRetry {
    fn delays(&self) -> Box<dyn Iterator<Item = Duration> + Send> {
        Box::new(iter::empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_retries_is_kept_exactly() {
        assert_eq!(RetryNTimes::new(0, Duration::MAX).delays().next(), None);
        assert_eq!(RetryNTimes::new(2, Duration::MAX).delays().count(), 2);
        let most = RetryNTimes::new(u32::MAX, Duration::ZERO).delays();
        assert_eq!(most.size_hint(), (u32::MAX as usize, Some(u32::MAX as usize)));
    }

    #[test]
    fn one_retry_is_one() {
        let delays: Vec<_> = RetryOneTime::new(Duration::ZERO).delays().collect();
        assert_eq!(delays, [Duration::ZERO]);
    }

    #[test]
    fn retrying_for_ever_rests_between_attempts() {
        let mut delays = RetryForever::new(Duration::ZERO).delays();
        assert_eq!(delays.next(), Some(Duration::from_millis(1)));
        let mut delays = RetryForever::new(Duration::MAX).delays();
        assert_eq!(delays.nth(1000), Some(Duration::MAX));
    }

    #[test]
    fn no_retry_is_none() {
        assert_eq!(NoRetry.delays().next(), None);
    }
}
