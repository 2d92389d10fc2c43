//! Deleting nodes, and deletes that are owed until they are done.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use crate::connection::{CleanupPlace, Scope, Session};
use crate::error::{Error, ErrorKind, Outcome, Result};
use crate::node::protection_of;
use crate::path;
use crate::retry::{Doubt, Repeat, run};

/// The shortest pause between two attempts in the background.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

/// Deletes a node; made by [`Client::delete`](crate::Client::delete), sent when awaited.
#[derive(Clone, Debug)]
#[must_use = "nothing is deleted unless this is awaited"]
pub struct Delete {
    scope: Scope,
    path: String,
    version: Option<i32>,
    persistence: Persistence,
}

#[derive(Clone, Copy, Debug)]
enum Persistence {
    ByPolicy,
    Guaranteed,
}

impl Delete {
    pub(crate) fn new(scope: Scope, path: &str) -> Self {
        let persistence = Persistence::ByPolicy;
        Self { scope, path: path.to_owned(), version: None, persistence }
    }

    /// Deletes the node only if it has this version.
    pub fn version(mut self, version: i32) -> Self {
        self.version = Some(version);
        self
    }

    /// Goes on in the background when the retry policy gives up or the future is dropped, until the
    /// node is gone, the server refuses for good, or the session ends.
    ///
    /// A node whose name carries a uuid (see [`Create::protected`](crate::Create::protected)) is
    /// deleted in a later session too; another name may by then belong to somebody else.
    ///
    /// # Errors
    /// The awaited future still fails as the policy says; it also fails, with
    /// [`ErrorKind::CleanupFull`] and before anything is sent, when too many deletes are owed
    /// already.
    pub fn guaranteed(mut self) -> Self {
        self.persistence = Persistence::Guaranteed;
        self
    }

    async fn run(self) -> Result<()> {
        path::validate(&self.path)?;
        match self.persistence {
            Persistence::ByPolicy => {
                run(&self.scope, Repeat::IfNotApplied, |session| {
                    session.delete(&self.path, self.version)
                })
                .await
            }
            Persistence::Guaranteed => self.run_guaranteed().await,
        }
    }

    async fn run_guaranteed(self) -> Result<()> {
        let place = self.scope.connection().reserve_cleanup()?;
        let mut owed = Owed { delete: Some((self.clone(), place)), session: None };
        let outlives_session = protection_of(path::name(&self.path)).is_some();
        let doubt = &Doubt::default();
        let result = run(&self.scope, Repeat::Always, |session| {
            let before = owed.session.replace(session.clone());
            let is_anothers = !outlives_session
                && doubt.is_there()
                && before.is_some_and(|before| before.epoch() != session.epoch());
            // By now the name may belong to somebody else: this is for the caller to decide.
            let deleted = (!is_anothers).then(|| session.delete(&self.path, self.version));
            async move {
                let Some(deleted) = deleted else { return Ok(Settled::InDoubt(session.over())) };
                match doubt.note(deleted.await) {
                    Ok(()) => Ok(Settled::Deleted),
                    // Gone after an attempt of unknown outcome: it was that attempt.
                    Err(error) if error.kind() == ErrorKind::NoNode && doubt.is_there() => {
                        Ok(Settled::Deleted)
                    }
                    Err(error) => Err(error),
                }
            }
        })
        .await;
        match result {
            Ok(Settled::Deleted) => {
                owed.delete = None;
                Ok(())
            }
            Ok(Settled::InDoubt(error)) => {
                owed.delete = None;
                Err(error.with_path(self.path.as_str()).with_outcome(Outcome::Unknown))
            }
            Err(error) if doubt.is_there() => Err(error.with_outcome(Outcome::Unknown)),
            Err(error) => {
                if is_final(&error) {
                    owed.delete = None;
                }
                Err(error)
            }
        }
    }
}

/// How a guaranteed delete ended while it was awaited.
enum Settled {
    Deleted,
    /// Its session is over, and nobody can tell.
    InDoubt(Error),
}

impl IntoFuture for Delete {
    type Output = Result<()>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

/// Whether trying again would change nothing.
pub(crate) fn is_final(error: &Error) -> bool {
    error.outcome() == Outcome::NotApplied && !error.is_retryable()
}

/// A guaranteed delete that is under way; dropped unfinished it goes on in the background.
struct Owed {
    delete: Option<(Delete, CleanupPlace)>,
    /// The session of the newest attempt.
    session: Option<Session>,
}

impl Drop for Owed {
    fn drop(&mut self) {
        // Without an attempt nothing was promised for a name that may be another's tomorrow.
        let (Some((delete, place)), Some(session)) = (self.delete.take(), self.session.take())
        else {
            return;
        };
        let connection = delete.scope.connection().clone();
        connection.spawn(async move {
            let _place = place;
            delete.settle(session).await;
        });
    }
}

impl Delete {
    async fn settle(self, mut session: Session) {
        let outlives_session = protection_of(path::name(&self.path)).is_some();
        let mut pauses = Pauses::new(&self.scope);
        loop {
            match session.delete(&self.path, self.version).await {
                Ok(()) => return,
                Err(error) if error.kind() == ErrorKind::NoNode => return,
                Err(error) if error.kind() == ErrorKind::SessionLost && outlives_session => {
                    let Ok(next) = self.scope.session_until(None).await else { return };
                    session = next;
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::SessionLost | ErrorKind::Closed) =>
                {
                    return;
                }
                Err(error) if is_final(&error) => {
                    tracing::warn!(%error, "a guaranteed delete was refused");
                    return;
                }
                Err(error) => tracing::debug!(%error, "a guaranteed delete goes on"),
            }
            pauses.next().await;
        }
    }
}

/// The pauses between attempts in the background: the policy's, and then its last one for ever.
pub(crate) struct Pauses<'a> {
    scope: &'a Scope,
    delays: Box<dyn Iterator<Item = Duration> + Send>,
    last: Duration,
}

impl<'a> Pauses<'a> {
    pub(crate) fn new(scope: &'a Scope) -> Self {
        let delays = scope.config().retry_policy.delays();
        Self { scope, delays, last: SHORTEST_PAUSE }
    }

    pub(crate) async fn next(&mut self) {
        self.last = self.delays.next().unwrap_or(self.last).max(SHORTEST_PAUSE);
        self.scope.pause(self.last).await;
    }
}
