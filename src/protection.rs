//! Nodes that carry a uuid in their names, so that they are found again after a lost reply.

use uuid::Uuid;

use crate::connection::{CleanupPlace, Scope, Session};
use crate::delete::{Pauses, is_final};
use crate::error::{ErrorKind, Result};
use crate::node::{CreateMode, Created, protection_of};
use crate::path;

/// Looks for a node by its uuid, after an attempt to create it of unknown outcome.
///
/// A `sync` goes before the list, since the server we are attached to now may not have heard of
/// the node yet. Only a node of this session counts where it is ephemeral.
pub(crate) async fn find(
    session: &Session,
    parent: &str,
    id: Uuid,
    mode: CreateMode,
) -> Result<Option<Created>> {
    let (synced, listed) = (session.sync(parent), session.get_children(parent));
    synced.await?;
    let names = match listed.await {
        Ok((names, _)) => names,
        Err(error) if error.kind() == ErrorKind::NoNode => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(name) = names.into_iter().find(|name| protection_of(name) == Some(id)) else {
        return Ok(None);
    };
    let path = path::join(parent, &name);
    let stat = session.exists(&path).await?;
    let ours = |owner: i64| !mode.is_ephemeral() || owner == session.id();
    Ok(stat.filter(|stat| ours(stat.ephemeral_owner)).map(|stat| {
        let number = name.get(name.len().saturating_sub(10)..).and_then(|text| text.parse().ok());
        let sequence = number.filter(|_| mode.is_sequential());
        Created { path, sequence, stat }
    }))
}

/// A protected node that may exist without anybody knowing its name; dropped it is looked for and
/// deleted in the background.
pub(crate) struct Debt {
    owed: Option<Search>,
    session: Session,
    id: Uuid,
}

struct Search {
    scope: Scope,
    parent: String,
    mode: CreateMode,
    place: CleanupPlace,
}

impl Debt {
    /// # Errors
    /// `CleanupFull`.
    pub(crate) fn new(
        scope: &Scope,
        session: Session,
        parent: &str,
        id: Uuid,
        mode: CreateMode,
    ) -> Result<Self> {
        let place = scope.connection().reserve_cleanup()?;
        let search = Search { scope: scope.clone(), parent: parent.to_owned(), mode, place };
        Ok(Self { owed: Some(search), session, id })
    }

    pub(crate) fn id(&self) -> Uuid {
        self.id
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
            let (session, id) = (self.session.clone(), self.id);
            connection.spawn(search.settle(session, id));
        }
    }
}

impl Search {
    async fn settle(self, mut session: Session, id: Uuid) {
        let Self { scope, parent, mode, place: _place } = self;
        let mut pauses = Pauses::new(&scope);
        loop {
            let done = match find(&session, &parent, id, mode).await {
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
                    tracing::warn!(%error, %id, "a node of unknown outcome cannot be deleted");
                    return;
                }
                Err(error) => tracing::debug!(%error, %id, "the search for a node goes on"),
            }
            pauses.next().await;
        }
    }
}
