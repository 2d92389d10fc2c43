//! Nodes that carry a uuid in their names, so that they are found again after a lost reply.

use crate::connection::{CleanupPlace, Scope, Session};
use crate::delete::{Pauses, is_final};
use crate::error::{ErrorKind, Result};
use crate::node::{CreateMode, Created};
use crate::path;

impl Session {
    /// Looks for the node of a create whose outcome is unknown: `path` is the one that was sent,
    /// its name made by [`protected_name`](crate::protected_name). `None` proves that there is no
    /// such node, and that the create will not be carried out later either.
    ///
    /// A `sync` goes before the list, since the server we are attached to now may not have heard of
    /// the node yet. Only a node of this session counts where `mode` is ephemeral.
    ///
    /// # Errors
    /// `NoAuth`, `ConnectionLost`, `SessionLost`.
    pub async fn find_protected(&self, path: &str, mode: CreateMode) -> Result<Option<Created>> {
        let (parent, prefix) = (path::parent(path).unwrap_or("/"), path::name(path));
        let (synced, listed) = (self.sync(parent), self.get_children(parent));
        synced.await?;
        let names = match listed.await {
            Ok((names, _)) => names,
            Err(error) if error.kind() == ErrorKind::NoNode => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(name) = names.iter().find(|name| name.starts_with(prefix)) else {
            return Ok(None);
        };
        let sequence = name[prefix.len()..].parse().ok();
        let path = path::join(parent, name);
        let stat = self.exists(&path).await?;
        let is_ours = |owner: i64| !mode.is_ephemeral() || owner == self.id();
        let ours = stat.filter(|stat| is_ours(stat.ephemeral_owner));
        Ok(ours.map(|stat| Created { path, sequence, stat }))
    }
}

/// A protected node that may exist without anybody knowing its name; dropped it is looked for and
/// deleted in the background.
pub(crate) struct Debt {
    owed: Option<Search>,
    session: Session,
    path: String,
}

struct Search {
    scope: Scope,
    mode: CreateMode,
    place: CleanupPlace,
}

impl Debt {
    /// # Errors
    /// `CleanupFull`.
    pub(crate) fn new(
        scope: &Scope,
        session: Session,
        path: String,
        mode: CreateMode,
    ) -> Result<Self> {
        let place = scope.connection().reserve_cleanup()?;
        let search = Search { scope: scope.clone(), mode, place };
        Ok(Self { owed: Some(search), session, path })
    }

    /// The path that the create is sent with.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// The node is known, or known not to exist.
    pub(crate) fn forgive(mut self) {
        self.owed = None;
    }
}

impl Drop for Debt {
    fn drop(&mut self) {
        if let Some(search) = self.owed.take() {
            let connection = search.scope.connection().clone();
            let (session, path) = (self.session.clone(), std::mem::take(&mut self.path));
            connection.spawn(search.settle(session, path));
        }
    }
}

impl Search {
    async fn settle(self, mut session: Session, path: String) {
        let Self { scope, mode, place: _place } = self;
        let mut pauses = Pauses::new(&scope);
        loop {
            let done = match session.find_protected(&path, mode).await {
                Ok(None) => return,
                Ok(Some(found)) => session.delete(&found.path, None).await,
                Err(error) => Err(error),
            };
            match done {
                Ok(()) => return,
                Err(error) if error.kind() == ErrorKind::NoNode => return,
                Err(error) if error.kind() == ErrorKind::SessionLost => {
                    if mode.is_ephemeral() {
                        return;
                    }
                    let Ok(next) = scope.session_until(None).await else { return };
                    session = next;
                }
                Err(error) if is_final(&error) => {
                    tracing::warn!(%error, %path, "a node of unknown outcome cannot be deleted");
                    return;
                }
                Err(error) => tracing::debug!(%error, %path, "the search for a node goes on"),
            }
            pauses.next().await;
        }
    }
}
