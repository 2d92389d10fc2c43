//! Lets clients in, or not.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::sleep;

use super::connection::{Connection, reset};
use super::settings::{Admission, Settings};
use super::shared::Shared;

/// How long to wait where the process has no more file descriptors.
const PAUSE: Duration = Duration::from_millis(10);

/// Listens until the proxy is dropped. The connections end with the runtime that ran this.
pub(super) async fn listen(
    listener: TcpListener,
    mut settings: watch::Receiver<Settings>,
    shared: Arc<Shared>,
) {
    let listener = tokio::net::TcpListener::from_std(listener)
        .expect("a non-blocking listener on a runtime with I/O can be registered");
    loop {
        tokio::select! {
            biased;
            changed = settings.changed() => {
                let admission = settings.borrow_and_update().admission;
                if changed.is_err() || admission == Admission::Closed {
                    return;
                }
            }
            accepted = listener.accept() => match accepted {
                Ok((client, _)) => admit(client, &settings, &shared),
                Err(_) => sleep(PAUSE).await,
            },
        }
    }
}

fn admit(client: TcpStream, settings: &watch::Receiver<Settings>, shared: &Arc<Shared>) {
    let admission = settings.borrow().admission;
    match (admission, prepare(&client)) {
        (Admission::Accept, Ok(())) => {
            let connection = Connection::begin(client, settings.clone(), shared.clone());
            tokio::spawn(connection.serve());
        }
        (Admission::Accept, Err(_)) | (Admission::Refuse | Admission::Closed, _) => reset(client),
    }
}

fn prepare(client: &TcpStream) -> io::Result<()> {
    client.set_nodelay(true)
}
