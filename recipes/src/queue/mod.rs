//! The queue that all locks stand in: one directory, a numbered node for each contender.
//!
//! Promises that contenders are granted in the order of their numbers, that a node exists only
//! while somebody stands behind it, and that nobody's departure changes the outcome of another.
//!
//! ```text
//!   acquire ──▶ Ticket ──granted──▶ Hold ──release──▶ gone      what a caller has in hand
//!                 │ dropped                │ dropped
//!   ══════════════╪════════════════════════╪══════════════════════════════════════════════
//!                 ▼                        ▼
//!   Queue ── inputs ──▶ mirror (pure) ── outputs ──▶ flights ──▶ session      client's thread
//!     ▲                                                 │
//!     └──────────────────── answers ────────────────────┘
//! ```
//!
//! One lock guards the mirror *and* the sending of what it puts out, so the order of decisions is
//! the order on the wire. Whoever is granted or refused is told after the lock was let go.
//!
//! A node's clean-up is armed before its create is sent: from then on the mirror knows the node,
//! and whatever becomes of the caller ends in [`Queue::leave`].

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use uuid::Uuid;
use zookeeper_framework::{CleanupPlace, Client, Session};

pub(crate) use self::acquisition::Wait;
pub(crate) use self::budget::Budget;
pub(crate) use self::entry::Request;
pub(crate) use self::hold::Hold;
pub use self::hold::Lost;
pub(crate) use self::node::{Family, Kind};
pub(crate) use self::registry::Registry;
pub(crate) use self::tenure::Share;

use self::entry::{Entry, Verdict};
use self::life::Life;
use self::mirror::{Mirror, Mode, NodeId, Output, Refusal, Stamp};
use self::tenure::Tenures;
use crate::error::{Error, HoldEnd};

mod acquisition;
mod budget;
mod entry;
mod failure;
mod fate;
mod flights;
mod hold;
mod life;
mod mirror;
mod node;
mod registry;
mod tenure;

/// The most nodes that one client has in one directory; further acquisitions wait without a node.
/// A Java client cannot list a directory of more than about 17,000 of our names.
const NODES_MAX: usize = 1_000;

/// The queue of one directory, shared by all locks of one client on one path.
pub(crate) struct Queue {
    client: Client,
    path: Arc<str>,
    family: &'static Family,
    state: Mutex<State>,
    tenures: Tenures,
}

struct State {
    mirror: Mirror,
    /// The session that the mirror speaks of.
    session: Option<Session>,
    entries: HashMap<NodeId, Entry>,
    /// Dropping the sender ends the watch.
    watch: Option<(Stamp, oneshot::Sender<()>)>,
}

impl State {
    fn leave(&mut self, id: NodeId) -> Vec<Output> {
        self.forget_unsent(id);
        self.mirror.leave(id)
    }

    /// An acquisition for which nothing was sent leaves nothing to clean up.
    fn forget_unsent(&mut self, id: NodeId) {
        if self.entries.get(&id).is_some_and(|entry| !entry.is_sent) {
            self.entries.remove(&id);
        }
    }
}

/// What a caller is told once the lock has been let go.
type News = Vec<(oneshot::Sender<Verdict>, Verdict)>;

impl Queue {
    pub(crate) fn new(client: Client, path: Arc<str>, family: &'static Family) -> Self {
        let state = State {
            mirror: Mirror::new(family, NODES_MAX),
            session: None,
            entries: HashMap::new(),
            watch: None,
        };
        Self { client, path, family, state: Mutex::new(state), tenures: Tenures::default() }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn path(&self) -> &Arc<str> {
        &self.path
    }

    pub(crate) fn family(&self) -> &'static Family {
        self.family
    }

    pub(crate) fn tenures(&self) -> &Tenures {
        &self.tenures
    }

    /// Puts an acquisition into the queue. `None` if a later session has begun meanwhile.
    fn enter(
        self: &Arc<Self>,
        session: &Session,
        request: &Request,
        mode: Mode,
        place: CleanupPlace,
    ) -> Option<(NodeId, oneshot::Receiver<Verdict>)> {
        let id = Uuid::new_v4();
        let (entry, verdict) = Entry::new(request.clone(), place);
        let news = {
            let mut state = self.state.lock();
            let mut news = self.begin(&mut state, session)?;
            state.entries.insert(id, entry);
            let outputs = state.mirror.enter(id, request.kind, mode);
            self.carry_out(&mut state, outputs, &mut news);
            news
        };
        tell(news);
        Some((id, verdict))
    }

    /// Makes the mirror speak of this session.
    fn begin(self: &Arc<Self>, state: &mut State, session: &Session) -> Option<News> {
        let mut news = Vec::new();
        match &state.session {
            Some(current) if current.epoch() > session.epoch() => return None,
            Some(current) if current.epoch() == session.epoch() => {}
            Some(_) | None => {
                self.end(state, &mut news);
                state.session = Some(session.clone());
            }
        }
        Some(news)
    }

