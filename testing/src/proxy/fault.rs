//! The handles with which a test follows the faults it has armed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

/// A fault that was armed at a [`Proxy`](crate::Proxy).
///
/// It happens once and stays armed when this handle is dropped; but a test that never asks whether
/// it [happened](Self::happened) may pass without it.
#[derive(Clone, Debug)]
#[must_use = "a test should insist that its fault happened"]
pub struct Fault {
    occurrence: Arc<Occurrence>,
}

#[derive(Debug, Default)]
struct Occurrence {
    happened: Mutex<bool>,
    changed: Condvar,
}

impl Fault {
    pub(super) fn new() -> Self {
        Self { occurrence: Arc::default() }
    }

    /// Whether the fault has happened. Where it ends a connection, the client's side of that
    /// connection is reset already.
    pub fn happened(&self) -> bool {
        *self.occurrence.happened.lock()
    }

    /// Waits until the fault has happened, for `timeout` at most, and says whether it has.
    pub fn wait_happened(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut happened = self.occurrence.happened.lock();
        while !*happened {
            if self.occurrence.changed.wait_until(&mut happened, deadline).timed_out() {
                break;
            }
        }
        *happened
    }

    /// Lets it happen. A test that asks because it has seen the effect is told so, and so is one
    /// that looks for the effect because it was told: the lock makes both wait for the other half.
    pub(super) fn happen(&self, act: impl FnOnce()) {
        let mut happened = self.occurrence.happened.lock();
        act();
        *happened = true;
        self.occurrence.changed.notify_all();
    }
}

/// A frame that was caught, or is to be caught, on its way.
///
/// Everything behind it in its direction waits with it. Dropping this handle resets the connection
/// of a frame that was caught; where none was caught yet, it disarms the fault.
#[derive(Debug)]
#[must_use = "dropping it lets go of what it holds"]
pub struct Hold {
    fault: Fault,
    release: oneshot::Sender<()>,
}

impl Hold {
    pub(super) fn new(fault: Fault) -> (Self, oneshot::Receiver<()>) {
        let (release, released) = oneshot::channel();
        (Self { fault, release }, released)
    }

    /// Whether a frame has been caught.
    pub fn happened(&self) -> bool {
        self.fault.happened()
    }

    /// Waits until a frame has been caught, for `timeout` at most, and says whether one has.
    pub fn wait_happened(&self, timeout: Duration) -> bool {
        self.fault.wait_happened(timeout)
    }

    /// Lets the frame, and what waits behind it, go on; where none was caught yet, disarms the
    /// fault.
    pub fn release(self) {
        // Nobody listens any more where the connection has ended: then there is nothing to release.
        self.release.send(()).ok();
    }
}
