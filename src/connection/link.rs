//! The wire: the only file that names the crate `zookeeper-client`.
//!
//! A [`Link`] is one session of that crate. Numbers such as "fact 0.3" in comments point to what
//! was verified of it and is listed in `docs/decisions/wire-client.md`.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use zookeeper_client as zk;

use crate::error::{Error, ErrorKind, Outcome, Result};
use crate::node::{Acl, CreateMode, Created, Stat};
use crate::operation::{NewNode, Operation, OperationResult};

/// How to reach the ensemble and who we are.
pub(crate) struct Target<'a> {
    pub(crate) servers: &'a str,
    pub(crate) session_timeout: Duration,
    pub(crate) auth: &'a [(String, Vec<u8>)],
}

/// What the wire crate says of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkState {
    Up,
    Down,
    Over,
}

/// What is known of the session of a client that was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CloseOutcome {
    /// The server has ended the session, with all its ephemeral nodes, or there was none yet.
    Confirmed,
    /// The server did not answer within the connection timeout, or the session was lost before. The
    /// server ends it, with all its ephemeral nodes, when the session timeout has passed.
    Unconfirmed,
}

/// One session on the wire. Dropping it closes the session; it lives only in the manager, so
/// that nothing else can keep a session alive that was given up.
pub(crate) struct Link {
    client: Arc<zk::Client>,
    watcher: zk::StateWatcher,
    /// What the wire crate runs for the session.
    tasks: Vec<AbortHandle>,
}

impl Link {
    /// Asks each server once, in random order.
    pub(crate) async fn connect(target: Target<'_>) -> Result<Self> {
        let mut connector = zk::Client::connector()
            .with_session_timeout(target.session_timeout)
            .with_fail_eagerly();
        for (scheme, credentials) in target.auth {
            connector = connector.with_auth(scheme, credentials);
        }
        let tasks = Tasks::default();
        let mut connecting = pin!(connector.connect(target.servers));
        let connected = poll_fn(|cx| {
            let _scope = spawns_core::enter(&tasks);
            connecting.as_mut().poll(cx)
        });
        let client = connected.await.map_err(not_connected)?;
        let watcher = client.state_watcher();
        Ok(Self { client: Arc::new(client), watcher, tasks: tasks.0.into_inner() })
    }

    pub(crate) fn session_id(&self) -> i64 {
        self.client.session_id().0
    }

    /// The timeout that the server granted.
    pub(crate) fn session_timeout(&self) -> Duration {
        self.client.session_timeout()
    }

    pub(crate) fn state(&self) -> LinkState {
        link_state(self.client.state())
    }

    /// The next state; two changes in a row may come as one (`Up` after `Up` hides a `Down`).
    ///
    /// # Cancel safety
    /// Loses nothing when dropped.
    pub(crate) async fn changed(&mut self) -> LinkState {
        link_state(self.watcher.changed().await)
    }

    pub(crate) fn wire(&self) -> Wire {
        Wire(Arc::clone(&self.client))
    }

    /// Ends the session and waits for the server to confirm it.
    pub(crate) async fn close(self) -> CloseOutcome {
        let Self { client, mut watcher, .. } = self;
        drop(client);
        loop {
            match watcher.changed().await {
                zk::SessionState::Closed => return CloseOutcome::Confirmed,
                // Nobody answered: the wire crate gave up by its own clock.
                zk::SessionState::Expired | zk::SessionState::AuthFailed => {
                    return CloseOutcome::Unconfirmed;
                }
                zk::SessionState::Disconnected
                | zk::SessionState::SyncConnected
                | zk::SessionState::ConnectedReadOnly => {}
            }
        }
    }
}

