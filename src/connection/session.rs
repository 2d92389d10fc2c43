//! A session one can trust: operations bound to its epoch, and a liveness that is never
//! optimistic.
//!
//! Every operation is one attempt in this one session. It is sent when it is called, in the order
//! of the calls, whether or not its future is ever polled; two calls made back to back share one
//! round trip. The session ends for its holder *before* its end is sent to the server: first
//! [`Session::is_valid`] turns false and [`Session::lost`] resolves, then the session is closed.
//!
//! All requests run on the client's own thread. A caller that is blocked, dropped or gone changes
//! nothing for the session.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::call::{Call, Reply};
use super::clock;
use super::link::{OneShot, Wire};
use super::liveness::{Liveness, LostReason, SessionLost};
use super::state::SessionEpoch;
use super::watch::Watch;
use super::watch_budget::WatchBudget;
use crate::error::{Error, ErrorKind, Result};
use crate::node::{Acl, CreateMode, Created, Stat};
use crate::operation::{NewNode, Operation, OperationResult};
use crate::path::{self, Root};

/// One request on its way to the manager, which makes it on the client's thread.
pub(super) type Request = Box<dyn FnOnce(Wire) -> RequestFuture + Send>;
pub(super) type RequestFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What the handles of one session share. It holds the link by its queue of requests only: the
/// link itself belongs to the manager, so that no stray handle keeps a lost session alive.
pub(super) struct Shared {
    pub(super) id: i64,
    pub(super) timeout: Duration,
    pub(super) liveness: Arc<Liveness>,
    pub(super) requests: mpsc::UnboundedSender<Request>,
    pub(super) watches: Arc<WatchBudget>,
    pub(super) default_acl: Arc<[Acl]>,
}

/// A handle of one session of a [`Client`](crate::Client).
///
/// It speaks of this session and no other: once the session is lost, every operation fails with
/// [`ErrorKind::SessionLost`], and the client goes on with a new session and a new epoch.
/// Cheap to clone; does not keep the session alive.
///
/// Each operation is one attempt. It is sent when it is called, in the order of calls, whether or
/// not the returned [`Call`] is polled, and dropping the `Call` does not take it back. While the
/// connection is down the request waits for the session's next connection.
#[derive(Clone)]
pub struct Session {
    shared: Arc<Shared>,
    root: Root,
}

impl Session {
    pub(super) fn new(shared: Shared, root: Root) -> Self {
        Self { shared: Arc::new(shared), root }
    }

    pub(super) fn liveness(&self) -> &Arc<Liveness> {
        &self.shared.liveness
    }

    /// The same session, its paths under another root.
    pub(crate) fn rooted(&self, root: Root) -> Self {
        Self { shared: Arc::clone(&self.shared), root }
    }

    /// The epoch: 1 for the first session of a client, one more for each later one.
    pub fn epoch(&self) -> SessionEpoch {
        self.shared.liveness.epoch()
    }

    /// The session's id on the server; ephemeral nodes carry it as
    /// [`Stat::ephemeral_owner`].
    pub fn id(&self) -> i64 {
        self.shared.id
    }

    /// The session timeout that the server granted.
    pub fn timeout(&self) -> Duration {
        self.shared.timeout
    }

    /// Whether the server is known to keep the session at this very moment.
    ///
    /// Reads a clock that also runs while the machine is suspended and sends nothing. Once false
    /// it stays false.
    pub fn is_valid(&self) -> bool {
        self.shared.liveness.is_valid()
    }

    /// Why the session is over; `None` while it is [valid](Self::is_valid).
    pub fn lost_reason(&self) -> Option<LostReason> {
        self.shared.liveness.lost_reason()
    }

    /// Resolves, with the reason, once the session is over for this client.
    ///
    /// # Cancel safety
    /// Can be dropped and asked for again at any time. Each poll looks at the clock first, so
    /// that a process that was stopped for too long learns it at its next poll.
    pub fn lost(&self) -> SessionLost {
        self.shared.liveness.lost()
    }

    /// The error of whatever is asked of this session after its end: `SessionLost`, or `Closed`.
    pub fn over(&self) -> Error {
        self.shared.liveness.over()
    }

