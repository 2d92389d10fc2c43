//! The client: a connection to an ensemble that outlives its sessions.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;

use crate::connection::{
    self, Call, CleanupPlace, CloseOutcome, Connection, ConnectionState, ListenerId, Pause, Scope,
    Session, StateChange, StateWatch, Watch, WeakConnection,
};
use crate::create::{Create, SeenContainers};
use crate::delete::Delete;
use crate::error::Result;
use crate::node::{Acl, Stat};
use crate::path::{self, Root};
use crate::retry::{Repeat, RetryPolicy, run};
use crate::transaction::Transaction;

/// A client of a ZooKeeper ensemble; cheap to clone, all clones are one client.
///
/// It keeps connected by itself: when the connection goes it connects again, when the session is
/// lost it starts a new one, and it never gives up before it is closed. Everything runs on a thread
/// of its own; it may be used from any task of any runtime.
///
/// The operations wait for a connection, at most the [connection
/// timeout](crate::ClientBuilder::connection_timeout) a call, and are tried again by the [retry
/// policy](crate::ClientBuilder::retry_policy). What may have been carried out already is never
/// repeated, unless that is harmless.
///
/// Paths are absolute and lie below the chroot of the connect string.
///
/// # Cancel safety
/// Dropping the future of an operation does not take back a request that was sent.
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use zookeeper_framework::{Client, CreateMode, ExponentialBackoff};
///
/// # async fn example() -> zookeeper_framework::Result<()> {
/// let client = Client::builder("zk1:2181,zk2:2181,zk3:2181/billing")
///     .session_timeout(Duration::from_secs(15))
///     .retry_policy(ExponentialBackoff::new(Duration::from_millis(100)).max_retries(8))
///     .connect()
///     .await?;
///
/// client.create("/workers/w1").mode(CreateMode::Ephemeral).with_parents().await?;
/// let (workers, _) = client.get_children("/workers").await?;
/// assert_eq!(workers, ["w1"]);
/// client.close().await;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "CuratorFramework")]
#[doc(alias = "CuratorZookeeperClient")]
#[derive(Clone)]
pub struct Client {
    scope: Scope,
}

impl Client {
    pub(crate) fn new(scope: Scope) -> Self {
        Self { scope }
    }

    /// The state of the connection now.
    pub fn state(&self) -> ConnectionState {
        self.connection().state()
    }

    /// Follows the state of the connection from now on.
    pub fn watch_state(&self) -> StateWatch {
        self.connection().watch_state()
    }

    /// Adds a listener, which is told every change of state from now on, as long as the client has
    /// a handle; see [`ConnectionStateListener`].
    ///
    /// # Errors
    /// `Closed`; `Unexpected` if no thread can be started for it.
    pub fn add_listener(&self, listener: impl ConnectionStateListener) -> Result<ListenerId> {
        let listener = Arc::new(listener);
        let client = self.downgrade();
        self.connection().add_listener(Box::new(move |change| {
            let (listener, client) = (Arc::clone(&listener), client.clone());
            Box::pin(async move {
                // Once the last handle is gone there is nobody left to be told.
                if let Some(client) = client.upgrade() {
                    listener.state_changed(&client, change).await;
                }
            })
        }))
    }

    /// Removes a listener; whether it was there. It may still be at work on the last change it was
    /// told, and is told no other.
    pub fn remove_listener(&self, id: ListenerId) -> bool {
        self.connection().remove_listener(id)
    }

    /// The current session, where there is one: while the state is `Connected` or `Suspended`.
    pub fn session(&self) -> Option<Session> {
        self.scope.session()
    }

    /// Waits for a connection, at most for `timeout` (`Duration::MAX` is for ever), and gives its
    /// session.
    ///
    /// # Errors
    /// `NotConnected` after the timeout, with the reason; `AuthFailed` as soon as the server has
    /// refused the credentials; `Closed`.
    ///
    /// # Cancel safety
    /// Changes nothing when dropped.
    #[doc(alias = "blockUntilConnected")]
    pub async fn wait_connected(&self, timeout: Duration) -> Result<Session> {
        self.scope.session_until(Instant::now().checked_add(timeout)).await
    }

    /// As [`wait_connected`](Self::wait_connected), until a point in time; `None` is for ever.
    ///
    /// # Errors
    /// As [`wait_connected`](Self::wait_connected).
    pub async fn session_until(&self, deadline: Option<Instant>) -> Result<Session> {
        self.scope.session_until(deadline).await
    }

