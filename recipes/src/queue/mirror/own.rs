//! Our own nodes in the queue, and the line in which they stand.

use std::collections::{BTreeMap, BTreeSet};

use super::output::{Mode, NodeId};
use crate::queue::node::{Kind, Number};

/// Our nodes by identity, and in queue order those of them that block others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct OwnNodes {
    nodes: BTreeMap<NodeId, Own>,
    line: BTreeSet<Place>,
}

impl OwnNodes {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn get(&self, id: NodeId) -> Option<&Own> {
        self.nodes.get(&id)
    }

    pub(super) fn stage(&self, id: NodeId) -> Option<Stage> {
        self.nodes.get(&id).map(|own| own.stage)
    }

    pub(super) fn contains(&self, id: NodeId) -> bool {
        self.nodes.contains_key(&id)
    }

    pub(super) fn insert(&mut self, id: NodeId, own: Own) {
        self.remove(id);
        self.nodes.insert(id, own);
    }

    pub(super) fn remove(&mut self, id: NodeId) -> bool {
        self.advance(id, Stage::Leaving);
        self.nodes.remove(&id).is_some()
    }

    /// Brings a node to its next stage, and to its place in the line or out of it.
    pub(super) fn advance(&mut self, id: NodeId, next: Stage) {
        let Some(own) = self.nodes.get_mut(&id) else { return };
        if let Some(place) = own.place(id) {
            self.line.remove(&place);
        }
        own.stage = next;
        if let Some(place) = own.place(id) {
            self.line.insert(place);
        }
    }

    /// Whether any node lives, so that the directory exists.
    pub(super) fn is_present(&self) -> bool {
        self.line.iter().any(|place| self.lives(place.id))
    }

    pub(super) fn lives(&self, id: NodeId) -> bool {
        self.stage(id).is_some_and(Stage::lives)
    }

    pub(super) fn living(&self) -> BTreeSet<NodeId> {
        self.line.iter().map(|place| place.id).filter(|id| self.lives(*id)).collect()
    }

    pub(super) fn first_waiter(&self) -> Option<Place> {
        let is_waiting = |id| matches!(self.stage(id), Some(Stage::Waiting(_)));
        self.line.iter().find(|place| is_waiting(place.id)).copied()
    }

    /// Whether a node that blocks stands ahead of this place and conflicts with it.
    pub(super) fn conflicts_ahead(&self, place: Place) -> bool {
        self.line.range(..place).any(|ahead| ahead.kind.conflicts(place.kind))
    }

    /// Whether a node that lives conflicts with this kind.
    pub(super) fn conflicts_anywhere(&self, kind: Kind) -> bool {
        self.line.iter().any(|place| place.kind.conflicts(kind) && self.lives(place.id))
    }

    /// Whether a node that lives has this number.
    pub(super) fn has_living_at(&self, number: Number) -> bool {
        let lowest = Place { number, kind: Kind::Shared, id: NodeId::nil() };
        let mut places = self.line.range(lowest..).take_while(|place| place.number == number);
        places.any(|place| self.lives(place.id))
    }

    pub(super) fn has_open_try(&self) -> bool {
        self.nodes.values().any(Own::is_open_try)
    }

    /// The acquisitions that have not ended, in queue order where their place is known.
    pub(super) fn acquisitions(&self) -> impl Iterator<Item = NodeId> {
        let is_unplaced = |own: &Own| matches!(own.stage, Stage::Creating { shown: None, .. });
        let unplaced = self.nodes.iter().filter(move |(_, own)| is_unplaced(own));
        self.line.iter().map(|place| place.id).chain(unplaced.map(|(id, _)| *id))
    }
}

/// One of our nodes, from the sending of its create until its end is certain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Own {
    pub(super) kind: Kind,
    pub(super) mode: Mode,
    pub(super) stage: Stage,
}

impl Own {
    /// Whether it is a try that has its node and is neither granted nor found blocked.
    pub(super) fn is_open_try(&self) -> bool {
        self.mode == Mode::Try && matches!(self.stage, Stage::Waiting(_))
    }

    /// Where it blocks others.
    pub(super) fn place(&self, id: NodeId) -> Option<Place> {
        let number = match self.stage {
            Stage::Creating { shown, .. } => shown?,
            Stage::Waiting(number) | Stage::Granted(number) => number,
            Stage::Abandoned | Stage::Leaving => return None,
        };
        Some(Place { number, kind: self.kind, id })
    }
}

/// How far one of our nodes has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// Its create is under way.
    Creating {
        /// The number a list has shown for it.
        shown: Option<Number>,
        /// What was known when the create was sent: its number must be higher.
        floor: Option<Number>,
    },
    /// Its create is under way, and its delete will follow.
    Abandoned,
    /// It has its node and waits for its turn.
    Waiting(Number),
    /// It holds the lock.
    Granted(Number),
    /// Its delete is sent.
    Leaving,
}

impl Stage {
    fn lives(self) -> bool {
        matches!(self, Stage::Waiting(_) | Stage::Granted(_))
    }
}

/// Where one of our nodes stands in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub(super) number: Number,
    pub(super) kind: Kind,
    pub(super) id: NodeId,
}
