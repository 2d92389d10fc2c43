//! A listener that remembers what it was told.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use integration_tests::until;
use zookeeper_framework::{Client, ConnectionStateListener, StateChange};

#[derive(Clone, Default)]
pub struct Recorder {
    changes: Arc<Mutex<Vec<StateChange>>>,
}

impl Recorder {
    pub fn changes(&self) -> Vec<StateChange> {
        self.changes.lock().unwrap().clone()
    }

    /// The states it was told, as their `Display` has them.
    pub fn states(&self) -> Vec<String> {
        self.changes().iter().map(|change| change.current.to_string()).collect()
    }

    pub fn last(&self) -> String {
        self.states().pop().unwrap_or_default()
    }

    pub async fn hears(&self, state: &str) {
        let what = format!("a listener hears of {state}");
        until(&what, || self.last() == state).await;
    }

    pub fn record(&self, change: StateChange) {
        self.changes.lock().unwrap().push(change);
    }
}

#[async_trait]
impl ConnectionStateListener for Recorder {
    async fn state_changed(&self, _client: &Client, change: StateChange) {
        self.record(change);
    }
}
