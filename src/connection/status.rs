//! What the manager last published, and how to follow it.

use std::fmt;

use tokio::sync::watch;

use super::session::Session;
use super::state::ConnectionState;
use crate::error::Error;

/// What the manager last published.
#[derive(Clone, Debug)]
pub(super) struct Status {
    pub(super) state: ConnectionState,
    /// The session of a `Connected` or `Suspended` state.
    pub(super) session: Option<Session>,
    /// Why the last attempt to connect failed, until one succeeds.
    pub(super) failure: Option<Error>,
}

/// Follows the states of a client; made by
/// [`Client::watch_state`](crate::Client::watch_state).
///
/// It always gives the newest state; what came and went in between is not repeated. Since each
/// state of a session carries its epoch, nobody can miss that a session ended.
#[derive(Clone)]
pub struct StateWatch {
    status: watch::Receiver<Status>,
    seen: ConnectionState,
}

impl StateWatch {
    pub(super) fn new(status: watch::Receiver<Status>) -> Self {
        let seen = status.borrow().state;
        Self { status, seen }
    }

    /// The state now.
    pub fn current(&self) -> ConnectionState {
        self.status.borrow().state
    }

    /// Waits for a state other than the one that was last given here (at first: the one at the
    /// time of [`watch_state`](crate::Client::watch_state)). `None` once
    /// [`ConnectionState::Closed`] was given.
    ///
    /// # Cancel safety
    /// Loses nothing when dropped.
    pub async fn changed(&mut self) -> Option<ConnectionState> {
        let seen = self.seen;
        if seen == ConnectionState::Closed {
            return None;
        }
        self.seen = self.status.wait_for(|status| status.state != seen).await.ok()?.state;
        Some(self.seen)
    }
}

impl fmt::Debug for StateWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateWatch").field("current", &self.current()).finish_non_exhaustive()
    }
}
