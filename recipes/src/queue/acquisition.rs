//! One acquisition, from the caller's side: a straight line with a deadline and a retry budget.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;
use zookeeper_framework::{ErrorKind, Session};

use super::Queue;
use super::entry::{Request, Verdict};
use super::hold::Hold;
use super::mirror::{Mode, NodeId};
use crate::error::{Error, HoldEnd, Result};

/// How long an acquisition waits for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Not at all.
    Try,
    /// Until then; `None` is for ever.
    Until(Option<Instant>),
}

impl Wait {
    fn mode(self) -> Mode {
        match self {
            Self::Try => Mode::Try,
            Self::Until(_) => Mode::Wait,
        }
    }
}

/// Acquires; `None` if that would have meant to wait.
///
/// Dropped at any point, it leaves no node and changes nobody else's outcome.
pub(crate) async fn acquire(
    queue: &Arc<Queue>,
    request: &Request,
    wait: Wait,
) -> Result<Option<Hold>> {
    let client = queue.client();
    let deadline = match wait {
        // A try does not wait for its turn, but it must wait for the server's answer.
        Wait::Try => Instant::now().checked_add(client.connection_timeout()),
        Wait::Until(deadline) => deadline,
    };
    loop {
        let session = connected(queue, deadline).await?;
        let place = client.reserve_cleanup().map_err(|error| Error::at(queue.path(), error))?;
        let entered = queue.enter(&session, request, wait.mode(), place);
        let setback = match entered {
            // A newer session has begun: the next turn of the loop gets it.
            None => Setback::SessionLost,
            Some((id, verdict)) => {
                let mut ticket = Ticket { queue, session: session.clone(), id, armed: true };
                match client.within(deadline, hear(&session, verdict)).await {
                    None => return Err(Error::timed_out(queue.path())),
                    Some(Verdict::Granted(_, life)) if life.ended().is_some() => {
                        Setback::NodeDeleted
                    }
                    Some(Verdict::Granted(node, life)) if session.is_valid() => {
                        ticket.armed = false;
                        return Ok(Some(Hold::new(queue, session, id, node, life)));
                    }
                    Some(Verdict::Granted(..) | Verdict::Lost) => Setback::SessionLost,
                    Some(Verdict::Vanished) => Setback::NodeDeleted,
                    Some(Verdict::Blocked) => return Ok(None),
                    Some(Verdict::Failed(error)) => return Err(error),
                }
            }
        };
        retry(queue, request, &session, setback, deadline).await?;
    }
}

/// Why an acquisition must start anew.
enum Setback {
    SessionLost,
    NodeDeleted,
}

/// Waits for a connection, until the deadline; without one as long as the client waits for one.
async fn connected(queue: &Queue, deadline: Option<Instant>) -> Result<Session> {
    let (client, path) = (queue.client(), queue.path());
    let patience = || Instant::now().checked_add(client.connection_timeout());
    let connected = client.session_until(deadline.or_else(patience)).await;
    connected.map_err(|error| match deadline {
        Some(_) if error.kind() == ErrorKind::NotConnected => {
            Error::TimedOut { path: Arc::clone(path), cause: Some(error) }
        }
        Some(_) | None => Error::at(path, error),
    })
}

/// Waits for the outcome, or for the end of the session.
async fn hear(session: &Session, verdict: oneshot::Receiver<Verdict>) -> Verdict {
    tokio::select! {
        biased;
        verdict = verdict => verdict.unwrap_or(Verdict::Lost),
        _ = session.lost() => Verdict::Lost,
    }
}

/// Makes the pause before the next node, or fails where the policy gives up.
async fn retry(
    queue: &Queue,
    request: &Request,
    session: &Session,
    setback: Setback,
    deadline: Option<Instant>,
) -> Result<()> {
    let client = queue.client();
    let path = || Arc::clone(queue.path());
    let (error, may) = match setback {
        Setback::SessionLost => {
            let error = session.over();
            let may = client.retry_policy().is_retryable(&error);
            (Error::at(queue.path(), error), may)
        }
        Setback::NodeDeleted => (Error::Lost { path: path(), reason: HoldEnd::NodeDeleted }, true),
    };
    let Some(pause) = request.budget.next().filter(|_| may) else { return Err(error) };
    tracing::debug!(%error, ?pause, "acquiring anew");
    match client.within(deadline, client.pause(pause)).await {
        Some(()) => Ok(()),
        None => Err(Error::timed_out(queue.path())),
    }
}

/// An acquisition under way; dropped it gives its place in the queue up.
struct Ticket<'a> {
    queue: &'a Arc<Queue>,
    session: Session,
    id: NodeId,
    armed: bool,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.queue.leave(&self.session, self.id, None);
        }
    }
}
