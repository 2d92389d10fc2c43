//! What becomes of a node of ours by the hand of others.

use zookeeper_framework::{ErrorKind, Session, WatchEvent};

/// What is known of a node in the end.
pub(super) enum Fate {
    Deleted,
    /// It cannot be watched, or the session is over.
    Unknown,
}

/// Waits until a node is deleted, however often its data is changed meanwhile.
pub(super) async fn deleted(session: &Session, path: &str) -> Fate {
    loop {
        let seen = match session.watch_data(path).await {
            Ok((_, watch)) => watch.fired().await,
            Err(error) if error.kind() == ErrorKind::NoNode => return Fate::Deleted,
            Err(error) => Err(error),
        };
        match seen {
            Ok(WatchEvent::Deleted) => return Fate::Deleted,
            Ok(_) => {}
            // The next request waits for the next connection, so this does not turn fast.
            Err(error) if error.is_retryable() && session.is_valid() => {}
            Err(_) => return Fate::Unknown,
        }
    }
}
