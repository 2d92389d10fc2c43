//! Waiting that needs no runtime of the caller's: every timer runs on the client's thread.
//!
//! A user's runtime may have no timers, a paused clock, or be blocked; a deadline must hold
//! anyway.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// Resolves after a while; made by [`Client::pause`](crate::Client::pause).
///
/// # Cancel safety
/// Dropping it ends its timer.
#[must_use = "a pause does nothing unless it is awaited"]
pub struct Pause {
    timer: Option<Timer>,
}

struct Timer {
    elapsed: oneshot::Receiver<()>,
    task: AbortHandle,
}

impl Pause {
    pub(crate) fn new(runtime: &Handle, duration: Duration) -> Self {
        if duration.is_zero() {
            return Self { timer: None };
        }
        let (sender, elapsed) = oneshot::channel();
        let task = runtime.spawn(async move {
            tokio::time::sleep(duration).await;
            let _ = sender.send(());
        });
        Self { timer: Some(Timer { elapsed, task: task.abort_handle() }) }
    }
}

impl Future for Pause {
    type Output = ();

    /// A pause also ends with the client: whoever waits then looks again and finds it closed.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.timer {
            Some(timer) => Pin::new(&mut timer.elapsed).poll(cx).map(|_| ()),
            None => Poll::Ready(()),
        }
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        if let Some(timer) = &self.timer {
            timer.task.abort();
        }
    }
}

impl fmt::Debug for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pause").finish_non_exhaustive()
    }
}

/// Awaits a future until the deadline; `None` if it was not ready by then. The future is polled
/// once even where the deadline has passed.
pub(crate) async fn within<T>(
    runtime: &Handle,
    deadline: Option<Instant>,
    future: impl Future<Output = T>,
) -> Option<T> {
    let mut future = pin!(future);
    let Some(deadline) = deadline else { return Some(future.await) };
    let mut pause = None;
    poll_fn(|cx| {
        if let Poll::Ready(value) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(value));
        }
        let left = || deadline.saturating_duration_since(Instant::now());
        let pause = pause.get_or_insert_with(|| Pause::new(runtime, left()));
        if Pin::new(&mut *pause).poll(cx).is_pending() {
            return Poll::Pending;
        }
        // The pause also ends with the client; the future gets the last word.
        match future.as_mut().poll(cx) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending => Poll::Ready(None),
        }
    })
    .await
}
