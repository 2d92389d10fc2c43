//! The requests of the queue, and what becomes of their answers.
//!
//! Each flight is a task on the client's thread: it owns its arguments, outlives its caller, and
//! reports every answer to the mirror. What is asked for is sent here, under the queue's lock; the
//! task only awaits it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use zookeeper_framework::{
    Call, CreateMode, Created, Error, ErrorKind, Outcome, Result, Session, Stat, Watch, WatchEvent,
    protected_name,
};

use super::budget::Budget;
use super::entry::{Entry, Node, Verdict};
use super::failure::Failure;
use super::fate::{Fate, deleted};
use super::mirror::{NodeId, Output, Stamp};
use super::{Queue, State, conclude};
use crate::error;

/// How often a node is created anew because the server reaped its directory in between. This holds
/// whatever the retry policy says: nothing went wrong.
const DIRECTORY_TRIES: usize = 3;

/// The pause before a list or watch is sent again. Nobody's retry budget pays for these: they are
/// part of waiting.
const READ_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause before a node that may block others is looked for or deleted again. A request
/// waits for the next connection by itself; the policy says when a caller is told, and no more.
const CLEANUP_PAUSE: Duration = Duration::from_secs(1);

/// The pause between two looks at a node that cannot be watched.
const POLL_PAUSE: Duration = Duration::from_secs(1);

type Listing = Call<(Vec<String>, Stat)>;

/// Sending.
impl Queue {
    pub(super) fn send_create(
        self: &Arc<Self>,
        state: &mut State,
        id: NodeId,
        list: Option<Stamp>,
    ) {
        let Some(session) = state.session.clone() else { return };
        let Some(entry) = state.entries.get_mut(&id) else { return };
        entry.is_sent = true;
        let path = self.node_path(id, entry.request.marker);
        self.client.create_containers(&session, &path);
        let (data, acl) = (&entry.request.data, Arc::clone(&entry.request.acl));
        let create = session.create(&path, data, CreateMode::EphemeralSequential, acl);
        let list = list.map(|stamp| (stamp, session.get_children(&self.path)));
        let (queue, budget) = (Arc::clone(self), Arc::clone(&entry.request.budget));
        self.client.spawn(async move {
            let doubt = queue.note_create(&session, id, create.await, &budget).await;
            if let Some((stamp, list)) = list {
                queue.note_list(&session, stamp, list.await).await;
            }
            if let Some(error) = doubt {
                queue.resolve(&session, id, &path, error, &budget).await;
            }
        });
    }

    pub(super) fn send_list(self: &Arc<Self>, state: &State, stamp: Stamp) {
        let Some(session) = state.session.clone() else { return };
        let list: Listing = session.get_children(&self.path);
        let queue = Arc::clone(self);
        self.client.spawn(async move { queue.note_list(&session, stamp, list.await).await });
    }

    pub(super) fn send_watch(self: &Arc<Self>, state: &mut State, stamp: Stamp, name: &str) {
        let Some(session) = state.session.clone() else { return };
        let path = format!("{}/{name}", self.directory());
        // Reading, never `exists`: no watch may stay on a node that does not exist.
        let read = session.watch_data(&path);
        let (sender, mut unwatched) = oneshot::channel();
        state.watch = Some((stamp, sender));
        let queue = Arc::clone(self);
        self.client.spawn(async move {
            let seen = tokio::select! {
                biased;
                _ = &mut unwatched => return,
                seen = queue.see(&session, &path, read) => seen,
            };
            queue.note_watch(&session, stamp, seen).await;
        });
    }

    /// Watches the node of our first waiter too, once it waits for another process: it will be
    /// granted without another look at the directory, and must know if its node is removed by hand.
    /// The watch lasts until the node goes, so it costs no request to take it back.
    pub(super) fn send_own_watch(self: &Arc<Self>, state: &mut State, id: NodeId) {
        let Some(session) = state.session.clone() else { return };
        let Some(entry) = state.entries.get_mut(&id).filter(|entry| !entry.is_watched) else {
            return;
        };
        let Some(node) = entry.node.clone() else { return };
        entry.is_watched = true;
        // A node whose delete is refused may stay for long; it must not keep the client alive.
        let (queue, client) = (Arc::downgrade(self), self.client.downgrade());
        self.client.spawn(async move {
            let fate = deleted(&client, &session, &node.path).await;
            if let (Fate::Deleted, Some(queue)) = (fate, queue.upgrade()) {
                queue.note_removed(&session, id);
            }
        });
    }

