//! What the handles of a client and its manager share.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};

use super::link::CloseOutcome;
use super::listener::{Deliver, ListenerId, Listeners};
use super::liveness::LostReason;
use super::session::Session;
use super::state::{ConnectionState, StateChange};
use super::status::Status;
use crate::connect_string::ConnectString;
use crate::error::{Error, ErrorKind, Outcome, Result};
use crate::node::Acl;
use crate::retry::RetryPolicy;

/// The most nodes whose deletion may be owed at one time.
pub(super) const CLEANUP_PLACES: usize = 100_000;

/// What a client was built with.
pub(crate) struct Config {
    pub(crate) connect_string: ConnectString,
    pub(crate) session_timeout: Duration,
    pub(crate) connection_timeout: Duration,
    pub(crate) retry_policy: Arc<dyn RetryPolicy>,
    pub(crate) default_acl: Arc<[Acl]>,
    pub(crate) node_data: Option<Arc<[u8]>>,
    pub(crate) auth: Vec<(String, Vec<u8>)>,
}

/// What the client's handles and its manager share.
pub(super) struct Core {
    pub(super) config: Config,
    pub(super) status: watch::Sender<Status>,
    pub(super) listeners: Listeners,
    /// How the client was closed.
    pub(super) closed: OnceLock<CloseOutcome>,
    pub(super) cleanup: Arc<Semaphore>,
}

impl Core {
    pub(super) fn new(config: Config) -> Self {
        let status = Status { state: ConnectionState::Connecting, session: None, failure: None };
        Self {
            config,
            status: watch::Sender::new(status),
            listeners: Listeners::default(),
            closed: OnceLock::new(),
            cleanup: Arc::new(Semaphore::new(CLEANUP_PLACES)),
        }
    }

    /// Publishes a state. The listeners are told under the status' lock, so that whoever adds one
    /// under it too misses nothing and is told nothing that was before.
    pub(super) fn publish(&self, change: StateChange, session: Option<Session>) {
        self.status.send_modify(|status| {
            status.state = change.current;
            status.session = session;
            if change.current.is_connected() {
                status.failure = None;
            }
            self.listeners.tell(change);
        });
    }

    /// Closes without a manager: it has panicked.
    pub(super) fn fail(&self) {
        let Status { state, session, .. } = self.status.borrow().clone();
        if let Some(session) = session {
            session.liveness().end(LostReason::Closed);
        }
        if state != ConnectionState::Closed {
            self.publish(StateChange::new(state, ConnectionState::Closed), None);
        }
        self.closed.get_or_init(|| CloseOutcome::Unconfirmed);
    }

    /// # Errors
    /// `Closed`: there would be nothing to tell, ever.
    pub(super) fn add_listener(&self, deliver: Deliver) -> Result<ListenerId> {
        let status = self.status.borrow();
        if status.state == ConnectionState::Closed {
            return Err(Error::new(ErrorKind::Closed));
        }
        self.listeners.add(deliver).map_err(|error| not_started(&error))
    }
}

pub(super) fn not_started(error: &io::Error) -> Error {
    Error::new(ErrorKind::Unexpected)
        .with_outcome(Outcome::NotApplied)
        .with_detail(format!("no thread could be started: {error}"))
}
