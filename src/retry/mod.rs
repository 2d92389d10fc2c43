//! How often, and after which pauses, an operation is tried again.
//!
//! A [`RetryPolicy`] promises nothing but a row of pauses: each item is the pause before the next
//! attempt, and the end of the row means "give up". A row belongs to one public call, so calls that
//! run side by side do not use up one another's attempts, and nested steps of one call share one
//! budget.
//!
//! ```text
//!   call ──attempt──┬─ ok ──────────────────────────▶ result
//!          ▲        └─ error ─ is_retryable? ─ no ──▶ that error
//!          │                        │ yes
//!          └── pause ◀── some ── next delay ── none ▶ that error
//! ```
//!
//! Whether repeating is *right* is not a policy's business: a call whose outcome is unknown is
//! repeated only where that is harmless, whatever the policy says.

mod elapsed;
mod exponential;
mod fixed;
mod run;

use std::time::Duration;

use crate::error::Error;

pub use self::elapsed::RetryUntilElapsed;
pub use self::exponential::ExponentialBackoff;
pub use self::fixed::{NoRetry, RetryForever, RetryNTimes, RetryOneTime};
pub(crate) use self::run::{Doubt, Repeat, run};

/// Decides how often, and after which pauses, an operation is tried again.
///
/// Any function that returns a row of durations is a policy, so the pauses may come from wherever
/// you like: a range, a list, or another crate's generator through [`std::iter::from_fn`].
///
/// A policy of your own should not hand out zero pauses without end: it would keep the server and
/// this process busy for as long as an outage lasts.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use zookeeper_framework::RetryPolicy;
///
/// // Four retries: after 100, 200, 300 and 400 milliseconds.
/// let policy = || (1..=4).map(|n| Duration::from_millis(100 * n));
/// assert_eq!(policy.delays().last(), Some(Duration::from_millis(400)));
/// ```
///
/// To change what is worth a retry, implement the trait:
///
/// ```
/// use std::time::Duration;
/// use zookeeper_framework::{Error, ErrorKind, RetryNTimes, RetryPolicy};
///
/// /// Tries again within a session, and never in the next one.
/// struct WithinOneSession(RetryNTimes);
///
/// impl RetryPolicy for WithinOneSession {
///     fn delays(&self) -> Box<dyn Iterator<Item = Duration> + Send> {
///         self.0.delays()
///     }
///
///     fn is_retryable(&self, error: &Error) -> bool {
///         error.is_retryable() && error.kind() != ErrorKind::SessionLost
///     }
/// }
///
/// let policy = WithinOneSession(RetryNTimes::new(3, Duration::from_millis(200)));
/// assert_eq!(policy.delays().count(), 3);
/// ```
pub trait RetryPolicy: Send + Sync + 'static {
    /// Starts the budget of one call: the pauses between its attempts, first to last.
    ///
    /// Called once a call, when the call begins.
    fn delays(&self) -> Box<dyn Iterator<Item = Duration> + Send>;

    /// Whether an attempt that ended with `error` is worth another one.
    ///
    /// The default is [`Error::is_retryable`].
    fn is_retryable(&self, error: &Error) -> bool {
        error.is_retryable()
    }
}

impl<F, I> RetryPolicy for F
where
    F: Fn() -> I + Send + Sync + 'static,
    I: IntoIterator<Item = Duration>,
    I::IntoIter: Send + 'static,
{
    fn delays(&self) -> Box<dyn Iterator<Item = Duration> + Send> {
        Box::new(self().into_iter())
    }
}

/// The shortest pause of a policy that may go on for long: without it a delay of zero would be a
/// loop that never rests.
const SHORTEST_DELAY: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_function_that_returns_durations_is_a_policy() {
        let list: Arc<dyn RetryPolicy> = Arc::new(|| [Duration::ZERO, Duration::MAX]);
        assert_eq!(list.delays().collect::<Vec<_>>(), [Duration::ZERO, Duration::MAX]);

        let generator: Arc<dyn RetryPolicy> = Arc::new(|| {
            let mut left = 3;
            std::iter::from_fn(move || {
                left -= 1;
                (left > 0).then_some(Duration::from_secs(left))
            })
        });
        assert_eq!(generator.delays().count(), 2);
        assert_eq!(generator.delays().count(), 2, "each call has a budget of its own");
    }

    #[test]
    fn the_error_decides_unless_the_policy_says_otherwise() {
        let policy = NoRetry;
        assert!(policy.is_retryable(&Error::new(ErrorKind::ConnectionLost)));
        assert!(!policy.is_retryable(&Error::new(ErrorKind::NoAuth)));
    }
}