impl Link {
    /// Gives the session up. It is closed, if that can be done soon.
    ///
    /// Left to itself the wire crate would go on to reconnect, long after we have called the
    /// session lost; and a server that hears it, though we do not hear the server, would keep the
    /// session and its nodes for another timeout each time.
    pub(crate) fn give_up(self) {
        let grace = self.session_timeout() / 8;
        let Self { client, tasks, .. } = self;
        drop(client);
        tokio::spawn(async move {
            tokio::time::sleep(grace).await;
            tasks.iter().for_each(AbortHandle::abort);
        });
    }
}

/// Starts what the wire crate spawns, and keeps the means to end it.
#[derive(Default)]
struct Tasks(RefCell<Vec<AbortHandle>>);

impl spawns_core::Spawn for Tasks {
    fn spawn(&self, task: spawns_core::Task) {
        let task = tokio::spawn(Box::into_pin(task.future));
        self.0.borrow_mut().push(task.abort_handle());
    }
}

fn link_state(state: zk::SessionState) -> LinkState {
    match state {
        zk::SessionState::SyncConnected | zk::SessionState::ConnectedReadOnly => LinkState::Up,
        zk::SessionState::Disconnected => LinkState::Down,
        zk::SessionState::AuthFailed | zk::SessionState::Expired | zk::SessionState::Closed => {
            LinkState::Over
        }
    }
}

/// The operations of a session, one attempt each. Each sends its request at its first poll.
///
/// Paths are full paths of the server.
pub(crate) struct Wire(Arc<zk::Client>);

impl Wire {
    pub(crate) async fn create(self, path: String, new: NewNode) -> Result<Created> {
        let acls = wire_acls(&new.acl);
        let options = wire_mode(new.mode).with_acls(zk::Acls::new(&acls));
        let (stat, sequence) =
            self.0.create(&path, &new.data, &options).await.map_err(translate)?;
        if new.mode.is_sequential() {
            let path = format!("{path}{sequence}");
            Ok(Created { path, sequence: Some(sequence.into_i64()), stat: stat.into() })
        } else {
            Ok(Created { path, sequence: None, stat: stat.into() })
        }
    }

    pub(crate) async fn delete(self, path: String, version: Option<i32>) -> Result<()> {
        self.0.delete(&path, version).await.map_err(translate)
    }

    pub(crate) async fn exists(self, path: String) -> Result<Option<Stat>> {
        Ok(self.0.check_stat(&path).await.map_err(translate)?.map(Stat::from))
    }

    pub(crate) async fn watch_exists(self, path: String) -> Result<(Option<Stat>, OneShot)> {
        let (stat, watcher) = self.0.check_and_watch_stat(&path).await.map_err(translate)?;
        Ok((stat.map(Stat::from), OneShot(watcher)))
    }

    pub(crate) async fn get_data(self, path: String) -> Result<(Vec<u8>, Stat)> {
        let (data, stat) = self.0.get_data(&path).await.map_err(translate)?;
        Ok((data, stat.into()))
    }

    pub(crate) async fn watch_data(self, path: String) -> Result<((Vec<u8>, Stat), OneShot)> {
        let (data, stat, watcher) = self.0.get_and_watch_data(&path).await.map_err(translate)?;
        Ok(((data, stat.into()), OneShot(watcher)))
    }

    pub(crate) async fn set_data(
        self,
        path: String,
        data: Vec<u8>,
        version: Option<i32>,
    ) -> Result<Stat> {
        Ok(self.0.set_data(&path, &data, version).await.map_err(translate)?.into())
    }

    pub(crate) async fn get_children(self, path: String) -> Result<(Vec<String>, Stat)> {
        let (children, stat) = self.0.get_children(&path).await.map_err(translate)?;
        Ok((children, stat.into()))
    }

    pub(crate) async fn watch_children(
        self,
        path: String,
    ) -> Result<((Vec<String>, Stat), OneShot)> {
        let (children, stat, watcher) =
            self.0.get_and_watch_children(&path).await.map_err(translate)?;
        Ok(((children, stat.into()), OneShot(watcher)))
    }

    pub(crate) async fn sync(self, path: String) -> Result<()> {
        self.0.sync(&path).await.map_err(translate)
    }

