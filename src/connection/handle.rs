//! The handle of a connection: what every operation of a client goes through.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::core::{CLEANUP_PLACES, Config, Core, not_started};
use super::link::CloseOutcome;
use super::listener::{Deliver, ListenerId};
use super::manager::{self, Order};
use super::pause;
use super::session::Session;
use super::state::ConnectionState;
use super::status::{StateWatch, Status};
use crate::error::{Error, ErrorKind, Result};

/// A handle of the connection. The thread ends after the last one was dropped.
#[derive(Clone)]
pub(crate) struct Connection(Arc<Owner>);

/// A handle that does not keep the connection.
#[derive(Clone, Debug)]
pub(crate) struct WeakConnection(Weak<Owner>);

impl WeakConnection {
    pub(crate) fn upgrade(&self) -> Option<Connection> {
        self.0.upgrade().map(Connection)
    }
}

struct Owner {
    core: Arc<Core>,
    orders: mpsc::UnboundedSender<Order>,
    runtime: Handle,
    thread: ThreadId,
    join: Mutex<Option<JoinHandle<()>>>,
    slots: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        // The manager has ended already after a `close`.
        let _ = self.orders.send(Order::Close(None));
    }
}

impl Connection {
    /// Starts the client's thread, which connects and never gives up before it is closed.
    pub(crate) fn start(config: Config) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| not_started(&error))?;
        let handle = runtime.handle().clone();
        let (orders, receiver) = mpsc::unbounded_channel();
        let core = Arc::new(Core::new(config));
        let managed = Arc::clone(&core);
        let join = thread::Builder::new()
            .name("zookeeper-client".to_owned())
            .spawn(move || {
                let run = AssertUnwindSafe(|| {
                    runtime.block_on(manager::run(Arc::clone(&managed), receiver));
                });
                // It runs one thing that is not ours, the retry policy. Should that panic, nobody
                // may wait for this thread any more.
                if panic::catch_unwind(run).is_err() {
                    tracing::error!("the client's thread panicked: the client is closed");
                    managed.fail();
                }
                // A name look-up that hangs must not hang the end of the client.
                runtime.shutdown_background();
            })
            .map_err(|error| not_started(&error))?;
        Ok(Self(Arc::new(Owner {
            core,
            orders,
            runtime: handle,
            thread: join.thread().id(),
            join: Mutex::new(Some(join)),
            slots: Mutex::default(),
        })))
    }

    pub(crate) fn config(&self) -> &Config {
        &self.0.core.config
    }

    /// The runtime of the client's thread.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.0.runtime
    }

    pub(crate) fn state(&self) -> ConnectionState {
        self.0.core.status.borrow().state
    }

    /// The session of a connected or suspended client.
    pub(crate) fn session(&self) -> Option<Session> {
        self.0.core.status.borrow().session.clone()
    }

    pub(crate) fn watch_state(&self) -> StateWatch {
        StateWatch::new(self.0.core.status.subscribe())
    }

    pub(crate) fn add_listener(&self, deliver: Deliver) -> Result<ListenerId> {
        self.0.core.add_listener(deliver)
    }

    pub(crate) fn remove_listener(&self, id: ListenerId) -> bool {
        self.0.core.listeners.remove(id)
    }

    /// The session of a connected client; waits for one at most until `deadline` (`None` = for
    /// ever).
    pub(crate) async fn session_until(&self, deadline: Option<Instant>) -> Result<Session> {
        let mut receiver = self.0.core.status.subscribe();
        let found = pause::within(self.runtime(), deadline, async move {
            // The answer is taken when it is given: a second look may see the clock move on.
            let mut found = None;
            let seen = receiver.wait_for(|status| {
                found = answer(status);
                found.is_some()
            });
            drop(seen.await);
            found
        });
        match found.await {
            Some(Some(answer)) => answer,
            // The sender lives as long as this handle.
            Some(None) => Err(Error::new(ErrorKind::Closed)),
            None => Err(self.not_connected()),
        }
    }

    fn not_connected(&self) -> Error {
        let status = self.0.core.status.borrow();
        let failure = status.failure.clone().unwrap_or_else(|| {
            let state = format!("the connection is {}", status.state);
            Error::new(ErrorKind::NotConnected).with_detail(state)
        });
        let reason = failure.detail().unwrap_or_default();
        let detail = format!("{} ({reason})", self.config().connect_string);
        failure.with_detail(detail)
    }

    pub(crate) fn downgrade(&self) -> WeakConnection {
        WeakConnection(Arc::downgrade(&self.0))
    }

    /// Runs a future on the client's thread. It is dropped, wherever it is, when the client ends.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        drop(self.0.runtime.spawn(future));
    }

    /// A place for a node whose deletion will be owed; `None` when all are taken.
    pub(crate) fn reserve_cleanup(&self) -> Result<CleanupPlace> {
        match Arc::clone(&self.0.core.cleanup).try_acquire_owned() {
            Ok(permit) => Ok(CleanupPlace(permit)),
            Err(_) => Err(Error::new(ErrorKind::CleanupFull)
                .with_detail(format!("the limit is {CLEANUP_PLACES}"))),
        }
    }

    pub(crate) fn slot<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut slots = self.0.slots.lock();
        let slot = slots.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        let slot = Arc::clone(slot);
        slot.downcast().unwrap_or_else(|_| unreachable!("a slot is kept under its own type"))
    }

    pub(crate) async fn close(&self) -> CloseOutcome {
        let (sender, receiver) = oneshot::channel();
        let _ = self.0.orders.send(Order::Close(Some(sender)));
        // No answer: another `close` has ended the manager.
        let earlier = || self.0.core.closed.get().copied();
        let outcome = receiver.await.ok().or_else(earlier).unwrap_or(CloseOutcome::Unconfirmed);
        let join = self.0.join.lock().take();
        if let Some(join) = join.filter(|_| thread::current().id() != self.0.thread) {
            // The manager has returned; what is left of the thread is the end of its runtime.
            let _ = join.join();
        }
        outcome
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("servers", &self.config().connect_string)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

/// What whoever waits for a session is answered in this status; `None` is to wait on.
fn answer(status: &Status) -> Option<Result<Session>> {
    match status.state {
        ConnectionState::Connected(_) => status.session.clone().filter(Session::is_valid).map(Ok),
        ConnectionState::Closed => Some(Err(Error::new(ErrorKind::Closed))),
        ConnectionState::Connecting | ConnectionState::Suspended(_) | ConnectionState::Lost(_) => {
            // Of all failures this one does not go away by waiting.
            let fatal = |error: &Error| error.kind() == ErrorKind::AuthFailed;
            status.failure.clone().filter(fatal).map(Err)
        }
    }
}

/// A reserved place among the nodes whose deletion the client owes; freed when dropped.
#[derive(Debug)]
#[must_use = "the place is free again when this is dropped"]
pub struct CleanupPlace(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);