    /// Creates a node. `acl` may be a list of entries or a shared one.
    ///
    /// # Errors
    /// `NodeExists`, `NoNode` (the parent is missing), `NoChildrenForEphemerals`, `NoAuth`,
    /// `InvalidAcl`, and what every operation can meet: `ConnectionLost`, `SessionLost`.
    pub fn create(
        &self,
        path: &str,
        data: &[u8],
        mode: CreateMode,
        acl: impl Into<Arc<[Acl]>>,
    ) -> Call<Created> {
        let check = path::validate_new(path, mode);
        let new = NewNode { data: data.to_vec(), mode, acl: acl.into() };
        let root = self.root.clone();
        self.call(path, check, Effect::Confirming, |wire, full| async move {
            let mut created = wire.create(full, new).await?;
            strip(&root, &mut created.path);
            Ok(created)
        })
    }

    /// Deletes a node, where `version` is given only if it has that version.
    ///
    /// # Errors
    /// `NoNode`, `BadVersion`, `NotEmpty`, `NoAuth` (the parent does not permit to delete
    /// children), and what every operation can meet: `ConnectionLost`, `SessionLost`.
    pub fn delete(&self, path: &str, version: Option<i32>) -> Call<()> {
        let check = path::validate(path);
        self.call(path, check, Effect::Confirming, move |wire, full| wire.delete(full, version))
    }

    /// What the server knows of a node, `None` if it does not exist.
    ///
    /// # Errors
    /// What every operation can meet: `ConnectionLost`, `SessionLost`.
    pub fn exists(&self, path: &str) -> Call<Option<Stat>> {
        let check = path::validate(path);
        self.call(path, check, Effect::Reading, Wire::exists)
    }

    /// As [`exists`](Self::exists), with a watch that fires when the node is created, changed or
    /// deleted.
    ///
    /// # Errors
    /// As [`exists`](Self::exists).
    pub fn watch_exists(&self, path: &str) -> Call<(Option<Stat>, Watch)> {
        let check = path::validate(path);
        self.watching(path, check, Wire::watch_exists)
    }

    /// A node's data.
    ///
    /// # Errors
    /// `NoNode`, `NoAuth`, `ConnectionLost`, `SessionLost`.
    pub fn get_data(&self, path: &str) -> Call<(Vec<u8>, Stat)> {
        let check = path::validate(path);
        self.call(path, check, Effect::Reading, Wire::get_data)
    }

    /// As [`get_data`](Self::get_data), with a watch that fires when the node is changed or
    /// deleted. No watch stays on a node that does not exist.
    ///
    /// # Errors
    /// As [`get_data`](Self::get_data).
    pub fn watch_data(&self, path: &str) -> Call<((Vec<u8>, Stat), Watch)> {
        let check = path::validate(path);
        self.watching(path, check, Wire::watch_data)
    }

    /// Sets a node's data, where `version` is given only if it has that version.
    ///
    /// # Errors
    /// `NoNode`, `BadVersion`, `NoAuth`, `ConnectionLost`, `SessionLost`.
    pub fn set_data(&self, path: &str, data: &[u8], version: Option<i32>) -> Call<Stat> {
        let (check, data) = (path::validate(path), data.to_vec());
        self.call(path, check, Effect::Confirming, move |wire, full| {
            wire.set_data(full, data, version)
        })
    }

    /// The names of a node's children, in no order.
    ///
    /// # Errors
    /// `NoNode`, `NoAuth`, `ConnectionLost`, `SessionLost`.
    pub fn get_children(&self, path: &str) -> Call<(Vec<String>, Stat)> {
        let check = path::validate(path);
        self.call(path, check, Effect::Reading, Wire::get_children)
    }

    /// As [`get_children`](Self::get_children), with a watch that fires when a child is created
    /// or deleted, or the node itself is deleted.
    ///
    /// # Errors
    /// As [`get_children`](Self::get_children).
    pub fn watch_children(&self, path: &str) -> Call<((Vec<String>, Stat), Watch)> {
        let check = path::validate(path);
        self.watching(path, check, Wire::watch_children)
    }

    /// Waits until the server we are connected to has caught up with the leader: what was
    /// committed before this call is seen by reads that are sent after it.
    ///
    /// # Errors
    /// `ConnectionLost`, `SessionLost`.
    pub fn sync(&self, path: &str) -> Call<()> {
        let check = path::validate(path);
        self.call(path, check, Effect::Confirming, Wire::sync)
    }

