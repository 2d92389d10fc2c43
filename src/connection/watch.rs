//! Watches that fire once.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use super::link::{Fired, OneShot};
use super::session::Session;
use crate::error::{Error, ErrorKind, Result};

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
    session: Session,
    place: Option<WatchPlace>,
}

impl Watch {
    pub(super) fn new(one_shot: OneShot, session: Session, place: Option<WatchPlace>) -> Self {
        Self { one_shot, session, place }
    }

    /// Waits for the event.
    ///
    /// # Errors
    /// `SessionLost` (or `Closed`) once the session is over.
    ///
    /// # Cancel safety
    /// Dropping the future drops the watch.
    pub async fn fired(self) -> Result<WatchEvent> {
        let Self { one_shot, session, place: _place } = self;
        let mut fired = pin!(one_shot.fired());
        let mut lost = session.lost();
        let event = poll_fn(|cx| match fired.as_mut().poll(cx) {
            Poll::Ready(event) => Poll::Ready(event),
            Poll::Pending => Pin::new(&mut lost).poll(cx).map(|_| Fired::SessionOver),
        });
        match event.await {
            Fired::Created => Ok(WatchEvent::Created),
            Fired::Deleted => Ok(WatchEvent::Deleted),
            Fired::DataChanged => Ok(WatchEvent::DataChanged),
            Fired::ChildrenChanged => Ok(WatchEvent::ChildrenChanged),
            Fired::SessionOver => Err(session.over()),
        }
    }
}

/// The most bytes that the paths watched in one session may take.
///
/// At a reconnect all of them are sent to the new server. Beyond 128 KiB the wire client sends them
/// in a way that costs the session (fact 0.2).
const WATCHED_BYTES_MAX: usize = 100 * 1024;

/// How many bytes of paths are watched in one session.
#[derive(Debug, Default)]
pub(super) struct WatchBudget(AtomicUsize);

impl WatchBudget {
    /// # Errors
    /// `WatchesFull`.
    pub(super) fn reserve(self: &Arc<Self>, path: &str) -> Result<WatchPlace> {
        // Each path is sent with its length before it.
        let bytes = path.len() + size_of::<u32>();
        let taken = self.0.fetch_add(bytes, Ordering::Relaxed);
        let place = WatchPlace { budget: Arc::clone(self), bytes };
        if taken + bytes > WATCHED_BYTES_MAX {
            let limit = format!("the limit is {WATCHED_BYTES_MAX} bytes of paths a session");
            return Err(Error::new(ErrorKind::WatchesFull).with_detail(limit));
        }
        Ok(place)
    }
}

/// The share of one watch in its session's budget; given back when dropped.
#[derive(Debug)]
pub(super) struct WatchPlace {
    budget: Arc<WatchBudget>,
    bytes: usize,
}

impl Drop for WatchPlace {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_budget_refuses_until_a_watch_is_dropped() {
        let budget = Arc::new(WatchBudget::default());
        let path = "/".repeat(1020);
        let places: Vec<_> = (0..100).map(|_| budget.reserve(&path).unwrap()).collect();
        let full = budget.reserve("/").unwrap_err();
        assert_eq!(full.kind(), ErrorKind::WatchesFull);
        drop(places);
        assert!(budget.reserve("/").is_ok());
        assert_eq!(budget.0.load(Ordering::Relaxed), 0);
    }
}
