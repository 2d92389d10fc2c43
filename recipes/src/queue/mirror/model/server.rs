//! The server's side of the model: one directory, one-shot watches, atomic requests.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::{NodeId, Stamp};
use crate::queue::node::{Family, Kind, Number};

/// Whose session a node belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Owner {
    /// The process under test, in its session of this epoch.
    Process(u8),
    /// The foreign contender of this index.
    Foreign(u8),
}

/// How a watched node changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Change {
    /// It was deleted.
    Gone,
    /// Its data was written.
    Data,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) id: NodeId,
    pub(super) owner: Owner,
    pub(super) kind: Kind,
    pub(super) number: Number,
    /// Rises with every create, over all lives of the directory.
    pub(super) token: u8,
    pub(super) name: Arc<str>,
}

impl Node {
    fn conflicts_ahead_of(&self, other: &Node) -> bool {
        (self.number, self.kind) < (other.number, other.kind) && self.kind.conflicts(other.kind)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Server {
    family: &'static Family,
    pub(super) nodes: Vec<Node>,
    counter: Number,
    last_token: u8,
    /// The watches of the process's connection, each with the name it is set on.
    pub(super) watches: Vec<(Stamp, Arc<str>)>,
}

impl Server {
    pub(super) fn new(family: &'static Family) -> Self {
        Self { family, nodes: Vec::new(), counter: 0, last_token: 0, watches: Vec::new() }
    }

    pub(super) fn create(&mut self, id: NodeId, owner: Owner, kind: Kind) -> Number {
        let number = self.counter;
        self.last_token += 1;
        self.insert(id, owner, kind, number, self.last_token);
        number
    }

    /// Creates the reader's node of a downgrade: it keeps number and token, the counter moves on.
    pub(super) fn downgrade(&mut self, owner: Owner) {
        if let Some(node) = self.nodes.iter().find(|node| node.owner == owner) {
            let (id, number, token) = (node.id, node.number, node.token);
            self.insert(id, owner, Kind::Shared, number, token);
        }
    }

    fn insert(&mut self, id: NodeId, owner: Owner, kind: Kind, number: Number, token: u8) {
        let mut markers = self.family.markers.iter().filter(|(_, of)| *of == kind);
        let (marker, _) = markers.next().expect("the family has a marker for each kind it sees");
        let name = format!("_c_{id}-{marker}{number:010}").into();
        self.nodes.push(Node { id, owner, kind, number, token, name });
        self.counter += 1;
    }

    /// Deletes the nodes that `is_doomed` picks and fires their watches.
    pub(super) fn delete(&mut self, is_doomed: impl Fn(&Node) -> bool) -> Vec<(Stamp, Change)> {
        let doomed = self.nodes.iter().filter(|node| is_doomed(node));
        let names: BTreeSet<_> = doomed.map(|node| Arc::clone(&node.name)).collect();
        self.nodes.retain(|node| !names.contains(&node.name));
        let is_hit = |watch: &(Stamp, Arc<str>)| names.contains(&watch.1);
        let (hit, rest) = self.watches.drain(..).partition(is_hit);
        self.watches = rest;
        let hit: Vec<(Stamp, Arc<str>)> = hit;
        hit.into_iter().map(|(stamp, _)| (stamp, Change::Gone)).collect()
    }

    /// Writes the data of every watched node.
    pub(super) fn write_watched(&mut self) -> Vec<(Stamp, Change)> {
        self.watches.drain(..).map(|(stamp, _)| (stamp, Change::Data)).collect()
    }

    /// Reaps the directory: the counter starts anew.
    pub(super) fn reap(&mut self) {
        self.counter = 0;
    }

    pub(super) fn can_be_reaped(&self) -> bool {
        self.nodes.is_empty() && self.counter > 0
    }

    pub(super) fn names(&self) -> Vec<Arc<str>> {
        self.nodes.iter().map(|node| Arc::clone(&node.name)).collect()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.nodes.iter().any(|node| &*node.name == name)
    }

    pub(super) fn find(&self, id: NodeId) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    pub(super) fn is_first(&self, node: &Node) -> bool {
        !self.nodes.iter().any(|ahead| ahead.conflicts_ahead_of(node))
    }
}