    /// Carries out all operations or none. The index of a refused operation comes with an answer of
    /// the leader only: what is refused here was not sent, and proves nothing of the session.
    pub(crate) async fn transaction(
        self,
        operations: Vec<Operation>,
    ) -> Result<Vec<OperationResult>, (Error, Option<usize>)> {
        let mut writer = self.0.new_multi_writer();
        for (index, operation) in operations.iter().enumerate() {
            add_operation(&mut writer, operation).map_err(|error| {
                let error = translate(error);
                let reason = error.detail().unwrap_or_default();
                let detail = format!("operation {index} of the transaction: {reason}");
                (error.with_detail(detail).with_path(operation.path()), None)
            })?;
        }
        match writer.commit().await {
            Ok(results) => results
                .into_iter()
                .map(operation_result)
                .collect::<Result<_>>()
                .map_err(|e| (e, None)),
            Err(zk::MultiWriteError::RequestFailed { source }) => Err((translate(source), None)),
            Err(zk::MultiWriteError::OperationFailed { index, source }) => {
                Err((translate(source), Some(index)))
            }
        }
    }
}

fn add_operation(writer: &mut zk::MultiWriter<'_>, operation: &Operation) -> Result<(), zk::Error> {
    match operation {
        Operation::Check { path, version } => {
            // The server takes −1 as "any version": the check is then that the node exists.
            writer.add_check_version(path, version.unwrap_or(-1))
        }
        Operation::Create { path, new } => {
            let acls = wire_acls(&new.acl);
            let options = wire_mode(new.mode).with_acls(zk::Acls::new(&acls));
            writer.add_create(path, &new.data, &options)
        }
        Operation::SetData { path, data, version } => writer.add_set_data(path, data, *version),
        Operation::Delete { path, version } => writer.add_delete(path, *version),
    }
}

fn operation_result(result: zk::MultiWriteResult) -> Result<OperationResult> {
    match result {
        zk::MultiWriteResult::Check => Ok(OperationResult::Checked),
        // Servers before 3.9 answer a create inside a transaction without its Stat.
        zk::MultiWriteResult::Create { path, stat } => {
            let stat = (!stat.is_invalid()).then(|| stat.into());
            Ok(OperationResult::Created { path, stat })
        }
        zk::MultiWriteResult::SetData { stat } => Ok(OperationResult::DataSet(stat.into())),
        zk::MultiWriteResult::Delete => Ok(OperationResult::Deleted),
        other => Err(Error::new(ErrorKind::Unexpected).with_detail(format!("{other:?}"))),
    }
}

impl From<zk::Stat> for Stat {
    fn from(stat: zk::Stat) -> Self {
        Self {
            czxid: stat.czxid,
            mzxid: stat.mzxid,
            pzxid: stat.pzxid,
            ctime: stat.ctime,
            mtime: stat.mtime,
            version: stat.version,
            cversion: stat.cversion,
            aversion: stat.aversion,
            ephemeral_owner: stat.ephemeral_owner,
            data_length: stat.data_length,
            num_children: stat.num_children,
        }
    }
}

fn wire_mode(mode: CreateMode) -> zk::CreateMode {
    match mode {
        CreateMode::Persistent => zk::CreateMode::Persistent,
        CreateMode::PersistentSequential => zk::CreateMode::PersistentSequential,
        CreateMode::Ephemeral => zk::CreateMode::Ephemeral,
        CreateMode::EphemeralSequential => zk::CreateMode::EphemeralSequential,
        CreateMode::Container => zk::CreateMode::Container,
    }
}

fn wire_acls(acl: &[Acl]) -> Vec<zk::Acl> {
    acl.iter().map(wire_acl).collect()
}

