//! One public call: wait for a connection, try, and try again as the policy says.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::connection::{Scope, Session};
use crate::error::{ErrorKind, Outcome, Result};

/// Whether an attempt whose outcome is unknown may be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Only attempts that surely changed nothing are repeated.
    IfNotApplied,
    /// Repeating is harmless.
    Always,
}

/// Runs `attempt` until it succeeds, fails for good, or the retry policy gives up.
///
/// All waits for a connection together take the connection timeout at most.
pub(crate) async fn run<T, F, Fut>(scope: &Scope, repeat: Repeat, mut attempt: F) -> Result<T>
where
    F: FnMut(Session) -> Fut,
    Fut: Future<Output = Result<T>>,
{
    let policy = &scope.config().retry_policy;
    let mut delays = policy.delays();
    let mut patience = scope.config().connection_timeout;
    loop {
        let error = match connected(scope, &mut patience).await {
            Ok(session) => match attempt(session).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            },
            Err(error) => error,
        };
        let may_repeat = match error.outcome() {
            Outcome::NotApplied => true,
            Outcome::Unknown => repeat == Repeat::Always,
        };
        // There is no time left to wait for a connection in, or nothing to wait for.
        let is_last = matches!(
            error.kind(),
            ErrorKind::NotConnected | ErrorKind::Closed | ErrorKind::InvalidArgument
        );
        if is_last || !may_repeat || !policy.is_retryable(&error) {
            return Err(error);
        }
        let Some(delay) = delays.next() else { return Err(error) };
        tracing::debug!(%error, ?delay, "trying again");
        scope.pause(delay).await;
    }
}

async fn connected(scope: &Scope, patience: &mut Duration) -> Result<Session> {
    let start = Instant::now();
    let session = scope.session_until(start.checked_add(*patience)).await;
    *patience = patience.saturating_sub(start.elapsed());
    session
}

/// Whether an attempt of a call may have been carried out.
#[derive(Debug, Default)]
pub(crate) struct Doubt(AtomicBool);

impl Doubt {
    /// Notes the result of an attempt.
    pub(crate) fn note<T>(&self, result: Result<T>) -> Result<T> {
        if result.as_ref().is_err_and(|error| error.outcome() == Outcome::Unknown) {
            self.0.store(true, Ordering::Relaxed);
        }
        result
    }

    /// Every attempt so far is proved to have had no effect.
    pub(crate) fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_there(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
