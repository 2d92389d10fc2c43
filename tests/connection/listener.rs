//! Listeners: told in order, whatever one of them does. Serves C3.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use integration_tests::{child_count, connect, end_session, proxy, unique, until};
use zookeeper_framework::{
    Client, CloseOutcome, ConnectionState, ConnectionStateListener, CreateMode, StateChange,
};

use crate::recorder::Recorder;
use crate::{next_session, observer, short_lived};

const LOSS: [&str; 3] = ["Suspended(1)", "Lost(1)", "Connected(2)"];

/// What a client was when the listener was added, the listener can ask for.
#[tokio::test]
async fn a_listener_is_told_nothing_that_was_before_it() {
    for round in 0..50_i32 {
        let client = observer().await;
        let recorder = Recorder::default();
        client.add_listener(recorder.clone()).unwrap();
        client.close().await;
        recorder.hears("Closed").await;
        assert_eq!(recorder.states(), ["Closed"], "round {round}");
    }
}

/// Blocks its thread at the first change it is told.
struct Blocking {
    recorder: Recorder,
    duration: Duration,
}

#[async_trait]
impl ConnectionStateListener for Blocking {
    async fn state_changed(&self, _client: &Client, change: StateChange) {
        let is_first = self.recorder.changes().is_empty();
        self.recorder.record(change);
        if is_first {
            thread::sleep(self.duration);
        }
    }
}

#[tokio::test]
async fn a_listener_that_blocks_delays_only_itself() {
    let (proxy, duration) = (proxy(), Duration::from_secs(10));
    let client = short_lived(&proxy).await;
    let (blocked, other) = (Recorder::default(), Recorder::default());
    client.add_listener(Blocking { recorder: blocked.clone(), duration }).unwrap();
    client.add_listener(other.clone()).unwrap();

    let start = Instant::now();
    next_session(&proxy, &client).await;
    other.hears("Connected(2)").await;
    assert_eq!(other.states(), LOSS);
    let path = unique("blocked");
    client.create(&path).mode(CreateMode::Ephemeral).await.unwrap();
    // The new session lives on meanwhile.
    while start.elapsed() < duration - Duration::from_millis(500) {
        assert_eq!(client.session().unwrap().epoch().get(), 2);
        client.sync("/").await.unwrap();
        assert_eq!(blocked.states(), ["Suspended(1)"]);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(client.exists(&path).await.unwrap().is_some());
    blocked.hears("Connected(2)").await;
    assert_eq!(blocked.states(), LOSS);
    assert!(start.elapsed() >= duration);
}

/// Panics at every change it is told.
struct Panicking(Recorder);

#[async_trait]
impl ConnectionStateListener for Panicking {
    async fn state_changed(&self, _client: &Client, change: StateChange) {
        self.0.record(change);
        panic!("a listener that panics on purpose at {}", change.current);
    }
}

#[tokio::test]
async fn a_listener_that_panics_stops_nothing() {
    let proxy = proxy();
    let client = short_lived(&proxy).await;
    let (panicked, other) = (Recorder::default(), Recorder::default());
    client.add_listener(Panicking(panicked.clone())).unwrap();
    client.add_listener(other.clone()).unwrap();
    next_session(&proxy, &client).await;
    for recorder in [&panicked, &other] {
        recorder.hears("Connected(2)").await;
        assert_eq!(recorder.states(), LOSS);
    }
    client.get_data("/").await.unwrap();
    assert_eq!(client.close().await, CloseOutcome::Confirmed);
    panicked.hears("Closed").await;
}

#[tokio::test]
async fn a_removed_listener_is_told_nothing_more() {
    let proxy = proxy();
    let client = connect(&proxy.connect_string()).await;
    let (removed, kept, added) = (Recorder::default(), Recorder::default(), Recorder::default());
    let id = client.add_listener(removed.clone()).unwrap();
    assert_ne!(client.add_listener(kept.clone()).unwrap(), id);
    proxy.cut();
    removed.hears("Connected(1)").await;
    kept.hears("Connected(1)").await;

    assert!(client.remove_listener(id));
    assert!(!client.remove_listener(id), "it is gone already");
    client.add_listener(added.clone()).unwrap();
    proxy.cut();
    until("the others are told", || kept.states().len() == 4 && added.states().len() == 2).await;
    client.close().await;
    added.hears("Closed").await;
    assert_eq!(removed.states(), ["Suspended(1)", "Connected(1)"]);
}

/// Uses the client from inside: looks, creates a node in each new session, and closes at the end.
struct Active {
    path: String,
    outcome: Arc<Mutex<Option<CloseOutcome>>>,
}

#[async_trait]
impl ConnectionStateListener for Active {
    async fn state_changed(&self, client: &Client, change: StateChange) {
        if !change.is_new_session() {
            return;
        }
        let create = client.create(&self.path).mode(CreateMode::EphemeralSequential);
        create.with_parents().await.expect("the server is up");
        if change.current.to_string() == "Connected(3)" {
            let outcome = client.close().await;
            *self.outcome.lock().unwrap() = Some(outcome);
        }
    }
}

#[tokio::test]
async fn a_listener_may_use_and_close_the_client() {
    let (proxy, observer) = (proxy(), observer().await);
    let client = short_lived(&proxy).await;
    let (parent, recorder) = (unique("active"), Recorder::default());
    observer.create(&parent).await.unwrap();
    let outcome = Arc::new(Mutex::new(None));
    let listener = Active { path: format!("{parent}/n-"), outcome: Arc::clone(&outcome) };
    client.add_listener(listener).unwrap();
    client.add_listener(recorder.clone()).unwrap();

    let second = next_session(&proxy, &client).await;
    child_count(&observer, &parent, 1).await;
    end_session(&proxy, &second).await;
    recorder.hears("Closed").await;
    until("close returns inside", || outcome.lock().unwrap().is_some()).await;
    assert_eq!(*outcome.lock().unwrap(), Some(CloseOutcome::Confirmed));
    assert_eq!(client.state(), ConnectionState::Closed);
    // Those of the sessions that were lost go a little later than the one that was closed.
    child_count(&observer, &parent, 0).await;
}
