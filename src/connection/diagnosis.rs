//! Why no server gave a session, in words for the person who waits for one.
//!
//! The wire client only says that it found none. This looks at each server once more and reports
//! what the operating system says of it.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

use crate::connect_string::Host;

/// How long one server is looked at.
const PATIENCE: Duration = Duration::from_millis(500);

/// One clause a server.
pub(super) async fn of(hosts: &[Host]) -> String {
    let looks: Vec<_> = hosts
        .iter()
        .cloned()
        .map(|host| (host.to_string(), spawn_blocking(move || look_at(&host))))
        .collect();
    let deadline = Instant::now() + 2 * PATIENCE;
    let mut clauses = Vec::with_capacity(looks.len());
    for (server, look) in looks {
        let said = match timeout_at(deadline, look).await {
            Ok(Ok(Ok(()))) => "accepts connections but gave no session".to_owned(),
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(_)) | Err(_) => "its name could not be looked up in time".to_owned(),
        };
        clauses.push(format!("{server}: {said}"));
    }
    clauses.join("; ")
}

fn look_at(host: &Host) -> io::Result<()> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
    for address in (host.name(), host.port()).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(_) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}
