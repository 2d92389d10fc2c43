//! The settings of a server, and its start on ports that nobody else took.

use std::time::Duration;

use crate::config::Config;
use crate::error::{Error, ErrorKind};
use crate::java::Java;
use crate::ports::free_ports;
use crate::server::ZooKeeperServer;

const START_ATTEMPTS: usize = 5;

/// The settings of a [`ZooKeeperServer`] that is to be started.
#[derive(Clone, Debug, Default)]
pub struct ServerBuilder {
    config: Config,
}

impl ServerBuilder {
    /// The length of a tick, from 1 ms to 30 s, by default 200 ms.
    ///
    /// Session timeouts lie between two ticks and 60 s, and sessions end on a tick.
    #[must_use]
    pub fn tick_time(mut self, tick: Duration) -> Self {
        self.config.tick_time = tick;
        self
    }

    /// How often the server looks for empty containers and outlived TTL nodes, from 1 ms to a day,
    /// by default each second.
    #[must_use]
    pub fn container_check_interval(mut self, interval: Duration) -> Self {
        self.config.container_check_interval = interval;
        self
    }

    /// One more line `key=value` for `zoo.cfg`; it wins over a default of this crate.
    #[must_use]
    pub fn config(mut self, key: &str, value: &str) -> Self {
        self.config.lines.push((key.to_owned(), value.to_owned()));
        self
    }

    /// One more system property for the Java process; it wins over a default of this crate.
    #[must_use]
    pub fn system_property(mut self, key: &str, value: &str) -> Self {
        self.config.properties.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Starts the server and waits until it serves.
    ///
    /// # Errors
    ///
    /// Java or ZooKeeper is missing or too old, a setting is not valid, or the server did not come
    /// up; then the error carries the tail of its log.
    pub fn start(self) -> Result<ZooKeeperServer, Error> {
        let config = self.into_checked_config()?;
        let java = Java::find()?;
        retry_on_taken_ports(|| {
            let port = free_ports(1).map_err(|error| Error::io("ports", &error))?[0];
            let server = ZooKeeperServer::prepare(&java, &config, port, None)?;
            server.launch()?;
            server.wait_until_serving()?;
            Ok(server)
        })
    }

    pub(crate) fn into_checked_config(self) -> Result<Config, Error> {
        self.config.check()?;
        Ok(self.config)
    }
}

/// Starts once more when another process took a port between the search and the start.
pub(crate) fn retry_on_taken_ports<T>(
    mut start: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    let mut result = start();
    for _ in 1..START_ATTEMPTS {
        match &result {
            Err(error) if is_taken_port(error) => result = start(),
            Ok(_) | Err(_) => break,
        }
    }
    result
}

fn is_taken_port(error: &Error) -> bool {
    let text = error.to_string();
    error.kind() == ErrorKind::StartFailed
        && (text.contains("BindException") || text.contains("Address already in use"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken() -> Error {
        Error::new(ErrorKind::StartFailed, "java.net.BindException: Address already in use")
    }

    #[test]
    fn a_taken_port_is_retried_and_another_failure_is_not() {
        let mut attempts = 0;
        let result = retry_on_taken_ports(|| {
            attempts += 1;
            if attempts < 3 { Err(taken()) } else { Ok(attempts) }
        });
        assert_eq!(result.unwrap(), 3);

        let mut attempts = 0;
        let result: Result<(), Error> = retry_on_taken_ports(|| {
            attempts += 1;
            Err(Error::new(ErrorKind::StartFailed, "out of memory"))
        });
        assert!(result.is_err());
        assert_eq!(attempts, 1);
    }
}
