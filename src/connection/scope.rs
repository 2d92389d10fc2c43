//! A connection seen from a root: what every operation of a client works on.

use std::time::{Duration, Instant};

use super::core::Config;
use super::handle::Connection;
use super::pause::Pause;
use super::session::Session;
use crate::error::Result;
use crate::path::Root;

/// A connection and the root below which the paths of a client lie.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    connection: Connection,
    root: Root,
}

impl Scope {
    pub(crate) fn new(connection: Connection, root: Root) -> Self {
        Self { connection, root }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn config(&self) -> &Config {
        self.connection.config()
    }

    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    /// A connected session, waited for until `deadline` at most (`None` = for ever).
    pub(crate) async fn session_until(&self, deadline: Option<Instant>) -> Result<Session> {
        Ok(self.connection.session_until(deadline).await?.rooted(self.root.clone()))
    }

    /// The session of a connected or suspended client.
    pub(crate) fn session(&self) -> Option<Session> {
        Some(self.connection.session()?.rooted(self.root.clone()))
    }

    pub(crate) fn pause(&self, duration: Duration) -> Pause {
        Pause::new(self.connection.runtime(), duration)
    }
}
