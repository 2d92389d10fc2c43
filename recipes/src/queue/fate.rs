//! What becomes of a node of ours by the hand of others.

use std::time::Duration;

use zookeeper_framework::{ErrorKind, Session, WatchEvent, WeakClient};

/// The pause before the watch is set again after a failure.
const PAUSE: Duration = Duration::from_millis(100);

/// What is known of a node in the end.
pub(super) enum Fate {
    Deleted,
    /// It cannot be watched, or the session is over.
    Unknown,
}

/// Waits until a node is deleted, however often its data is changed meanwhile.
pub(super) async fn deleted(client: &WeakClient, session: &Session, path: &str) -> Fate {
    loop {
        let seen = match session.watch_data(path).await {
            Ok((_, watch)) => watch.fired().await,
            Err(error) if error.kind() == ErrorKind::NoNode => return Fate::Deleted,
            Err(error) => Err(error),
        };
        match seen {
            Ok(WatchEvent::Deleted) => return Fate::Deleted,
            Ok(_) => {}
            Err(error) if error.is_retryable() && session.is_valid() => {
                let Some(client) = client.upgrade() else { return Fate::Unknown };
                client.pause(PAUSE).await;
            }
            Err(_) => return Fate::Unknown,
        }
    }
}