    pub(super) fn send_delete(self: &Arc<Self>, state: &mut State, id: NodeId) {
        let Some(session) = state.session.clone() else { return };
        let Some(entry) = state.entries.get_mut(&id) else { return };
        let Some(node) = entry.node.clone() else { return };
        entry.is_leaving = true;
        let delete = session.delete(&node.path, None);
        let queue = Arc::clone(self);
        self.client.spawn(async move { queue.erase(&session, id, &node.path, delete).await });
    }

    fn node_path(&self, id: NodeId, marker: &str) -> String {
        format!("{}/{}", self.directory(), protected_name(id, marker))
    }

    /// The directory, fit to put a name behind it.
    fn directory(&self) -> &str {
        if &*self.path == "/" { "" } else { &self.path }
    }
}

/// Answers.
impl Queue {
    /// Gives the error back where nobody can tell whether the node exists.
    async fn note_create(
        self: &Arc<Self>,
        session: &Session,
        id: NodeId,
        answer: Result<Created>,
        budget: &Budget,
    ) -> Option<Error> {
        match answer {
            Ok(created) => self.note_created(session, id, &created),
            Err(error) => match Failure::of(&error) {
                Failure::SessionOver => self.session_over(session),
                Failure::NoNode => self.note_missing_directory(session, id, error),
                Failure::InDoubt => return Some(error),
                Failure::Refused => self.fail(session, id, error),
                Failure::NotApplied => self.create_again(session, id, error, budget).await,
            },
        }
        None
    }

    fn note_created(self: &Arc<Self>, session: &Session, id: NodeId, created: &Created) {
        let number = created.sequence.and_then(|number| i32::try_from(number).ok());
        self.input(session, |_, state, _| {
            if let Some(entry) = state.entries.get_mut(&id) {
                let path = created.path.as_str().into();
                entry.node = Some(Node { path, czxid: created.stat.czxid });
            }
            // A number beyond 32 bits is beyond the end of the counter.
            state.mirror.created(id, number.unwrap_or(i32::MAX))
        });
    }

    fn note_missing_directory(self: &Arc<Self>, session: &Session, id: NodeId, error: Error) {
        self.client.forget_containers(&self.node_path(id, ""));
        let mut is_last = false;
        self.input(session, |_, state, _| {
            let Some(entry) = state.entries.get_mut(&id) else { return Vec::new() };
            entry.missing_directory += 1;
            is_last = entry.missing_directory > DIRECTORY_TRIES;
            if is_last { Vec::new() } else { Self::uncreate(state, id) }
        });
        if is_last {
            self.fail(session, id, error);
        }
    }

    async fn create_again(
        self: &Arc<Self>,
        session: &Session,
        id: NodeId,
        error: Error,
        budget: &Budget,
    ) {
        let may = self.client.retry_policy().is_retryable(&error);
        match budget.next().filter(|_| may) {
            Some(pause) => {
                self.client.pause(pause).await;
                self.input(session, |_, state, _| Self::uncreate(state, id));
            }
            None => self.fail(session, id, error),
        }
    }

    /// The node does not exist: it is created again, unless its acquisition was given up.
    fn uncreate(state: &mut State, id: NodeId) -> Vec<Output> {
        let outputs = state.mirror.not_created(id);
        let again = outputs.iter().any(|out| matches!(out, Output::Create(one, _) if *one == id));
        if !again {
            state.entries.remove(&id);
        }
        outputs
    }

    /// The node does not exist, and its acquisition fails.
    fn fail(self: &Arc<Self>, session: &Session, id: NodeId, error: Error) {
        let error = error::Error::at(&self.path, error);
        self.input(session, |_, state, news| {
            conclude(state, id, Verdict::Failed(error), news);
            state.entries.remove(&id);
            state.mirror.create_failed(id)
        });
    }

