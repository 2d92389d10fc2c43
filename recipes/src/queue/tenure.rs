//! Who holds what in this process: re-entry, and acquisitions of one owner that overlap.
//!
//! An owner has one place in a queue however often it acquires. Its first acquisition leads; later
//! ones that overlap with it have no node of their own but wait for its outcome, then re-enter, or
//! lead themselves if it failed.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use zookeeper_framework::ConnectionState;

use super::Queue;
use super::acquisition::{self, Wait};
use super::entry::Request;
use super::hold::Hold;
use crate::error::{Error, Result};
use crate::owner::Owner;

/// The owners that hold or acquire in one queue.
#[derive(Default)]
pub(crate) struct Tenures(Mutex<HashMap<Owner, Seat>>);

enum Seat {
    /// Dropping the sender tells the followers that it is settled.
    Acquiring(watch::Sender<()>),
    Held {
        hold: Arc<Hold>,
        guards: usize,
    },
}

impl Tenures {
    /// Whether the owner holds here, and surely still does.
    pub(crate) fn is_held_by(&self, owner: &Owner) -> bool {
        match self.0.lock().get(owner) {
            Some(Seat::Held { hold, .. }) => hold.ended().is_none(),
            Some(Seat::Acquiring(_)) | None => false,
        }
    }
}

/// One guard's share in its owner's hold; the hold is given up with the last one.
pub(crate) struct Share {
    hold: Option<Arc<Hold>>,
    owner: Owner,
    depth: usize,
}

impl Share {
    /// Acquires for an owner, or re-enters; `None` if that would have meant to wait.
    pub(crate) async fn acquire(
        queue: &Arc<Queue>,
        request: &Request,
        owner: &Owner,
        wait: Wait,
    ) -> Result<Option<Self>> {
        loop {
            let outcome = match claim(queue, owner)? {
                Claim::Entered(share) => return Ok(Some(share)),
                Claim::Lead(lead) => {
                    let hold = acquisition::acquire(queue, request, wait).await?;
                    return Ok(hold.map(|hold| lead.succeed(hold)));
                }
                Claim::Follow(outcome) => outcome,
            };
            let Wait::Until(deadline) = wait else { return Ok(None) };
            let settled = queue.client().within(deadline, settled(outcome)).await;
            if settled.is_none() {
                // The deadline's timer also ends with the client.
                let is_closed = queue.client().state() == ConnectionState::Closed;
                let path = queue.path();
                return Err(if is_closed { Error::closed(path) } else { Error::timed_out(path) });
            }
        }
    }

    /// The hold. It is there until the share is given up.
    pub(crate) fn hold(&self) -> &Arc<Hold> {
        self.hold.as_ref().expect("a share has its hold until it is consumed")
    }

    /// The how-manieth guard of its owner this was when it was made, from 1.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Gives the share up, and waits for the end of the hold if this was the last one.
    pub(crate) async fn release(mut self) -> Result<()> {
        let Some(hold) = self.hold.take() else { return Ok(()) };
        match leave(&hold, &self.owner) {
            Left::Last => hold.release().await,
            Left::Others => hold.ended().map_or(Ok(()), |reason| {
                Err(Error::Lost { path: Arc::clone(hold.queue().path()), reason })
            }),
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(hold) = self.hold.take() {
            if let Left::Last = leave(&hold, &self.owner) {
                hold.give_up();
            }
        }
    }
}

/// What an owner that wants to acquire finds.
enum Claim<'a> {
    Entered(Share),
    Lead(Lead<'a>),
    Follow(watch::Receiver<()>),
}

fn claim<'a>(queue: &'a Arc<Queue>, owner: &'a Owner) -> Result<Claim<'a>> {
    let mut seats = queue.tenures().0.lock();
    match seats.get_mut(owner) {
        None => {
            seats.insert(owner.clone(), Seat::Acquiring(watch::Sender::new(())));
            Ok(Claim::Lead(Lead { queue, owner }))
        }
        Some(Seat::Acquiring(settled)) => Ok(Claim::Follow(settled.subscribe())),
        Some(Seat::Held { hold, guards }) => match hold.ended() {
            // Never a silent new acquisition: the owner still has a guard of the lost one.
            Some(reason) => Err(Error::Lost { path: Arc::clone(queue.path()), reason }),
            None => {
                *guards += 1;
                let (hold, depth) = (Some(Arc::clone(hold)), *guards);
                Ok(Claim::Entered(Share { hold, owner: owner.clone(), depth }))
            }
        },
    }
}

async fn settled(mut outcome: watch::Receiver<()>) {
    // Nothing is ever sent: this ends when the sender goes.
    let _ = outcome.changed().await;
}

/// The acquisition for which an owner stands in the queue. Dropped it has failed, and one of those
/// that followed it takes its place.
struct Lead<'a> {
    queue: &'a Arc<Queue>,
    owner: &'a Owner,
}

impl Lead<'_> {
    fn succeed(self, hold: Hold) -> Share {
        let hold = Arc::new(hold);
        let seat = Seat::Held { hold: Arc::clone(&hold), guards: 1 };
        self.queue.tenures().0.lock().insert(self.owner.clone(), seat);
        Share { hold: Some(hold), owner: self.owner.clone(), depth: 1 }
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let mut seats = self.queue.tenures().0.lock();
        if let Some(Seat::Acquiring(_)) = seats.get(self.owner) {
            seats.remove(self.owner);
        }
    }
}

/// Who is left after a guard has gone.
enum Left {
    Others,
    Last,
}

fn leave(hold: &Hold, owner: &Owner) -> Left {
    let mut seats = hold.queue().tenures().0.lock();
    let Some(Seat::Held { guards, .. }) = seats.get_mut(owner) else { return Left::Others };
    *guards -= 1;
    if *guards > 0 {
        return Left::Others;
    }
    seats.remove(owner);
    Left::Last
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Share")
            .field("owner", &self.owner)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}
