//! What goes out of the mirror: the commands, and what they speak of.

use std::sync::Arc;

use uuid::Uuid;

use crate::queue::node::Number;

/// Identifies one acquisition and the node it creates, which carries it in its name.
pub(crate) type NodeId = Uuid;

/// Ties an answer to the list or watch that asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Stamp(pub(super) u64);

/// What an acquisition does when it is blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Mode {
    /// Waits for its turn.
    Wait,
    /// Gives up.
    Try,
}

/// Why an acquisition may not stand in this queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Refusal {
    /// The directory's counter is at its end, or past it.
    Exhausted(Number),
    /// A contender of the recipe of this name stands in the directory.
    OtherRecipe(&'static str),
}

/// A command of the mirror, to be carried out in the order given.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Output {
    /// Send the delete of this node, until its end is certain; then report `deleted`.
    Delete(NodeId),
    /// The lock is this one's.
    Grant(NodeId),
    /// A try is over: something that conflicts stood ahead. Its node, if any, is being deleted.
    Blocked(NodeId),
    /// The acquisition must fail. Its node is being deleted.
    Refuse(NodeId, Refusal),
    /// The server no longer has this node of ours: a hold was ended by force, or a waiter must
    /// start anew.
    Vanished(NodeId),
    /// The session is over, and this one's node or place with it.
    Lost(NodeId),
    /// Drop this watch; nobody needs it.
    Unwatch(Stamp),
    /// Send the create of this node, and the list right behind it if there is one.
    Create(NodeId, Option<Stamp>),
    /// List the directory.
    List(Stamp),
    /// Read the data of this node and watch it.
    Watch(Stamp, Arc<str>),
}