    /// Finds out whether a create of unknown outcome left a node. Goes on when the acquisition has
    /// failed meanwhile, since the node must then be deleted.
    async fn resolve(
        self: &Arc<Self>,
        session: &Session,
        id: NodeId,
        path: &str,
        doubt: Error,
        budget: &Budget,
    ) {
        loop {
            match session.find_protected(path, CreateMode::EphemeralSequential).await {
                Ok(Some(created)) => return self.note_created(session, id, &created),
                Ok(None) => {
                    let absent = doubt.with_outcome(Outcome::NotApplied);
                    return self.create_again(session, id, absent, budget).await;
                }
                Err(error) => match Failure::of(&error) {
                    Failure::SessionOver => return self.session_over(session),
                    Failure::NoNode | Failure::Refused => {
                        tracing::warn!(%error, %path, "a node of unknown outcome stays unknown");
                        return self.give_up_on(session, id, error);
                    }
                    Failure::InDoubt | Failure::NotApplied => {}
                },
            }
            if budget.next().is_none() {
                self.give_up_on(session, id, doubt.clone());
            }
            self.client.pause(budget.last().min(CLEANUP_PAUSE)).await;
        }
    }

    /// Fails an acquisition whose node may exist, and gives the node up.
    fn give_up_on(self: &Arc<Self>, session: &Session, id: NodeId, error: Error) {
        let error = error::Error::at(&self.path, error);
        self.input(session, |_, state, news| {
            conclude(state, id, Verdict::Failed(error), news);
            state.leave(id)
        });
    }

    async fn note_list(
        self: &Arc<Self>,
        session: &Session,
        stamp: Stamp,
        answer: Result<(Vec<String>, Stat)>,
    ) {
        let names = match answer {
            Ok((names, _)) => names,
            Err(error) => {
                match Failure::of(&error) {
                    Failure::NoNode => {
                        let nobody: [&str; 0] = [];
                        return self
                            .input(session, |_, state, _| state.mirror.listed(stamp, &nobody));
                    }
                    Failure::SessionOver => return self.session_over(session),
                    Failure::Refused => self.fail_waiters(session, &error),
                    Failure::InDoubt | Failure::NotApplied => {
                        self.client.pause(READ_PAUSE).await;
                    }
                }
                return self.input(session, |_, state, _| state.mirror.list_failed(stamp));
            }
        };
        self.input(session, |_, state, _| state.mirror.listed(stamp, &names));
    }

    async fn note_watch(self: &Arc<Self>, session: &Session, stamp: Stamp, seen: Seen) {
        match seen {
            Seen::Gone => self.input(session, |_, state, _| state.mirror.watch_gone(stamp)),
            Seen::Changed => self.input(session, |_, state, _| state.mirror.watch_spent(stamp)),
            Seen::SessionOver => self.session_over(session),
            Seen::Nothing => {
                self.client.pause(READ_PAUSE).await;
                self.input(session, |_, state, _| state.mirror.watch_spent(stamp));
            }
            Seen::Refused(error) => {
                self.fail_waiters(session, &error);
                self.input(session, |_, state, _| state.mirror.watch_spent(stamp));
            }
        }
    }

    /// Waits for a node to go or change.
    async fn see(
        &self,
        session: &Session,
        path: &str,
        read: Call<((Vec<u8>, Stat), Watch)>,
    ) -> Seen {
        let fired = match read.await {
            Ok((_, watch)) => watch.fired().await,
            Err(error) if error.kind() == ErrorKind::WatchesFull => {
                return self.poll(session, path).await;
            }
            Err(error) => Err(error),
        };
        match fired {
            Ok(WatchEvent::Deleted) => Seen::Gone,
            // A change of the data is no departure: it asks the holder to give way.
            Ok(_) => Seen::Changed,
            Err(error) => Seen::failed(error),
        }
    }

    /// The node is gone. If that is not our own doing, somebody deleted it.
    pub(super) fn note_removed(self: &Arc<Self>, session: &Session, id: NodeId) {
        self.input(session, |_, state, _| {
            if state.entries.get(&id).is_some_and(|entry| !entry.is_leaving) {
                state.mirror.removed(id)
            } else {
                Vec::new()
            }
        });
    }

