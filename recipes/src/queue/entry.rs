//! What the queue keeps of one acquisition, from its first request to the end of its node.

use std::sync::Arc;

use tokio::sync::oneshot;
use zookeeper_framework::{Acl, CleanupPlace};

use super::budget::Budget;
use super::life::Life;
use super::node::Kind;
use crate::error::Error;

/// What an acquisition asks for.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) kind: Kind,
    /// What stands before the number in the node's name.
    pub(crate) marker: &'static str,
    pub(crate) data: Arc<[u8]>,
    pub(crate) acl: Arc<[Acl]>,
    pub(crate) budget: Arc<Budget>,
}

/// What becomes of an acquisition.
#[derive(Debug)]
pub(super) enum Verdict {
    /// The lock is held, by this node.
    Granted(Node, Arc<Life>),
    /// It would have to wait, and was told not to.
    Blocked,
    /// It fails.
    Failed(Error),
    /// Somebody deleted its node.
    Vanished,
    /// The session is over.
    Lost,
}

/// A node of ours that exists.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) path: Arc<str>,
    /// The transaction that created it.
    pub(super) czxid: i64,
}

pub(super) struct Entry {
    pub(super) request: Request,
    /// Whoever waits for the outcome; gone once told or given up.
    pub(super) verdict: Option<oneshot::Sender<Verdict>>,
    /// A create was sent.
    pub(super) is_sent: bool,
    /// Its delete was sent, so that its end is our own doing.
    pub(super) is_leaving: bool,
    /// Its own node is watched.
    pub(super) is_watched: bool,
    /// How often the directory was missing.
    pub(super) missing_directory: usize,
    pub(super) node: Option<Node>,
    /// The hold, once it was granted.
    pub(super) life: Option<Arc<Life>>,
    /// Whoever waits for the delete.
    pub(super) released: Option<oneshot::Sender<Result<(), Error>>>,
    #[expect(dead_code, reason = "held until the node is certainly gone")]
    place: CleanupPlace,
}

impl Entry {
    pub(super) fn new(request: Request, place: CleanupPlace) -> (Self, oneshot::Receiver<Verdict>) {
        let (sender, receiver) = oneshot::channel();
        let entry = Self {
            request,
            verdict: Some(sender),
            is_sent: false,
            is_leaving: false,
            is_watched: false,
            missing_directory: 0,
            node: None,
            life: None,
            released: None,
            place,
        };
        (entry, receiver)
    }
}