    /// Creates a node when awaited; see [`Create`] for data, mode, parents and protection.
    ///
    /// # Errors
    /// `InvalidArgument` for a bad path, `NodeExists`, `NoNode` if the parent is missing,
    /// `NoChildrenForEphemerals`, `NoAuth`, `InvalidAcl`, and those of every operation:
    /// `NotConnected`, `ConnectionLost`, `SessionLost`, `Closed`.
    pub fn create(&self, path: &str) -> Create {
        Create::new(self.scope.clone(), path)
    }

    /// Deletes a node when awaited; see [`Delete`] for versions and guarantees.
    ///
    /// # Errors
    /// `InvalidArgument`, `NoNode`, `NotEmpty`, `BadVersion`, `NoAuth`, and those of every
    /// operation.
    pub fn delete(&self, path: &str) -> Delete {
        Delete::new(self.scope.clone(), path)
    }

    /// What the server knows of a node, `None` if it does not exist.
    ///
    /// # Errors
    /// `InvalidArgument`, and those of every operation.
    #[doc(alias = "checkExists")]
    pub async fn exists(&self, path: &str) -> Result<Option<Stat>> {
        self.read(path, Session::exists).await
    }

    /// As [`exists`](Self::exists), with a watch that fires when the node is created, changed or
    /// deleted.
    ///
    /// # Errors
    /// As [`exists`](Self::exists).
    pub async fn watch_exists(&self, path: &str) -> Result<(Option<Stat>, Watch)> {
        self.read(path, Session::watch_exists).await
    }

    /// A node's data.
    ///
    /// # Errors
    /// `InvalidArgument`, `NoNode`, `NoAuth`, and those of every operation.
    pub async fn get_data(&self, path: &str) -> Result<(Vec<u8>, Stat)> {
        self.read(path, Session::get_data).await
    }

    /// As [`get_data`](Self::get_data), with a watch that fires when the node is changed or
    /// deleted.
    ///
    /// # Errors
    /// As [`get_data`](Self::get_data).
    pub async fn watch_data(&self, path: &str) -> Result<((Vec<u8>, Stat), Watch)> {
        self.read(path, Session::watch_data).await
    }

    /// Sets a node's data, where `version` is given only if it has that version.
    ///
    /// # Errors
    /// `InvalidArgument`, `NoNode`, `BadVersion`, `NoAuth`, and those of every operation.
    pub async fn set_data(
        &self,
        path: &str,
        data: impl AsRef<[u8]>,
        version: Option<i32>,
    ) -> Result<Stat> {
        path::validate(path)?;
        let data = data.as_ref();
        run(&self.scope, Repeat::IfNotApplied, |session| session.set_data(path, data, version))
            .await
    }

    /// The names of a node's children, in no order.
    ///
    /// # Errors
    /// `InvalidArgument`, `NoNode`, `NoAuth`, and those of every operation.
    pub async fn get_children(&self, path: &str) -> Result<(Vec<String>, Stat)> {
        self.read(path, Session::get_children).await
    }

    /// As [`get_children`](Self::get_children), with a watch that fires when a child is created or
    /// deleted, or the node itself is deleted.
    ///
    /// # Errors
    /// As [`get_children`](Self::get_children).
    pub async fn watch_children(&self, path: &str) -> Result<((Vec<String>, Stat), Watch)> {
        self.read(path, Session::watch_children).await
    }

    /// Waits until the server we are connected to has caught up with the leader: what was
    /// committed before this call is seen by reads after it.
    ///
    /// # Errors
    /// `InvalidArgument`, and those of every operation.
    pub async fn sync(&self, path: &str) -> Result<()> {
        self.read(path, Session::sync).await
    }

    /// Starts a transaction.
    pub fn transaction(&self) -> Transaction {
        Transaction::of_client(self.scope.clone())
    }

    /// Closes the session and ends the client.
    ///
    /// Whoever waits for this client, in any operation or recipe, is woken with `Closed`; all
    /// ephemeral nodes go with the session. A second `close` of any clone changes nothing.
    ///
    /// Waits for the server's answer, at most the connection timeout.
    ///
    /// # Cancel safety
    /// Once polled, the client ends even if this is dropped; so it does when the last clone is
    /// dropped.
    pub async fn close(&self) -> CloseOutcome {
        self.connection().close().await
    }

    async fn read<T>(&self, path: &str, read: fn(&Session, &str) -> Call<T>) -> Result<T> {
        path::validate(path)?;
        run(&self.scope, Repeat::Always, |session| read(&session, path)).await
    }

    fn connection(&self) -> &Connection {
        self.scope.connection()
    }