    /// Reads a node again and again where the session can watch no more paths.
    async fn poll(&self, session: &Session, path: &str) -> Seen {
        loop {
            if let Err(error) = session.get_data(path).await {
                return Seen::failed(error);
            }
            self.client.pause(POLL_PAUSE).await;
        }
    }

    /// Nobody who waits here can ever be granted.
    fn fail_waiters(self: &Arc<Self>, session: &Session, error: &Error) {
        self.input(session, |_, state, news| {
            let waits = |(id, entry): (&NodeId, &Entry)| {
                entry.verdict.as_ref().map(|_| (entry.is_sent, *id))
            };
            let mut waiters: Vec<_> = state.entries.iter().filter_map(waits).collect();
            // Those without a node first: else they would get one when the others leave.
            waiters.sort_unstable();
            let mut outputs = Vec::new();
            for (_, id) in waiters {
                let error = error::Error::at(&self.path, error.clone());
                conclude(state, id, Verdict::Failed(error), news);
                outputs.extend(state.leave(id));
            }
            outputs
        });
    }

    /// Deletes a node of ours until it is certainly gone, or the server refuses for good.
    async fn erase(
        self: &Arc<Self>,
        session: &Session,
        id: NodeId,
        path: &str,
        mut delete: Call<()>,
    ) {
        let budget = Budget::new(&self.client);
        let mut is_doubtful = false;
        loop {
            let error = match delete.await {
                Ok(()) => return self.note_deleted(session, id, Ok(())),
                Err(error) => error,
            };
            match Failure::of(&error) {
                // Gone after an attempt of unknown outcome: it was that attempt.
                Failure::NoNode if is_doubtful => {
                    return self.note_deleted(session, id, Ok(()));
                }
                Failure::NoNode => return self.note_deleted(session, id, Err(error)),
                Failure::SessionOver => {
                    self.note_released(session, id, doubted(error, is_doubtful));
                    return self.session_over(session);
                }
                Failure::Refused => {
                    tracing::warn!(%error, %path, "a lock node cannot be deleted");
                    return self.note_released(session, id, doubted(error, is_doubtful));
                }
                Failure::InDoubt => is_doubtful = true,
                Failure::NotApplied => {}
            }
            if budget.next().is_none() {
                self.note_released(session, id, error.with_outcome(Outcome::Unknown));
            }
            self.client.pause(budget.last().min(CLEANUP_PAUSE)).await;
            delete = session.delete(path, None);
        }
    }

    fn note_deleted(self: &Arc<Self>, session: &Session, id: NodeId, result: Result<()>) {
        let (mut released, was_there) = (None, result.is_ok());
        self.input(session, |_, state, _| {
            released = state.entries.remove(&id).and_then(|entry| entry.released);
            if was_there { state.mirror.deleted(id) } else { state.mirror.removed(id) }
        });
        if let Some(released) = released {
            let _ = released.send(result.map_err(|error| error::Error::at(&self.path, error)));
        }
    }

    /// Tells whoever waits for the release that the delete is not done, or not known to be.
    fn note_released(self: &Arc<Self>, session: &Session, id: NodeId, error: Error) {
        let mut released = None;
        self.input(session, |_, state, _| {
            released = state.entries.get_mut(&id).and_then(|entry| entry.released.take());
            Vec::new()
        });
        if let Some(released) = released {
            let _ = released.send(Err(error::Error::at(&self.path, error)));
        }
    }
}

/// The error of an attempt, after earlier ones that may have been carried out.
fn doubted(error: Error, is_doubtful: bool) -> Error {
    if is_doubtful { error.with_outcome(Outcome::Unknown) } else { error }
}

/// What became of a watch.
enum Seen {
    Gone,
    Changed,
    /// It was not armed.
    Nothing,
    Refused(Error),
    SessionOver,
}

impl Seen {
    fn failed(error: Error) -> Self {
        match Failure::of(&error) {
            Failure::NoNode => Self::Gone,
            Failure::SessionOver => Self::SessionOver,
            Failure::Refused => Self::Refused(error),
            Failure::InDoubt | Failure::NotApplied => Self::Nothing,
        }
    }
}
