//! Whether a session is alive: known to its manager, asked by everybody.
//!
//! A session ends *here* before its end is sent to the server, and once it is over it stays over.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::clock::{self, BootTime};
use super::state::SessionEpoch;
use super::validity::{Validity, ValidityCell};
use crate::error::{Error, ErrorKind};

/// Why a session is over for this client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LostReason {
    /// The server said that the session had expired, or the wire client gave it up.
    Expired,
    /// Nothing has confirmed the session for so long that the server may have ended it.
    Unconfirmed,
    /// The client was closed.
    Closed,
}

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "the session expired",
            Self::Unconfirmed => {
                "no server confirmed the session for too long, so it may have ended"
            }
            Self::Closed => "the client was closed",
        })
    }
}

/// The liveness of one session.
#[derive(Debug)]
pub(super) struct Liveness {
    epoch: SessionEpoch,
    validity: Mutex<Validity>,
    cell: ValidityCell,
    lost: watch::Sender<Option<LostReason>>,
}

impl Liveness {
    pub(super) fn new(epoch: SessionEpoch, validity: Validity) -> Arc<Self> {
        let cell = ValidityCell::new(validity.valid_until());
        Arc::new(Self {
            epoch,
            validity: Mutex::new(validity),
            cell,
            lost: watch::Sender::new(None),
        })
    }

    pub(super) fn epoch(&self) -> SessionEpoch {
        self.epoch
    }

    /// Whether the server is known to keep the session at this moment; once false, always false.
    pub(super) fn is_valid(&self) -> bool {
        self.cell.is_valid(clock::now())
    }

    /// Why the session is over, if it is.
    pub(super) fn lost_reason(&self) -> Option<LostReason> {
        // The clock is asked first: after a stop of this process the manager may not have had the
        // time to notice.
        let unnoticed = LostReason::Unconfirmed;
        (!self.is_valid()).then(|| self.lost.borrow().unwrap_or(unnoticed))
    }

    pub(super) fn valid_until(&self) -> BootTime {
        self.cell.valid_until()
    }

    /// A request that needs the leader was sent at `sent` and is now answered.
    pub(super) fn confirmed(&self, sent: BootTime) {
        self.learn(|validity| validity.confirmed(sent, clock::now()));
    }

    /// The session was attached to a server again at some moment after `at`.
    pub(super) fn reattached(&self, at: BootTime) {
        self.learn(|validity| validity.reattached(at));
    }

    fn learn(&self, input: impl FnOnce(&mut Validity)) {
        let mut validity = self.validity.lock();
        input(&mut validity);
        self.cell.extend(validity.valid_until(), clock::now());
    }

    /// When the newest answered request that needed the leader was sent.
    pub(super) fn newest_confirmed(&self) -> BootTime {
        self.validity.lock().newest_confirmed()
    }

    /// Ends the session for all its handles. The first reason stays.
    pub(super) fn end(&self, reason: LostReason) {
        self.cell.end();
        self.lost.send_if_modified(|lost| {
            let first = lost.is_none();
            lost.get_or_insert(reason);
            first
        });
    }

    /// The error of whatever is asked of the session after its end.
    pub(super) fn over(&self) -> Error {
        let kind = match *self.lost.borrow() {
            Some(LostReason::Closed) => ErrorKind::Closed,
            Some(LostReason::Expired | LostReason::Unconfirmed) | None => ErrorKind::SessionLost,
        };
        Error::new(kind).with_epoch(self.epoch)
    }

    /// Resolves with the reason once the session is over.
    pub(super) fn lost(self: &Arc<Self>) -> SessionLost {
        let liveness = Arc::clone(self);
        let mut receiver = self.lost.subscribe();
        let told = Box::pin(async move {
            let reason = receiver.wait_for(Option::is_some).await.ok().and_then(|reason| *reason);
            reason.unwrap_or(LostReason::Unconfirmed)
        });
        SessionLost { liveness, told }
    }
}

/// Resolves when a session is over; made by [`Session::lost`](super::Session::lost).
#[must_use = "futures do nothing unless they are polled"]
pub struct SessionLost {
    liveness: Arc<Liveness>,
    told: Pin<Box<dyn Future<Output = LostReason> + Send + Sync>>,
}

impl Future for SessionLost {
    type Output = LostReason;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<LostReason> {
        match self.liveness.lost_reason() {
            Some(reason) => Poll::Ready(reason),
            None => self.told.as_mut().poll(cx),
        }
    }
}

impl fmt::Debug for SessionLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionLost").field("epoch", &self.liveness.epoch).finish_non_exhaustive()
    }
}
