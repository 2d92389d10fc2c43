//! A policy that is bounded by time.

use std::iter;
use std::time::{Duration, Instant};

use super::{RetryPolicy, SHORTEST_DELAY};

/// Retries until a call has lasted for a given time.
///
/// The time counts from the beginning of the call and takes in the attempts themselves, not only
/// the pauses. The last pause is cut short, so that the last attempt starts when the time is up and
/// not up to one pause later.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use zookeeper_framework::{RetryPolicy, RetryUntilElapsed};
///
/// let policy = RetryUntilElapsed::new(Duration::from_secs(30), Duration::from_millis(500));
/// assert_eq!(policy.delays().next(), Some(Duration::from_millis(500)));
/// ```
#[derive(Clone, Debug)]
pub struct RetryUntilElapsed {
    max_elapsed: Duration,
    delay: Duration,
}

impl RetryUntilElapsed {
    /// Retries, `delay` apart, until `max_elapsed` has passed since the call began.
    ///
    /// With a `max_elapsed` of zero there is no retry. A delay below 1 ms is raised to 1 ms.
    pub fn new(max_elapsed: Duration, delay: Duration) -> Self {
        Self { max_elapsed, delay: delay.max(SHORTEST_DELAY) }
    }

    /// The pause at a moment `elapsed` after the beginning of the call.
    fn delay_after(&self, elapsed: Duration) -> Option<Duration> {
        let left = self.max_elapsed.saturating_sub(elapsed);
        (!left.is_zero()).then(|| self.delay.min(left))
    }
}

impl RetryPolicy for RetryUntilElapsed {
    fn delays(&self) -> Box<dyn Iterator<Item = Duration> + Send> {
        let policy = self.clone();
        let began = Instant::now();
        Box::new(iter::from_fn(move || policy.delay_after(began.elapsed())))
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_last_pause_ends_when_the_time_is_up() {
        let policy = RetryUntilElapsed::new(10 * SECOND, 4 * SECOND);
        assert_eq!(policy.delay_after(Duration::ZERO), Some(4 * SECOND));
        assert_eq!(policy.delay_after(6 * SECOND), Some(4 * SECOND));
        assert_eq!(policy.delay_after(8 * SECOND), Some(2 * SECOND));
        assert_eq!(policy.delay_after(10 * SECOND), None);
        assert_eq!(policy.delay_after(Duration::MAX), None);
    }

    #[test]
    fn extremes_are_values_like_any_other() {
        assert_eq!(RetryUntilElapsed::new(Duration::ZERO, SECOND).delays().next(), None);
        let longest = RetryUntilElapsed::new(Duration::MAX, Duration::MAX);
        assert_eq!(longest.delay_after(Duration::ZERO), Some(Duration::MAX));
        let hottest = RetryUntilElapsed::new(Duration::MAX, Duration::ZERO);
        assert_eq!(hottest.delay_after(SECOND), Some(SHORTEST_DELAY));
    }

    #[test]
    fn the_row_of_a_call_ends_with_its_time() {
        let limit = Duration::from_millis(20);
        let policy = RetryUntilElapsed::new(limit, Duration::from_millis(3));
        let began = Instant::now();
        for delay in policy.delays() {
            thread::sleep(delay);
        }
        assert!(began.elapsed() >= limit);
        assert!(policy.delays().next().is_some(), "the next call starts anew");
    }
}
