//! What can go wrong, and whether it may have happened all the same.
//!
//! An [`Error`] answers the caller's three questions: what was refused ([`Error::kind`]), whether
//! the server may have carried it out ([`Error::outcome`]) and whether asking again can help
//! ([`Error::is_retryable`]).

use std::fmt;
use std::sync::Arc;

use crate::connection::SessionEpoch;

/// A `Result` with the framework's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Whether a call that failed may have been carried out by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The server did not carry it out and will not.
    NotApplied,
    /// Nobody can tell: the request, or its reply, was lost.
    Unknown,
}

/// The reason of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument or a setting can never work; the text names the value.
    InvalidArgument,
    /// The node, or an ancestor that it needs, does not exist.
    NoNode,
    /// The node exists already.
    NodeExists,
    /// The node has another version than the one asked for.
    BadVersion,
    /// The node has children.
    NotEmpty,
    /// The parent is ephemeral, and ephemeral nodes have no children.
    NoChildrenForEphemerals,
    /// The access control list of the node does not permit this.
    NoAuth,
    /// The access control list given is not valid.
    InvalidAcl,
    /// A quota of the server is used up.
    QuotaExceeded,
    /// The server does not know this operation.
    Unimplemented,
    /// The server refused the request without looking at it because it has too much to do.
    Throttled,
    /// The connection went while the call was under way.
    ConnectionLost,
    /// No connection could be had within the connection timeout.
    NotConnected,
    /// The session ended, or is no longer known to be alive.
    SessionLost,
    /// The server refused the credentials of this client.
    AuthFailed,
    /// Too many guaranteed deletes are under way already.
    CleanupFull,
    /// Too many long paths are watched in this session already.
    WatchesFull,
    /// The client was closed.
    Closed,
    /// The server or the wire client answered something this crate does not know.
    Unexpected,
}

impl ErrorKind {
    fn text(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid argument",
            Self::NoNode => "no such node",
            Self::NodeExists => "node exists",
            Self::BadVersion => "version does not match",
            Self::NotEmpty => "node has children",
            Self::NoChildrenForEphemerals => "ephemeral nodes have no children",
            Self::NoAuth => "permission denied by the access control list",
            Self::InvalidAcl => "invalid access control list",
            Self::QuotaExceeded => "quota exceeded",
            Self::Unimplemented => "not supported by the server",
            Self::Throttled => "refused by an overloaded server",
            Self::ConnectionLost => "connection lost",
            Self::NotConnected => "not connected",
            Self::SessionLost => "session lost",
            Self::AuthFailed => "authentication failed",
            Self::CleanupFull => "too many guaranteed deletes are under way",
            Self::WatchesFull => "too many paths are watched",
            Self::Closed => "client closed",
            Self::Unexpected => "unexpected answer",
        }
    }

    /// The outcome where the call gives no better one.
    fn outcome(self) -> Outcome {
        match self {
            Self::ConnectionLost | Self::SessionLost | Self::Unexpected => Outcome::Unknown,
            Self::InvalidArgument
            | Self::NoNode
            | Self::NodeExists
            | Self::BadVersion
            | Self::NotEmpty
            | Self::NoChildrenForEphemerals
            | Self::NoAuth
            | Self::InvalidAcl
            | Self::QuotaExceeded
            | Self::Unimplemented
            | Self::Throttled
            | Self::NotConnected
            | Self::AuthFailed
            | Self::CleanupFull
            | Self::WatchesFull
            | Self::Closed => Outcome::NotApplied,
        }
    }
}

/// An error of the framework; cheap to clone.
///
/// # Examples
///
/// ```
/// use zookeeper_framework::{Client, ErrorKind, Outcome};
///
/// let error = Client::builder("zk1:2181/no//chroot").start().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::InvalidArgument);
/// assert_eq!(error.outcome(), Outcome::NotApplied);
/// assert!(error.to_string().contains("/no//chroot"));
/// ```
#[derive(Clone)]
pub struct Error(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    outcome: Outcome,
    path: Option<Arc<str>>,
    epoch: Option<SessionEpoch>,
    detail: Option<Arc<str>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind) -> Self {
        let outcome = kind.outcome();
        Self(Arc::new(Inner { kind, outcome, path: None, epoch: None, detail: None }))
    }

    pub(crate) fn invalid(detail: impl Into<Arc<str>>) -> Self {
        Self::new(ErrorKind::InvalidArgument).with_detail(detail)
    }

    pub(crate) fn with_detail(self, detail: impl Into<Arc<str>>) -> Self {
        self.change(|inner| inner.detail = Some(detail.into()))
    }

    /// The same error with another path, for whoever met it on the way to something else.
    pub fn with_path(self, path: impl Into<Arc<str>>) -> Self {
        self.change(|inner| inner.path = Some(path.into()))
    }

    pub(crate) fn with_epoch(self, epoch: SessionEpoch) -> Self {
        self.change(|inner| inner.epoch = Some(epoch))
    }

    /// The same error with another outcome, for whoever has found out what became of the call.
    pub fn with_outcome(self, outcome: Outcome) -> Self {
        self.change(|inner| inner.outcome = outcome)
    }

    fn change(mut self, set: impl FnOnce(&mut Inner)) -> Self {
        set(Arc::make_mut(&mut self.0));
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The path of the call, as the caller gave it, where there was one.
    pub fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }

    /// The epoch of the session in which the call was made, where there was one.
    pub fn epoch(&self) -> Option<SessionEpoch> {
        self.0.epoch
    }

    pub(crate) fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// Whether the server may have carried out the call all the same.
    pub fn outcome(&self) -> Outcome {
        self.0.outcome
    }

    /// Whether the same call can succeed later without any change to its arguments.
    ///
    /// This speaks of the reason alone. Whether repeating is *right* depends on
    /// [`outcome`](Self::outcome) too: the operations of [`Client`](crate::Client) never repeat a
    /// call whose outcome is unknown unless that is harmless.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.0.kind,
            ErrorKind::ConnectionLost
                | ErrorKind::NotConnected
                | ErrorKind::SessionLost
                | ErrorKind::Throttled
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.0.path {
            write!(f, "{path}: ")?;
        }
        f.write_str(self.0.kind.text())?;
        if let Some(detail) = &self.0.detail {
            write!(f, ": {detail}")?;
        }
        if let Some(epoch) = self.0.epoch {
            write!(f, " (session epoch {epoch})")?;
        }
        match self.0.outcome {
            Outcome::NotApplied => Ok(()),
            Outcome::Unknown => f.write_str("; whether it was carried out is unknown"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("outcome", &self.0.outcome)
            .field("path", &self.0.path)
            .field("epoch", &self.0.epoch)
            .field("detail", &self.0.detail)
            .finish()
    }
}

impl std::error::Error for Error {}