fn wire_acl(acl: &Acl) -> zk::Acl {
    let bits = acl.permissions.bits();
    let all = [
        (1, zk::Permission::READ),
        (2, zk::Permission::WRITE),
        (4, zk::Permission::CREATE),
        (8, zk::Permission::DELETE),
        (16, zk::Permission::ADMIN),
    ];
    let permission = all
        .into_iter()
        .filter(|(bit, _)| bits & bit != 0)
        .fold(zk::Permission::NONE, |sum, (_, one)| sum | one);
    zk::Acl::new(permission, zk::AuthId::new(&acl.scheme, &acl.id))
}

/// A watch that fires once. Dropping it before takes it back from the server.
#[derive(Debug)]
pub(crate) struct OneShot(zk::OneshotWatcher);

/// What a watch saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fired {
    Created,
    Deleted,
    DataChanged,
    ChildrenChanged,
    SessionOver,
}

impl OneShot {
    pub(crate) async fn fired(self) -> Fired {
        match self.0.changed().await.event_type {
            zk::EventType::NodeCreated => Fired::Created,
            zk::EventType::NodeDeleted => Fired::Deleted,
            zk::EventType::NodeDataChanged => Fired::DataChanged,
            zk::EventType::NodeChildrenChanged => Fired::ChildrenChanged,
            zk::EventType::Session => Fired::SessionOver,
        }
    }
}

/// The reason why no session could be had.
#[expect(clippy::wildcard_enum_match_arm, reason = "the enum is another crate's, and grows")]
fn not_connected(error: zk::Error) -> Error {
    match error {
        zk::Error::AuthFailed => Error::new(ErrorKind::AuthFailed),
        other => Error::new(ErrorKind::NotConnected).with_detail(other.to_string()),
    }
}

/// The wire crate's error in our terms.
///
/// Only a refusal that the server surely made before it changed anything counts as not applied;
/// whatever else can be read here may have been carried out.
#[expect(clippy::wildcard_enum_match_arm, reason = "the enum is another crate's, and grows")]
fn translate(error: zk::Error) -> Error {
    let kind = match &error {
        zk::Error::NoNode => ErrorKind::NoNode,
        zk::Error::NoAuth => ErrorKind::NoAuth,
        zk::Error::BadVersion => ErrorKind::BadVersion,
        zk::Error::NoChildrenForEphemerals => ErrorKind::NoChildrenForEphemerals,
        zk::Error::NodeExists => ErrorKind::NodeExists,
        zk::Error::NotEmpty => ErrorKind::NotEmpty,
        zk::Error::InvalidAcl => ErrorKind::InvalidAcl,
        zk::Error::QuotaExceeded => ErrorKind::QuotaExceeded,
        zk::Error::Throttled => ErrorKind::Throttled,
        zk::Error::Unimplemented => ErrorKind::Unimplemented,
        zk::Error::BadArguments(_) => ErrorKind::InvalidArgument,
        // Fact 0.3: most lost connections arrive as `Custom`.
        zk::Error::ConnectionLoss | zk::Error::Custom(_) | zk::Error::UnmarshalError { .. } => {
            ErrorKind::ConnectionLost
        }
        // OperationTimeout and RequestTimeout, which the crate has no name for.
        zk::Error::UnexpectedErrorCode(-7 | -122) => ErrorKind::ConnectionLost,
        // A request that was still on its way through the server we have left.
        zk::Error::SessionMoved | zk::Error::NotReadOnly => {
            return Error::new(ErrorKind::ConnectionLost)
                .with_outcome(Outcome::NotApplied)
                .with_detail(error.to_string());
        }
        zk::Error::SessionExpired | zk::Error::ClientClosed | zk::Error::AuthFailed => {
            ErrorKind::SessionLost
        }
        _ => ErrorKind::Unexpected,
    };
    match (&error, kind) {
        (zk::Error::BadArguments(reason), _) => Error::new(kind).with_detail(**reason),
        (_, ErrorKind::ConnectionLost | ErrorKind::Unexpected) => {
            Error::new(kind).with_detail(error.to_string())
        }
        _ => Error::new(kind),
    }
}
