//! What an acquisition, a hold or a release can fail with.

use std::fmt;
use std::sync::Arc;

use zookeeper_framework::{ErrorKind, LostReason, Outcome};

/// A `Result` with the recipes' [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something was not held any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HoldEnd {
    /// It was released.
    Released,
    /// The session by which it was held is over.
    SessionLost(LostReason),
    /// Its node was deleted by somebody else: a forced release.
    NodeDeleted,
}

impl fmt::Display for HoldEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Released => f.write_str("it was released"),
            Self::SessionLost(reason) => reason.fmt(f),
            Self::NodeDeleted => f.write_str("its node was deleted by somebody else"),
        }
    }
}

/// An error of a recipe; cheap to clone.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The lock was not granted in time. Nothing is left behind.
    #[non_exhaustive]
    TimedOut {
        /// The path of the lock.
        path: Arc<str>,
        /// Why the wait was in vain, where it was not for the sake of another contender: there was
        /// no connection.
        cause: Option<zookeeper_framework::Error>,
    },
    /// The owner's hold has ended: what was held is held no more, or a guard that is still alive
    /// keeps the owner from entering anew.
    #[non_exhaustive]
    Lost {
        /// The path of the lock.
        path: Arc<str>,
        /// What ended the hold.
        reason: HoldEnd,
    },
    /// The lock cannot be used as it is; the text says why and what to do.
    #[non_exhaustive]
    Refused {
        /// The path of the lock.
        path: Arc<str>,
        /// Why, and what to do.
        reason: Arc<str>,
    },
    /// The client was closed.
    #[non_exhaustive]
    Closed {
        /// The path of the lock.
        path: Arc<str>,
        /// Whether what was asked for may have happened before.
        outcome: Outcome,
    },
    /// The server refused an operation of a transaction; nothing was changed.
    #[non_exhaustive]
    Transaction {
        /// The operation, counted from 0.
        index: usize,
        /// Why.
        error: zookeeper_framework::Error,
    },
    /// The framework failed: the server refused something, or could not be asked.
    Framework(zookeeper_framework::Error),
}

impl Error {
    /// The path of the lock, where there is one.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::TimedOut { path, .. }
            | Self::Lost { path, .. }
            | Self::Refused { path, .. }
            | Self::Closed { path, .. } => Some(path),
            Self::Transaction { error, .. } | Self::Framework(error) => error.path(),
        }
    }

    /// Whether what was asked for may have happened all the same.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::TimedOut { .. } | Self::Lost { .. } | Self::Refused { .. } => Outcome::NotApplied,
            Self::Closed { outcome, .. } => *outcome,
            Self::Transaction { error, .. } | Self::Framework(error) => error.outcome(),
        }
    }

    pub(crate) fn timed_out(path: &Arc<str>) -> Self {
        Self::TimedOut { path: Arc::clone(path), cause: None }
    }

    pub(crate) fn closed(path: &Arc<str>) -> Self {
        Self::Closed { path: Arc::clone(path), outcome: Outcome::NotApplied }
    }

    /// An error of the framework that ended a call on the lock of this path.
    pub(crate) fn at(path: &Arc<str>, error: zookeeper_framework::Error) -> Self {
        if error.kind() == ErrorKind::Closed {
            Self::Closed { path: Arc::clone(path), outcome: error.outcome() }
        } else {
            Self::Framework(error.with_path(Arc::clone(path)))
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut { path, cause: None } => write!(f, "{path}: not granted in time"),
            Self::TimedOut { path, cause: Some(cause) } => {
                write!(f, "{path}: not granted in time: {cause}")
            }
            Self::Lost { path, reason } => {
                write!(f, "{path}: the hold of this owner has ended: {reason}")
            }
            Self::Transaction { index, error } => {
                write!(f, "operation {index} of the transaction: {error}")
            }
            Self::Refused { path, reason } => write!(f, "{path}: {reason}"),
            Self::Closed { path, .. } => write!(f, "{path}: the client was closed"),
            Self::Framework(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Transaction { error, .. } | Self::Framework(error) => Some(error),
            Self::TimedOut { cause, .. } => cause.as_ref().map(|cause| cause as _),
            Self::Lost { .. } | Self::Refused { .. } | Self::Closed { .. } => None,
        }
    }
}

impl From<zookeeper_framework::Error> for Error {
    fn from(error: zookeeper_framework::Error) -> Self {
        let path = error.path().map(Arc::from);
        match path {
            Some(path) => Self::at(&path, error),
            None => Self::Framework(error),
        }
    }
}
