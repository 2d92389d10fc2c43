//! The answer of one operation of a session.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use super::liveness::Liveness;
use crate::error::{Error, ErrorKind, Outcome, Result};

/// The answer of one operation of a [`Session`](super::Session).
///
/// The request was sent when the operation was called.
///
/// # Cancel safety
/// Dropping it does not take the request back; only its answer is then lost.
#[must_use = "the request is sent in any case, but only its answer tells what became of it"]
pub struct Call<T>(oneshot::Receiver<Result<T>>);

impl<T> Future for Call<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // A `Reply` answers even when it is dropped, so the sender cannot go without a word but by
        // a panic of the wire crate.
        Pin::new(&mut self.0)
            .poll(cx)
            .map(|answer| answer.unwrap_or_else(|_| Err(Error::new(ErrorKind::Unexpected))))
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").finish_non_exhaustive()
    }
}

/// The sending end of a [`Call`]; answers for the session if it is dropped unanswered.
pub(super) struct Reply<T> {
    sender: Option<oneshot::Sender<Result<T>>>,
    liveness: Arc<Liveness>,
    path: Arc<str>,
    outcome: Outcome,
}

impl<T> Reply<T> {
    pub(super) fn new(liveness: Arc<Liveness>, path: &str) -> (Self, Call<T>) {
        let (sender, receiver) = oneshot::channel();
        let outcome = Outcome::NotApplied;
        (Self { sender: Some(sender), liveness, path: path.into(), outcome }, Call(receiver))
    }

    /// From here on the server may carry the request out.
    pub(super) fn sending(&mut self) {
        self.outcome = Outcome::Unknown;
    }

    pub(super) fn send(&mut self, result: Result<T>) {
        if let Some(sender) = self.sender.take() {
            let result = result.map_err(|error| {
                // A refused argument names itself, and may hold what no log should see.
                let named = error.path().is_some() || error.kind() == ErrorKind::InvalidArgument;
                let path = Arc::clone(&self.path);
                let error = if named { error } else { error.with_path(path) };
                error.with_epoch(self.liveness.epoch())
            });
            // A caller that has gone wants no answer.
            let _ = sender.send(result);
        }
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        let over = self.liveness.over().with_outcome(self.outcome);
        self.send(Err(over));
    }
}