    /// The access control list of nodes that are created without one of their own.
    pub(crate) fn default_acl(&self) -> &Arc<[Acl]> {
        &self.shared.default_acl
    }

    /// Carries out all of the operations or none; a refusal comes with the index of the operation.
    pub(crate) fn transact(
        &self,
        mut operations: Vec<Operation>,
    ) -> Call<Result<Vec<OperationResult>, (Error, usize)>> {
        for operation in &mut operations {
            let path = operation.path_mut();
            *path = self.root.full(path);
        }
        let root = self.root.clone();
        self.call("/", Ok(()), Effect::Confirming, |wire, _| async move {
            match wire.transaction(operations).await {
                Ok(mut results) => {
                    for result in &mut results {
                        if let OperationResult::Created { path, .. } = result {
                            strip(&root, path);
                        }
                    }
                    Ok(Ok(results))
                }
                Err((error, Some(index))) => Ok(Err((error, index))),
                Err((error, None)) => Err(error),
            }
        })
    }

    fn watching<T, F, Fut>(&self, path: &str, check: Result<()>, read: F) -> Call<(T, Watch)>
    where
        T: Send + 'static,
        F: FnOnce(Wire, String) -> Fut + Send + 'static,
        Fut: Future<Output = Result<(T, OneShot)>> + Send + 'static,
    {
        let liveness = Arc::clone(&self.shared.liveness);
        let place = check.and_then(|()| self.shared.watches.reserve(&self.root.full(path)));
        let (check, place) = match place {
            Ok(place) => (Ok(()), Some(place)),
            Err(error) => (Err(error), None),
        };
        self.call(path, check, Effect::Reading, move |wire, full| {
            let read = read(wire, full);
            async move {
                let (value, one_shot) = read.await?;
                Ok((value, Watch::new(one_shot, liveness, place)))
            }
        })
    }

    /// Queues one request. The order of calls is the order on the wire: there is one queue, and
    /// the manager starts what it takes from it in this order.
    fn call<T, F, Fut>(&self, path: &str, check: Result<()>, effect: Effect, make: F) -> Call<T>
    where
        T: Send + 'static,
        F: FnOnce(Wire, String) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T>> + Send + 'static,
    {
        let liveness = &self.shared.liveness;
        let (mut reply, call) = Reply::new(Arc::clone(liveness), path);
        if let Err(error) = check {
            reply.send(Err(error));
            return call;
        }
        let full = self.root.full(path);
        let confirming = match effect {
            Effect::Confirming => Some((Arc::clone(liveness), clock::now())),
            Effect::Reading => None,
        };
        let request: Request = Box::new(move |wire| {
            Box::pin(async move {
                reply.sending();
                let result = make(wire, full).await;
                if let Some((liveness, sent)) = confirming.filter(|_| is_leaders_answer(&result)) {
                    liveness.confirmed(sent);
                }
                reply.send(result);
            })
        });
        // Once the manager has let go of the session the request is dropped, and its reply with
        // it says so.
        let _ = self.shared.requests.send(request);
        call
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("epoch", &self.epoch())
            .field("id", &format_args!("{:#x}", self.shared.id))
            .field("is_valid", &self.is_valid())
            .finish_non_exhaustive()
    }
}

/// Whether the answer of a request proves that the server we are connected to reached the leader.
#[derive(Clone, Copy, Debug)]
enum Effect {
    Confirming,
    Reading,
}

/// Whether a result can only have come from the leader. A refusal that a follower, or this
/// process, may have made by itself proves nothing.
fn is_leaders_answer<T>(result: &Result<T>) -> bool {
    match result {
        Ok(_) => true,
        Err(error) => matches!(
            error.kind(),
            ErrorKind::NoNode
                | ErrorKind::NodeExists
                | ErrorKind::BadVersion
                | ErrorKind::NotEmpty
                | ErrorKind::NoChildrenForEphemerals
        ),
    }
}

/// Turns a path of the server into one below the root.
fn strip(root: &Root, path: &mut String) {
    if let Some(logical) = root.logical(path) {
        *path = logical.to_owned();
    }
}
