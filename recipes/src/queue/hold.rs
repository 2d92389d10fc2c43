//! Something held: alive as long as its session, its node, and whoever keeps it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::oneshot;
use zookeeper_framework::{ErrorKind, Session, SessionLost};

use super::Queue;
use super::entry::Node;
use super::life::Life;
use super::mirror::NodeId;
use crate::error::{Error, HoldEnd, Result};

/// A place at the head of a queue; given up by `release` or `give_up`, by its last guard.
pub(crate) struct Hold {
    queue: Arc<Queue>,
    session: Session,
    id: NodeId,
    node: Node,
    life: Arc<Life>,
}

impl Hold {
    pub(super) fn new(
        queue: &Arc<Queue>,
        session: Session,
        id: NodeId,
        node: Node,
        life: Arc<Life>,
    ) -> Self {
        Self { queue: Arc::clone(queue), session, id, node, life }
    }

    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn node(&self) -> &Arc<str> {
        &self.node.path
    }

    pub(crate) fn token(&self) -> i64 {
        self.node.czxid
    }

    /// Somebody deleted the node.
    pub(crate) fn node_deleted(&self) {
        self.life.end(HoldEnd::NodeDeleted);
        self.queue.note_removed(&self.session, self.id);
    }

    /// What ended the hold, if anything has. Reads the clock, sends nothing.
    pub(crate) fn ended(&self) -> Option<HoldEnd> {
        self.life.ended().or_else(|| self.session.lost_reason().map(HoldEnd::SessionLost))
    }

    pub(crate) fn lost(&self) -> Lost {
        let told = Box::pin(self.life.ending());
        Lost { life: Arc::clone(&self.life), told, session: self.session.lost() }
    }

    /// Watches the node, so that a forced release is learnt at once. Until then it is learnt at the
    /// next request that needs the node.
    pub(crate) fn watch_node(&self) {
        self.queue.watch_own_node(&self.session, self.id);
    }

    /// Gives the hold up and waits for the server to confirm it, as long as the retry policy tries.
    /// In any case the delete goes on in the background.
    pub(crate) async fn release(&self) -> Result<()> {
        let path = self.queue.path();
        let lost = |reason| Error::Lost { path: Arc::clone(path), reason };
        let ended = self.ended();
        let (sender, receiver) = oneshot::channel();
        self.leave(Some(sender));
        if let Some(reason) = ended {
            return Err(lost(reason));
        }
        let released = tokio::select! {
            biased;
            released = receiver => released.ok(),
            // The delete ends with the session, and with the client's thread without a word.
            _ = self.session.lost() => None,
        };
        match released {
            Some(Err(Error::Framework(error))) if error.kind() == ErrorKind::NoNode => {
                Err(lost(HoldEnd::NodeDeleted))
            }
            Some(result) => result,
            // It was found removed just before.
            None if self.session.is_valid() => Err(lost(HoldEnd::NodeDeleted)),
            None => Err(Error::at(path, self.session.over())),
        }
    }

    /// Gives the hold up.
    pub(crate) fn give_up(&self) {
        self.leave(None);
    }

    /// Here first, then on the server: whoever asks is told that it is held no more before the
    /// delete is sent.
    fn leave(&self, released: Option<oneshot::Sender<Result<()>>>) {
        self.life.end(HoldEnd::Released);
        self.queue.leave(&self.session, self.id, released);
    }
}

/// Resolves when something is held no more, with what ended it; made by `lost()` of a guard.
///
/// Each poll looks at the hold and at the clock themselves before any wake-up, so that neither a
/// stop of this process nor a task that has used up its turn can hide an end.
#[must_use = "futures do nothing unless they are polled"]
pub struct Lost {
    life: Arc<Life>,
    told: Pin<Box<dyn Future<Output = ()> + Send + Sync>>,
    session: SessionLost,
}

impl Future for Lost {
    type Output = HoldEnd;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<HoldEnd> {
        if let Some(end) = self.life.ended() {
            return Poll::Ready(end);
        }
        if self.told.as_mut().poll(cx).is_ready() {
            return Poll::Ready(self.life.ended().unwrap_or(HoldEnd::Released));
        }
        Pin::new(&mut self.session).poll(cx).map(HoldEnd::SessionLost)
    }
}

impl fmt::Debug for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lost").finish_non_exhaustive()
    }
}