    /// A handle that does not keep the client alive.
    pub fn downgrade(&self) -> WeakClient {
        let root = self.scope.root().clone();
        WeakClient { connection: self.connection().downgrade(), root }
    }
}

/// What recipes are built on.
impl Client {
    /// The path of a node on the server, with the chroot before it.
    pub fn full_path(&self, path: &str) -> String {
        self.scope.root().full(path)
    }

    /// The retry policy that the client was built with.
    pub fn retry_policy(&self) -> &Arc<dyn RetryPolicy> {
        &self.scope.config().retry_policy
    }

    /// The connection timeout that the client was built with.
    pub fn connection_timeout(&self) -> Duration {
        self.scope.config().connection_timeout
    }

    /// The data that the builder was given for nodes that are created without data of their own.
    pub fn node_data(&self) -> Option<&Arc<[u8]>> {
        self.scope.config().node_data.as_ref()
    }

    /// The access control list that the client's nodes have where nothing else is said.
    pub fn default_acl(&self) -> &Arc<[Acl]> {
        &self.scope.config().default_acl
    }

    /// Sends, in `session`, a create for each ancestor of `path` that this client has not made
    /// before, as a container. No answer is looked at: what is wrong shows when the node itself is
    /// created behind them.
    pub fn create_containers(&self, session: &Session, path: &str) {
        SeenContainers::create(&self.scope, session, path);
    }

    /// Tells that an ancestor of `path` was found missing (the server deletes containers that
    /// have become empty), so that [`create_containers`](Self::create_containers) makes them again.
    pub fn forget_containers(&self, path: &str) {
        SeenContainers::forget(&self.scope, path);
    }

    /// Runs a future on the client's own thread, where it outlives its caller. It is dropped,
    /// wherever it is, when the client ends.
    ///
    /// It must not block: the session is kept alive on the same thread.
    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.connection().spawn(future);
    }

    /// Resolves after `duration`, or when the client ends; needs no runtime of the caller's.
    pub fn pause(&self, duration: Duration) -> Pause {
        self.scope.pause(duration)
    }

    /// Awaits a future until `deadline` (`None` is for ever); `None` if it was not ready by then.
    /// It is polled once even where the deadline has passed. Needs no runtime of the caller's.
    pub async fn within<T>(
        &self,
        deadline: Option<Instant>,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        connection::within(self.connection().runtime(), deadline, future).await
    }

    /// Reserves a place for a node whose deletion will be owed, before the node is created.
    ///
    /// # Errors
    /// `CleanupFull` when too many deletions are owed already.
    pub fn reserve_cleanup(&self) -> Result<CleanupPlace> {
        self.connection().reserve_cleanup()
    }

    /// State that all users of this client share: one value of each type, made at its first use
    /// and dropped with the client. It must not hold the client itself.
    pub fn slot<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        self.connection().slot()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("connection", self.connection())
            .field("root", self.scope.root())
            .finish()
    }
}

/// A handle of a [`Client`] that does not keep it alive.
#[derive(Clone, Debug)]
pub struct WeakClient {
    connection: WeakConnection,
    root: Root,
}

impl WeakClient {
    /// The client, unless its last handle has been dropped.
    pub fn upgrade(&self) -> Option<Client> {
        Some(Client::new(Scope::new(self.connection.upgrade()?, self.root.clone())))
    }
}

/// Is told how the connection of a client changes.
///
/// The changes come in order, one at a time. Each listener has a thread of its own, so it may
/// block, take its time or panic without disturbing anything, and may use the client in any way,
/// `close` included. The thread's own runtime runs only while the listener does: what it spawns
/// there waits for the next change. A listener that is far behind is told several changes of one
/// session as one; it never misses that a session ended, since each state carries its epoch.
///
/// Whoever needs to know whether a *lock* is still held should ask its guard, not a listener.
///
/// # Examples
///
/// ```
/// use zookeeper_framework::{
///     Client, ConnectionState, ConnectionStateListener, StateChange, async_trait,
/// };
///
/// struct Alarm;
///
/// #[async_trait]
/// impl ConnectionStateListener for Alarm {
///     async fn state_changed(&self, _client: &Client, change: StateChange) {
///         if let ConnectionState::Lost(epoch) = change.current {
///             eprintln!("session {epoch} is lost");
///         }
///     }
/// }
/// ```
#[async_trait]
pub trait ConnectionStateListener: Send + Sync + 'static {
    /// The state changed.
    async fn state_changed(&self, client: &Client, change: StateChange);
}
