//! What the failure of a request means for the queue.

use zookeeper_framework::{Error, ErrorKind, Outcome};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The node, or the directory, does not exist.
    NoNode,
    /// The session is over, and all its nodes with it.
    SessionOver,
    /// The server refused for good.
    Refused,
    /// It may have been carried out.
    InDoubt,
    /// It was not carried out, and can be sent again.
    NotApplied,
}

impl Failure {
    pub(super) fn of(error: &Error) -> Self {
        if error.kind() == ErrorKind::NoNode {
            Self::NoNode
        } else if matches!(error.kind(), ErrorKind::SessionLost | ErrorKind::Closed) {
            Self::SessionOver
        } else if error.outcome() == Outcome::Unknown {
            Self::InDoubt
        } else if error.is_retryable() {
            Self::NotApplied
        } else {
            Self::Refused
        }
    }
}
