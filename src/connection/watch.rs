//! Watches that fire once.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use super::link::{Fired, OneShot};
use super::liveness::Liveness;
use super::watch_budget::WatchPlace;
use crate::error::{Outcome, Result};

/// What a [`Watch`] saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WatchEvent {
    /// The node was created.
    Created,
    /// The node was deleted.
    Deleted,
    /// The node's data was set.
    DataChanged,
    /// A child of the node was created or deleted.
    ChildrenChanged,
}

/// A watch that fires once.
///
/// It survives reconnects of its session: what changed meanwhile fires it then. Dropping it takes
/// it back from the server.
#[derive(Debug)]
#[must_use = "dropping a watch takes it back"]
pub struct Watch {
    one_shot: OneShot,
    liveness: Arc<Liveness>,
    place: Option<WatchPlace>,
}

impl Watch {
    pub(super) fn new(
        one_shot: OneShot,
        liveness: Arc<Liveness>,
        place: Option<WatchPlace>,
    ) -> Self {
        Self { one_shot, liveness, place }
    }

    /// Waits for the event.
    ///
    /// # Errors
    /// `SessionLost` (or `Closed`) once the session is over.
    ///
    /// # Cancel safety
    /// Dropping the future drops the watch.
    pub async fn fired(self) -> Result<WatchEvent> {
        let Self { one_shot, liveness, place: _place } = self;
        let mut fired = pin!(one_shot.fired());
        let mut lost = liveness.lost();
        // The session is asked first: once it was given up, the wire crate's end of the watch may
        // be gone without a word.
        let event = poll_fn(|cx| match Pin::new(&mut lost).poll(cx) {
            Poll::Ready(_) => Poll::Ready(Fired::SessionOver),
            Poll::Pending => fired.as_mut().poll(cx),
        });
        match event.await {
            Fired::Created => Ok(WatchEvent::Created),
            Fired::Deleted => Ok(WatchEvent::Deleted),
            Fired::DataChanged => Ok(WatchEvent::DataChanged),
            Fired::ChildrenChanged => Ok(WatchEvent::ChildrenChanged),
            Fired::SessionOver => Err(liveness.over().with_outcome(Outcome::NotApplied)),
        }
    }
}