    fn end(self: &Arc<Self>, state: &mut State, news: &mut News) {
        let outputs = state.mirror.epoch_over();
        self.carry_out(state, outputs, news);
        // What is left was given up already, and its node goes with the session.
        state.entries.clear();
        state.watch = None;
        state.session = None;
    }

    /// The session was found to be over.
    fn session_over(self: &Arc<Self>, session: &Session) {
        self.input(session, |queue, state, news| {
            queue.end(state, news);
            Vec::new()
        });
    }

    /// Gives the mirror an input that belongs to this session, and does what follows from it.
    fn input(
        self: &Arc<Self>,
        session: &Session,
        input: impl FnOnce(&Arc<Self>, &mut State, &mut News) -> Vec<Output>,
    ) {
        let mut news = Vec::new();
        {
            let mut state = self.state.lock();
            if state.session.as_ref().is_none_or(|ours| ours.epoch() != session.epoch()) {
                return;
            }
            let outputs = input(self, &mut state, &mut news);
            self.carry_out(&mut state, outputs, &mut news);
        }
        tell(news);
    }

    /// An acquisition is given up, or a hold is: its node is deleted, if it has or will have one.
    ///
    /// `released`, if given, is told how the delete went; it is dropped unanswered if there is
    /// nothing to delete any more.
    fn leave(
        self: &Arc<Self>,
        session: &Session,
        id: NodeId,
        released: Option<oneshot::Sender<Result<(), Error>>>,
    ) {
        self.input(session, |_, state, _| {
            let Some(entry) = state.entries.get_mut(&id) else { return Vec::new() };
            entry.verdict = None;
            entry.released = released;
            state.leave(id)
        });
    }

    /// Watches the node of a hold, unless it is watched already.
    fn watch_own_node(self: &Arc<Self>, session: &Session, id: NodeId) {
        self.input(session, |queue, state, _| {
            queue.send_own_watch(state, id);
            Vec::new()
        });
    }

    /// Carries out the mirror's commands, in order.
    fn carry_out(self: &Arc<Self>, state: &mut State, outputs: Vec<Output>, news: &mut News) {
        for output in outputs {
            match output {
                Output::Delete(id) => self.send_delete(state, id),
                Output::Create(id, list) => self.send_create(state, id, list),
                Output::List(stamp) => self.send_list(state, stamp),
                Output::Watch(stamp, name) => self.send_watch(state, stamp, &name),
                Output::Unwatch(stamp) => drop(state.watch.take_if(|(armed, _)| *armed == stamp)),
                Output::Grant(id) => grant(state, id, news),
                Output::Blocked(id) => {
                    conclude(state, id, Verdict::Blocked, news);
                    state.forget_unsent(id);
                }
                Output::Refuse(id, refusal) => {
                    conclude(state, id, Verdict::Failed(self.refused(&refusal)), news);
                }
                Output::Vanished(id) => {
                    conclude(state, id, Verdict::Vanished, news);
                    if let Some(life) = state.entries.remove(&id).and_then(|entry| entry.life) {
                        life.end(HoldEnd::NodeDeleted);
                    }
                }
                Output::Lost(id) => {
                    conclude(state, id, Verdict::Lost, news);
                    state.entries.remove(&id);
                }
            }
        }
        if let Some(id) = state.mirror.waits_for_foreign() {
            self.send_own_watch(state, id);
        }
    }

    fn refused(&self, refusal: &Refusal) -> Error {
        let ours = self.family.recipe;
        let reason = match refusal {
            Refusal::Exhausted(number) => format!(
                "the directory's counter is at its end ({number}): let all contenders leave and \
                 delete the directory, then its numbers begin anew"
            ),
            Refusal::OtherRecipe(theirs) => format!(
                "a {ours} cannot share its path with a {theirs}, whose nodes are there: use \
                 another path"
            ),
        };
        Error::Refused { path: Arc::clone(&self.path), reason: reason.into() }
    }
}

/// Grants, if the session still vouches for it.
fn grant(state: &mut State, id: NodeId, news: &mut News) {
    let is_valid = state.session.as_ref().is_some_and(Session::is_valid);
    let granted = state.entries.get_mut(&id).and_then(|entry| {
        let node = entry.node.clone()?;
        let life = entry.life.insert(Arc::new(Life::default()));
        Some(Verdict::Granted(node, Arc::clone(life)))
    });
    conclude(state, id, granted.filter(|_| is_valid).unwrap_or(Verdict::Lost), news);
}

fn conclude(state: &mut State, id: NodeId, verdict: Verdict, news: &mut News) {
    let sender = state.entries.get_mut(&id).and_then(|entry| entry.verdict.take());
    news.extend(sender.map(|sender| (sender, verdict)));
}

fn tell(news: News) {
    for (sender, verdict) in news {
        // Whoever has gone meanwhile leaves by itself.
        let _ = sender.send(verdict);
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("path", &self.path)
            .field("family", &self.family)
            .finish_non_exhaustive()
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.client.slot::<Registry>().forget(&self.client.full_path(&self.path), self.family);
    }
}
