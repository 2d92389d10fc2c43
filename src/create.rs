//! Creating nodes: with their ancestors, and so that a lost reply leaves no second node.

use std::collections::HashSet;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

use crate::connection::{Scope, Session};
use crate::error::{Error, ErrorKind, Outcome, Result};
use crate::node::{Acl, CreateMode, Created, describe_process, protected_name};
use crate::path::{self, Root};
use crate::protection::Debt;
use crate::retry::{Doubt, Repeat, run};

/// How often a node is created anew because the server reaped its container in between. This holds
/// whatever the retry policy says: nothing went wrong.
const CONTAINER_TRIES: usize = 3;

/// Creates a node; made by [`Client::create`](crate::Client::create), sent when awaited.
#[derive(Clone, Debug)]
#[must_use = "nothing is created unless this is awaited"]
pub struct Create {
    scope: Scope,
    path: String,
    data: Arc<[u8]>,
    mode: CreateMode,
    acl: Arc<[Acl]>,
    ancestors: Ancestors,
    protection: Protection,
}

#[derive(Clone, Copy, Debug)]
enum Ancestors {
    MustExist,
    Containers,
}

#[derive(Clone, Copy, Debug)]
enum Protection {
    None,
    Uuid,
}

impl Create {
    pub(crate) fn new(scope: Scope, path: &str) -> Self {
        let config = scope.config();
        Self {
            data: config
                .node_data
                .clone()
                .unwrap_or_else(|| describe_process().into_bytes().into()),
            mode: CreateMode::Persistent,
            acl: Arc::clone(&config.default_acl),
            ancestors: Ancestors::MustExist,
            protection: Protection::None,
            path: path.to_owned(),
            scope,
        }
    }

    /// The node's data; by default the client's
    /// [`node_data`](crate::ClientBuilder::node_data).
    pub fn data(mut self, data: impl Into<Vec<u8>>) -> Self {
        self.data = data.into().into();
        self
    }

    /// How long the node lives and whether the server numbers it; by default
    /// [`CreateMode::Persistent`].
    pub fn mode(mut self, mode: CreateMode) -> Self {
        self.mode = mode;
        self
    }

    /// The node's access control list; by default the client's
    /// [`default_acl`](crate::ClientBuilder::default_acl).
    pub fn acl(mut self, acl: impl Into<Vec<Acl>>) -> Self {
        self.acl = acl.into().into();
        self
    }

    /// Creates the missing ancestors too, as containers with the client's default access control
    /// list and no data. The server deletes a container some time after its last child has gone.
    pub fn with_parents(mut self) -> Self {
        self.ancestors = Ancestors::Containers;
        self
    }

    /// Puts a uuid before the node's name (`_c_<uuid>-<name>`), by which the node is found again
    /// when the reply is lost.
    ///
    /// The call is then repeated safely: it leaves one node, or none. If it fails, or its future
    /// is dropped, a node that may have been created is deleted in the background.
    pub fn protected(mut self) -> Self {
        self.protection = Protection::Uuid;
        self
    }

    async fn run(self) -> Result<Created> {
        path::validate_new(&self.path, self.mode)?;
        match self.protection {
            Protection::None => {
                run(&self.scope, Repeat::IfNotApplied, |session| self.place(session, &self.path))
                    .await
            }
            Protection::Uuid => self.run_protected().await,
        }
    }

    async fn run_protected(&self) -> Result<Created> {
        let parent = path::parent(&self.path).unwrap_or("/");
        let name = path::name(&self.path);
        let mut debt: Option<Debt> = None;
        let doubt = &Doubt::default();
        let result = run(&self.scope, Repeat::Always, |session| {
            // A node of the session before goes with it, and must not be taken for ours.
            let fresh = debt.as_ref().is_none_or(|debt| {
                self.mode.is_ephemeral() && debt.session().epoch() != session.epoch()
            });
            if fresh {
                let path = path::join(parent, &protected_name(Uuid::new_v4(), name));
                debt = Debt::new(&self.scope, session.clone(), path, self.mode).ok();
                doubt.clear();
            }
            // In a later session a create of the one before may still be on its way.
            let proves =
                debt.as_ref().is_some_and(|debt| debt.session().epoch() == session.epoch());
            let path = debt.as_ref().map(|debt| debt.path().to_owned());
            async move {
                let Some(path) = path else { return Err(Error::new(ErrorKind::CleanupFull)) };
                if !fresh {
                    if let Some(found) = session.find_protected(&path, self.mode).await? {
                        return Ok(found);
                    }
                    if proves {
                        doubt.clear();
                    }
                }
                doubt.note(self.place(session, &path).await)
            }
        })
        .await;
        match (result, debt) {
            (Err(error), Some(_)) if doubt.is_there() => Err(error.with_outcome(Outcome::Unknown)),
            (settled, Some(debt)) => {
                debt.forgive();
                settled
            }
            (settled, None) => settled,
        }
    }

    /// One attempt in one session.
    async fn place(&self, session: Session, path: &str) -> Result<Created> {
        let create = || session.create(path, &self.data, self.mode, Arc::clone(&self.acl));
        let mut created = create().await;
        let mut tries = match self.ancestors {
            Ancestors::MustExist => 0,
            Ancestors::Containers => CONTAINER_TRIES,
        };
        while tries > 0 && is_no_node(&created) {
            tries -= 1;
            SeenContainers::forget(&self.scope, path);
            SeenContainers::create(&self.scope, &session, path);
            created = create().await;
        }
        created
    }
}

impl IntoFuture for Create {
    type Output = Result<Created>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

/// The ancestors, by their full paths, that this client has sent a create for.
///
/// They are not asked for again, until somebody finds that one of them is missing.
#[derive(Debug, Default)]
pub(crate) struct SeenContainers(Mutex<HashSet<String>>);

/// Beyond this many the memory begins anew; what is forgotten costs one request.
const MOST_SEEN: usize = 10_000;

impl SeenContainers {
    /// Sends a create for each ancestor of `path` not seen before, the chroot's nodes included, top
    /// down. The answers are not looked at: one that exists is what we want, and one that may not
    /// be created may exist all the same. Whatever is wrong shows in the answer of the node for
    /// whose sake this is done.
    pub(crate) fn create(scope: &Scope, session: &Session, path: &str) {
        let seen = scope.connection().slot::<Self>();
        let full = scope.root().full(path);
        let session = session.rooted(Root::server());
        for ancestor in path::ancestors(&full) {
            if seen.insert(ancestor) {
                let acl = Arc::clone(&scope.config().default_acl);
                drop(session.create(ancestor, &[], CreateMode::Container, acl));
            }
        }
    }

    /// One of the ancestors of `path` is missing.
    pub(crate) fn forget(scope: &Scope, path: &str) {
        let seen = scope.connection().slot::<Self>();
        let full = scope.root().full(path);
        let mut seen = seen.0.lock();
        for ancestor in path::ancestors(&full) {
            seen.remove(ancestor);
        }
    }

    fn insert(&self, ancestor: &str) -> bool {
        let mut seen = self.0.lock();
        if seen.contains(ancestor) {
            return false;
        }
        if seen.len() >= MOST_SEEN {
            seen.clear();
        }
        seen.insert(ancestor.to_owned())
    }
}

fn is_no_node<T>(result: &Result<T>) -> bool {
    result.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoNode)
}
