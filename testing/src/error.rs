//! What can go wrong with a server, in words that name what to do about it.

use std::fmt;
use std::io;

/// The reason of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Java or ZooKeeper's jars were not found on this machine.
    NotInstalled,
    /// The ZooKeeper that was found is too old.
    UnsupportedVersion,
    /// A setting can never work; the text names its value.
    InvalidArgument,
    /// The server ended instead of serving; the text ends with the tail of its log.
    StartFailed,
    /// The server, or the ensemble, did not reach the state in time.
    TimedOut,
    /// The server has no process at the moment.
    NotRunning,
    /// The server has a process already.
    Running,
    /// The operating system refused something.
    Io,
}

/// An error of a [`ZooKeeperServer`](crate::ZooKeeperServer) or a
/// [`ZooKeeperCluster`](crate::ZooKeeperCluster).
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    text: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    pub(crate) fn io(what: impl fmt::Display, error: &io::Error) -> Self {
        Self::new(ErrorKind::Io, format!("{what}: {error}"))
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}
