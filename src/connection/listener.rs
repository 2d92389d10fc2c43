//! Telling listeners of state changes, in order, without ever waiting for them.
//!
//! Each listener has a thread of its own, so one that blocks or panics stops neither the
//! connection nor another listener. Its queue is bounded: when a listener is far behind, changes
//! within one session are merged into one, and of sessions long gone only their epochs remain
//! visible.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::io;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use parking_lot::{Condvar, Mutex};

use super::state::{ConnectionState, StateChange};

/// Calls one listener.
pub(crate) type Deliver =
    Box<dyn Fn(StateChange) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// The most changes kept for a listener that is behind.
const QUEUE_LENGTH: usize = 64;

/// Names a listener, to remove it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenerId(u64);

impl fmt::Display for ListenerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The listeners of one client.
#[derive(Default)]
pub(super) struct Listeners {
    next: AtomicU64,
    inboxes: Mutex<Vec<(ListenerId, Arc<Inbox>)>>,
}

impl Listeners {
    pub(super) fn add(&self, deliver: Deliver) -> io::Result<ListenerId> {
        let id = ListenerId(self.next.fetch_add(1, Ordering::Relaxed));
        let inbox = Arc::new(Inbox::default());
        let read = Arc::clone(&inbox);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name("zookeeper-listen".to_owned()).spawn(move || {
            while let Some(change) = read.next() {
                // A panic was reported by the panic hook; the next change is told anyway.
                let told = AssertUnwindSafe(|| runtime.block_on(deliver(change)));
                if std::panic::catch_unwind(told).is_err() {
                    tracing::error!(%id, ?change, "a connection state listener panicked");
                }
            }
        })?;
        self.inboxes.lock().push((id, inbox));
        Ok(id)
    }

    /// Whether there was such a listener. It is told nothing more, but may still be at work on
    /// the change it was told last.
    pub(super) fn remove(&self, id: ListenerId) -> bool {
        let mut inboxes = self.inboxes.lock();
        let Some(index) = inboxes.iter().position(|(known, _)| *known == id) else {
            return false;
        };
        inboxes.swap_remove(index).1.close();
        true
    }

    pub(super) fn tell(&self, change: StateChange) {
        for (_, inbox) in self.inboxes.lock().iter() {
            inbox.push(change);
        }
    }
}

/// The changes that one listener has not been told yet.
#[derive(Default)]
struct Inbox {
    queue: Mutex<Queue>,
    filled: Condvar,
}

#[derive(Default)]
struct Queue {
    changes: VecDeque<StateChange>,
    closed: bool,
}

impl Inbox {
    fn push(&self, change: StateChange) {
        let mut queue = self.queue.lock();
        if queue.closed {
            return;
        }
        enqueue(&mut queue.changes, change, QUEUE_LENGTH);
        queue.closed = change.current == ConnectionState::Closed;
        self.filled.notify_one();
    }

    fn close(&self) {
        let mut queue = self.queue.lock();
        queue.changes.clear();
        queue.closed = true;
        self.filled.notify_one();
    }

    /// Blocks for the next change; `None` when there will be no more.
    fn next(&self) -> Option<StateChange> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(change) = queue.changes.pop_front() {
                return Some(change);
            }
            if queue.closed {
                return None;
            }
            self.filled.wait(&mut queue);
        }
    }
}

/// Adds a change; where the queue is full, two neighbours become one. Neighbours of one session
/// are taken before neighbours of two: then at most the flapping of a link is lost, not a session.
fn enqueue(changes: &mut VecDeque<StateChange>, change: StateChange, length: usize) {
    changes.push_back(change);
    if changes.len() <= length {
        return;
    }
    let of_one_session =
        |index: &usize| changes[*index].current.epoch() == changes[index + 1].current.epoch();
    let index = (0..length).find(of_one_session).unwrap_or(0);
    if let Some(first) = changes.remove(index) {
        changes[index].previous = first.previous;
    }
}
