//! The process under test: the real mirror, and a model of the requests and answers around it.
//!
//! Requests are served in the order sent; answers are handled in the order that the search
//! picks. A cut of the connection keeps a prefix of the answers and fails a prefix of the
//! requests, which the server may still serve; the rest goes out over the next connection.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::super::{Mirror, Mode, NodeId, Output, Stamp};
use super::server::{Change, Owner, Server};
use super::{Acquisition, Setup, Tampering};
use crate::queue::node::{Kind, Number};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Request {
    Create(NodeId, Kind),
    /// A list, and the create right ahead of it in the same flight.
    List(Stamp, Option<NodeId>),
    Watch(Stamp, Arc<str>),
    Delete(NodeId),
    /// Sync, list and look for the node, after a create whose outcome is unknown.
    Find(NodeId),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Answer {
    Created(NodeId, Number),
    Listed(Stamp, Option<NodeId>, Vec<Arc<str>>),
    Watched(Stamp, bool),
    /// Whether the delete found the node.
    Deleted(NodeId, bool),
    /// The watch on a node of ours saw that somebody else deleted it.
    Removed(NodeId),
    Found(NodeId, Option<Number>),
    Event(Stamp, Change),
    /// The connection was lost before the answer came: the outcome is unknown.
    Failed(Request),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Local {
    Idle,
    Waiting(NodeId),
    Holding(NodeId),
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Process {
    pub(super) mirror: Mirror,
    pub(super) locals: Vec<Local>,
    attempts: Vec<u8>,
    pub(super) epoch: u8,
    pub(super) is_connected: bool,
    /// Requests sent, or held until there is a connection again.
    pub(super) pipe: VecDeque<Request>,
    /// Requests failed by a cut or an expiry that the server may still serve.
    pub(super) ghosts: VecDeque<Request>,
    /// The ghosts belong to this epoch, whose session the server has not ended yet.
    pub(super) dying: Option<u8>,
    pub(super) answers: Vec<Answer>,
    /// Nodes whose delete was sent before, with an unknown outcome.
    doubtful: BTreeSet<NodeId>,
    /// Removals that are told on the next connection.
    removed: Vec<NodeId>,
    /// Watches to be set anew on the next connection, with an event that was lost.
    rearm: Vec<(Stamp, Arc<str>, Option<Change>)>,
    /// Names whose end has been handled: no watch may be set on them again, as long as a node
    /// of ours lives.
    ended: BTreeSet<Arc<str>>,
}

impl Process {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            mirror: Mirror::new(setup.family, setup.bound),
            locals: vec![Local::Idle; setup.locals.len()],
            attempts: vec![0; setup.locals.len()],
            epoch: 0,
            is_connected: true,
            pipe: VecDeque::new(),
            ghosts: VecDeque::new(),
            dying: None,
            answers: Vec::new(),
            doubtful: BTreeSet::new(),
            removed: Vec::new(),
            rearm: Vec::new(),
            ended: BTreeSet::new(),
        }
    }

    pub(super) fn arrive(&mut self, index: usize, setup: &Setup) -> Result<Vec<usize>, String> {
        self.attempts[index] += 1;
        let id = NodeId::from_u128(((index as u128 + 1) << 8) | u128::from(self.attempts[index]));
        self.locals[index] = Local::Waiting(id);
        let Acquisition { kind, mode } = setup.locals[index];
        let out = self.mirror.enter(id, kind, mode);
        self.carry_out(out, setup)
    }

    pub(super) fn leave(&mut self, index: usize, setup: &Setup) -> Result<Vec<usize>, String> {
        let before = std::mem::replace(&mut self.locals[index], Local::Done);
        match before {
            Local::Waiting(id) | Local::Holding(id) => {
                let out = self.mirror.leave(id);
                self.carry_out(out, setup)
            }
            Local::Idle | Local::Done => Ok(Vec::new()),
        }
    }

    /// The session's validity ends: every hold with it, before anyone else can know.
    pub(super) fn expire(&mut self, setup: &Setup) -> Result<Vec<usize>, String> {
        self.dying = Some(self.epoch);
        self.epoch += 1;
        self.ghosts.append(&mut self.pipe);
        self.ghosts.retain(|ghost| matches!(ghost, Request::Create(..) | Request::Delete(_)));
        self.answers.clear();
        self.doubtful.clear();
        self.removed.clear();
        self.rearm.clear();
        self.ended.clear();
        self.is_connected = true;
        let out = self.mirror.epoch_over();
        self.carry_out(out, setup)
    }

    pub(super) fn cut(&mut self, kept: usize, failed: usize, server: &mut Server) {
        self.is_connected = false;
        self.rearm = server.watches.drain(..).map(|(stamp, name)| (stamp, name, None)).collect();
        for answer in self.answers.split_off(kept) {
            let unknown = match answer {
                Answer::Created(id, _) => Request::Create(id, Kind::Shared),
                Answer::Listed(stamp, flight, _) => Request::List(stamp, flight),
                Answer::Watched(stamp, _) => {
                    // The client never learned of this watch, so it does not set it anew.
                    self.rearm.retain(|(armed, ..)| *armed != stamp);
                    Request::Watch(stamp, "".into())
                }
                Answer::Deleted(id, _) => Request::Delete(id),
                Answer::Removed(id) => {
                    self.removed.push(id);
                    continue;
                }
                Answer::Found(id, _) => Request::Find(id),
                Answer::Event(stamp, change) => {
                    self.rearm.push((stamp, "".into(), Some(change)));
                    continue;
                }
                Answer::Failed(request) => request,
            };
            self.answers.push(Answer::Failed(unknown));
        }
        for request in self.pipe.drain(..failed) {
            self.ghosts.push_back(request.clone());
            self.answers.push(Answer::Failed(request));
        }
    }

    pub(super) fn reattach(&mut self, server: &mut Server) {
        self.is_connected = true;
        self.ghosts.clear();
        self.answers.extend(self.removed.drain(..).map(Answer::Removed));
        for (stamp, name, missed) in std::mem::take(&mut self.rearm) {
            match missed {
                Some(change) => self.answers.push(Answer::Event(stamp, change)),
                None if server.has(&name) => server.watches.push((stamp, name)),
                None => self.answers.push(Answer::Event(stamp, Change::Gone)),
            }
        }
    }

    /// The server serves the next request.
    pub(super) fn serve(&mut self, server: &mut Server) -> Result<(), String> {
        let owner = Owner::Process(self.epoch);
        let Some(request) = self.pipe.pop_front() else { return Ok(()) };
        let answer = match request {
            Request::Create(id, kind) => {
                if server.find(id).is_some() {
                    return Err(format!("{id} has two nodes"));
                }
                Answer::Created(id, server.create(id, owner, kind))
            }
            Request::List(stamp, flight) => Answer::Listed(stamp, flight, server.names()),
            Request::Watch(stamp, name) => {
                let is_there = server.has(&name);
                if is_there {
                    server.watches.push((stamp, name));
                }
                Answer::Watched(stamp, is_there)
            }
            Request::Delete(id) => {
                let is_there = server.find(id).is_some() || self.doubtful.remove(&id);
                self.fire(server.delete(|node| node.id == id));
                Answer::Deleted(id, is_there)
            }
            Request::Find(id) => Answer::Found(id, server.find(id).map(|node| node.number)),
        };
        self.answers.push(answer);
        Ok(())
    }

    /// The server serves the next request that the process has given up on.
    pub(super) fn serve_ghost(&mut self, server: &mut Server) {
        let owner = Owner::Process(self.dying.unwrap_or(self.epoch));
        match self.ghosts.pop_front() {
            Some(Request::Create(id, kind)) if server.find(id).is_none() => {
                server.create(id, owner, kind);
            }
            Some(Request::Delete(id)) => self.fire(server.delete(|node| node.id == id)),
            Some(_) | None => {}
        }
    }

    pub(super) fn fire(&mut self, events: Vec<(Stamp, Change)>) {
        self.answers.extend(events.into_iter().map(|(stamp, change)| Answer::Event(stamp, change)));
    }

    /// Somebody removed this node of ours by hand. Its watch tells it, if it has one by now, unless
    /// its delete is sent already.
    pub(super) fn miss(&mut self, id: NodeId) {
        match (self.mirror.own.lives(id), self.is_connected) {
            (true, true) => self.answers.push(Answer::Removed(id)),
            (true, false) => self.removed.push(id),
            (false, _) => {}
        }
    }

    /// Whether the answer at this index may be handled next, when answers may be handled in any
    /// order: behind the create of its own flight, and behind the answer that set its watch.
    pub(super) fn may_handle(&self, index: usize) -> bool {
        let is_before = |answer: &Answer| match (&self.answers[index], answer) {
            (
                Answer::Listed(_, Some(flight), _) | Answer::Failed(Request::List(_, Some(flight))),
                Answer::Created(id, _) | Answer::Failed(Request::Create(id, _)),
            ) => id == flight,
            (Answer::Event(stamp, _), Answer::Watched(armed, _)) => armed == stamp,
            _ => false,
        };
        !self.answers[..index].iter().any(is_before)
    }

    pub(super) fn handle(&mut self, index: usize, setup: &Setup) -> Result<Vec<usize>, String> {
        let out = match self.answers.remove(index) {
            Answer::Created(id, number) | Answer::Found(id, Some(number)) => {
                let mut out = self.mirror.created(id, number);
                let waits = self.locals[index_of(id)] == Local::Waiting(id);
                let is_early = waits && !out.contains(&Output::Grant(id));
                if is_early && setup.tampering == Tampering::EarlyGrant {
                    out.push(Output::Grant(id));
                }
                out
            }
            Answer::Found(id, None) => self.mirror.not_created(id),
            Answer::Listed(stamp, _, names) => self.mirror.listed(stamp, &names),
            Answer::Watched(_, true) => Vec::new(),
            Answer::Deleted(id, true) => self.mirror.deleted(id),
            Answer::Deleted(id, false) | Answer::Removed(id) => self.mirror.removed(id),
            Answer::Event(..) if setup.tampering == Tampering::LostEvents => Vec::new(),
            Answer::Event(stamp, Change::Data)
                if setup.tampering != Tampering::DataChangeIsDeletion =>
            {
                self.mirror.watch_spent(stamp)
            }
            Answer::Watched(stamp, false) | Answer::Event(stamp, _) => self.end(stamp),
            Answer::Failed(Request::Create(id, _) | Request::Find(id)) => {
                self.pipe.push_back(Request::Find(id));
                Vec::new()
            }
            Answer::Failed(Request::Delete(id)) => {
                self.doubtful.insert(id);
                self.pipe.push_back(Request::Delete(id));
                Vec::new()
            }
            Answer::Failed(Request::List(stamp, _)) => self.mirror.list_failed(stamp),
            Answer::Failed(Request::Watch(stamp, _)) => self.mirror.watch_spent(stamp),
        };
        self.carry_out(out, setup)
    }

    fn end(&mut self, stamp: Stamp) -> Vec<Output> {
        let watch = self.mirror.watch.as_ref().filter(|watch| watch.stamp == stamp);
        self.ended.extend(watch.map(|watch| Arc::clone(&watch.node.name)));
        self.mirror.watch_gone(stamp)
    }

    /// Carries out the mirror's commands and answers which acquisitions were granted.
    fn carry_out(&mut self, out: Vec<Output>, setup: &Setup) -> Result<Vec<usize>, String> {
        if !self.mirror.own.is_present() {
            self.ended.clear();
        }
        let mut granted = Vec::new();
        for command in out {
            match command {
                Output::Delete(_) if setup.tampering == Tampering::LostDeletes => {}
                Output::Delete(id) => self.pipe.push_back(Request::Delete(id)),
                Output::Grant(id)
                    if setup.tampering == Tampering::EarlyGrant
                        && self.locals[index_of(id)] == Local::Holding(id) => {}
                Output::Grant(id) => {
                    let index = self.waiting(id)?;
                    self.locals[index] = Local::Holding(id);
                    granted.push(index);
                }
                Output::Blocked(id) => {
                    let index = self.waiting(id)?;
                    if setup.locals[index].mode != Mode::Try {
                        return Err(format!("{id} was turned away though it waits"));
                    }
                    self.locals[index] = Local::Done;
                }
                Output::Refuse(id, refusal) => return Err(format!("{id} refused: {refusal:?}")),
                Output::Vanished(id) | Output::Lost(id) => self.lose(id),
                Output::Unwatch(stamp) => self.rearm.retain(|(armed, ..)| *armed != stamp),
                Output::Create(id, list) => {
                    let kind = setup.locals[index_of(id)].kind;
                    self.pipe.push_back(Request::Create(id, kind));
                    self.pipe.extend(list.map(|stamp| Request::List(stamp, Some(id))));
                }
                Output::List(stamp) => self.pipe.push_back(Request::List(stamp, None)),
                Output::Watch(_, name) if self.ended.contains(&name) => {
                    return Err(format!("a watch on {name}, whose end was handled"));
                }
                Output::Watch(stamp, name) => self.pipe.push_back(Request::Watch(stamp, name)),
            }
        }
        Ok(granted)
    }

    fn waiting(&self, id: NodeId) -> Result<usize, String> {
        let index = index_of(id);
        if self.locals[index] == Local::Waiting(id) {
            Ok(index)
        } else {
            Err(format!("a verdict on {id}, which does not wait"))
        }
    }

    /// A hold is over for good; a waiter starts anew.
    fn lose(&mut self, id: NodeId) {
        let local = &mut self.locals[index_of(id)];
        *local = if *local == Local::Waiting(id) { Local::Idle } else { Local::Done };
    }

    /// Renames the stamps by the order in which they appear, so that states which differ in
    /// them alone are one state.
    pub(super) fn normalize(&mut self, server: &mut Server) {
        let mut seen: Vec<Stamp> = Vec::new();
        let mut rename = |stamp: &mut Stamp| {
            let rank = seen.iter().position(|known| known == stamp).unwrap_or_else(|| {
                seen.push(*stamp);
                seen.len() - 1
            });
            *stamp = Stamp(rank as u64);
        };
        self.mirror.listing.iter_mut().for_each(|listing| rename(&mut listing.stamp));
        self.mirror.watch.iter_mut().for_each(|watch| rename(&mut watch.stamp));
        server.watches.iter_mut().for_each(|(stamp, _)| rename(stamp));
        self.rearm.iter_mut().for_each(|(stamp, ..)| rename(stamp));
        let failed = self.answers.iter_mut().filter_map(|answer| match answer {
            Answer::Failed(request) => request.stamp(),
            Answer::Listed(stamp, ..) | Answer::Watched(stamp, _) | Answer::Event(stamp, _) => {
                Some(stamp)
            }
            Answer::Created(..) | Answer::Deleted(..) | Answer::Removed(_) | Answer::Found(..) => {
                None
            }
        });
        failed.for_each(&mut rename);
        let requests = self.pipe.iter_mut().chain(&mut self.ghosts);
        requests.filter_map(Request::stamp).for_each(&mut rename);
        self.mirror.next_stamp = seen.len() as u64;
    }
}

impl Request {
    fn stamp(&mut self) -> Option<&mut Stamp> {
        match self {
            Request::List(stamp, _) | Request::Watch(stamp, _) => Some(stamp),
            Request::Create(..) | Request::Delete(_) | Request::Find(_) => None,
        }
    }
}

/// The local acquisition that a node belongs to.
fn index_of(id: NodeId) -> usize {
    (id.as_u128() >> 8) as usize - 1
}
