//! The states of a connection, in their order and with their epochs. Serves C1, C3, Q10.

use std::time::{Duration, Instant};

use integration_tests::{
    PATIENCE, SHORT_SESSION, at_once, connect, end_session, proxy, server, soon, unique, until,
};
use zookeeper_framework::{Client, ConnectionState, CreateMode, ErrorKind, Outcome, StateChange};
use zookeeper_testing::{Direction, Operation, Proxy, ZooKeeperServer};

use crate::recorder::Recorder;
use crate::{kept_out, next_session, short_lived};

#[tokio::test]
async fn start_does_not_wait_for_a_connection() {
    let proxy = proxy();
    let client = kept_out(&proxy);
    assert_eq!(client.state(), ConnectionState::Connecting);
    assert!(client.session().is_none());
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.wait_connected(Duration::MAX).await }
    });
    proxy.accept();
    let session = soon("it connects", waiting).await.unwrap().unwrap();
    assert_eq!(session.epoch().get(), 1);
    assert_eq!(client.state().to_string(), "Connected(1)");
}

#[tokio::test]
async fn connect_waits_for_a_connection() {
    let proxy = proxy();
    let hold = proxy.hold_reply(Operation::Connect, 1);
    let connecting = tokio::spawn(Client::builder(proxy.connect_string()).connect());
    until("the server has answered", || hold.happened()).await;
    tokio::task::yield_now().await;
    assert!(!connecting.is_finished());
    hold.release();
    let client = soon("it connects", connecting).await.unwrap().unwrap();
    assert_eq!(client.state().to_string(), "Connected(1)");
    assert!(client.session().unwrap().is_valid());
}

#[tokio::test]
async fn a_client_started_before_its_server_connects_to_it_later() {
    let server = ZooKeeperServer::start().unwrap();
    server.stop().unwrap();
    let client = Client::builder(server.connect_string()).start().unwrap();
    let error = client.wait_connected(Duration::from_millis(300)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotConnected);
    server.restart().unwrap();
    let session = client.wait_connected(PATIENCE).await.unwrap();
    assert_eq!(session.epoch().get(), 1);
    client.create("/late").await.unwrap();
}

#[tokio::test]
async fn a_short_cut_suspends_the_session_and_keeps_it() {
    let proxy = proxy();
    let client = connect(&proxy.connect_string()).await;
    let (recorder, before) = (Recorder::default(), client.session().unwrap());
    client.add_listener(recorder.clone()).unwrap();
    for cut in 1..=3 {
        proxy.cut();
        until("both changes were told", || recorder.states().len() == 2 * cut).await;
    }
    assert_eq!(recorder.states(), ["Suspended(1)", "Connected(1)"].repeat(3));
    for change in recorder.changes() {
        assert_eq!(change.is_reconnect(), change.current.is_connected());
        assert!(!change.is_new_session());
    }
    let after = client.session().unwrap();
    assert_eq!((after.id(), after.epoch()), (before.id(), before.epoch()));
    assert!(before.is_valid());
}

#[tokio::test]
async fn the_whole_life_of_a_client_is_told_in_order() {
    let (proxy, recorder) = (proxy(), Recorder::default());
    proxy.refuse();
    let builder = Client::builder(proxy.connect_string()).session_timeout(SHORT_SESSION);
    let client = builder.start().unwrap();
    client.add_listener(recorder.clone()).unwrap();
    proxy.accept();
    recorder.hears("Connected(1)").await;
    for epoch in 2..=3 {
        next_session(&proxy, &client).await;
        recorder.hears(&format!("Connected({epoch})")).await;
    }
    client.close().await;
    recorder.hears("Closed").await;

    let told = [
        "Connected(1)",
        "Suspended(1)",
        "Lost(1)",
        "Connected(2)",
        "Suspended(2)",
        "Lost(2)",
        "Connected(3)",
        "Closed",
    ];
    assert_eq!(recorder.states(), told);
    let changes = recorder.changes();
    assert_eq!(changes[0].previous, ConnectionState::Connecting);
    for pair in changes.windows(2) {
        assert_eq!(pair[0].current, pair[1].previous);
    }
    let news = changes.iter().filter(|change| change.is_new_session());
    let reconnects: Vec<_> = news.map(StateChange::is_reconnect).collect();
    assert_eq!(reconnects, [false, true, true], "the first session follows none");
}

/// The ways to lose a session, each with what ends it.
async fn assert_lost_in_order(proxy: &Proxy, cut: impl Fn(), mend: impl Fn()) {
    let client = short_lived(proxy).await;
    let (recorder, session) = (Recorder::default(), client.session().unwrap());
    client.add_listener(recorder.clone()).unwrap();
    cut();
    soon("the session is lost", session.lost()).await;
    recorder.hears("Lost(1)").await;
    mend();
    recorder.hears("Connected(2)").await;
    assert_eq!(recorder.states(), ["Suspended(1)", "Lost(1)", "Connected(2)"]);
    assert_ne!(client.session().unwrap().id(), session.id());
}

#[tokio::test]
async fn a_session_without_a_connection_is_lost() {
    let proxy = proxy();
    let cut = || {
        proxy.refuse();
        proxy.cut();
    };
    assert_lost_in_order(&proxy, cut, || proxy.accept()).await;
}

#[tokio::test]
async fn a_session_in_a_black_hole_is_lost() {
    let proxy = proxy();
    assert_lost_in_order(&proxy, || proxy.stall(Direction::Both), || proxy.resume()).await;
}

/// The server cannot expire the session while it stands still, and the client cannot know.
#[tokio::test]
async fn a_session_whose_server_stands_still_is_lost() {
    let server = ZooKeeperServer::start().unwrap();
    let proxy = Proxy::start(server.address()).unwrap();
    let (pause, resume) = (|| server.pause().unwrap(), || server.resume().unwrap());
    assert_lost_in_order(&proxy, pause, resume).await;
}

#[tokio::test]
async fn a_watch_of_the_state_sees_every_epoch() {
    let proxy = proxy();
    let client = short_lived(&proxy).await;
    let mut states = client.watch_state();
    assert_eq!(states.current().to_string(), "Connected(1)");
    assert_eq!(at_once(states.changed()), None, "nothing has changed");

    let next = next_session(&proxy, &client).await;
    assert_eq!(states.changed().await.unwrap(), ConnectionState::Connected(next.epoch()));

    let mut other = client.watch_state();
    client.close().await;
    assert_eq!(states.changed().await, Some(ConnectionState::Closed));
    assert_eq!(states.changed().await, None);
    assert_eq!(other.changed().await, Some(ConnectionState::Closed));
    assert_eq!(client.watch_state().changed().await, None);
    assert_eq!(client.state(), ConnectionState::Closed);
}

#[tokio::test]
async fn waiting_for_a_connection_ends_with_its_timeout() {
    let proxy = proxy();
    let client = kept_out(&proxy);
    let start = Instant::now();
    let timeout = Duration::from_millis(300);
    let error = client.wait_connected(timeout).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::NotConnected, Outcome::NotApplied));
    assert!(error.to_string().contains(&proxy.connect_string()), "{error}");
    assert!(start.elapsed() >= timeout);
    let error = soon("zero looks once", client.wait_connected(Duration::ZERO)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotConnected);
    proxy.accept();
    client.wait_connected(Duration::MAX).await.unwrap();
    client.wait_connected(Duration::ZERO).await.unwrap();
}

#[tokio::test]
async fn a_suspended_client_has_a_session_and_a_lost_one_has_none() {
    let proxy = proxy();
    let client = short_lived(&proxy).await;
    let session = client.session().unwrap();
    proxy.refuse();
    proxy.cut();
    until("it is suspended", || client.state().to_string() == "Suspended(1)").await;
    assert_eq!(client.session().unwrap().id(), session.id());
    end_session(&proxy, &session).await;
    client.wait_connected(PATIENCE).await.unwrap();
    proxy.refuse();
    proxy.cut();
    until("it is lost again", || client.state().to_string() == "Lost(2)").await;
    assert!(client.session().is_none());
}

/// The server, not the client, has the last word on the length of a session.
#[tokio::test]
async fn a_session_has_the_timeout_that_the_server_grants() {
    for (asked, granted) in [(1, 400), (5_000, 5_000), (i32::MAX as u64, 60_000)] {
        let builder = Client::builder(server().connect_string());
        let client = builder.session_timeout(Duration::from_millis(asked)).start().unwrap();
        let session = client.wait_connected(PATIENCE).await.unwrap();
        assert_eq!(session.timeout(), Duration::from_millis(granted));
        client.close().await;
    }
}

/// The thread of a client does its work while the runtime of its user is blocked.
#[tokio::test]
async fn a_blocked_runtime_loses_neither_session_nor_node() {
    let observer = connect(&server().connect_string()).await;
    let builder = Client::builder(server().connect_string()).session_timeout(SHORT_SESSION);
    let client = builder.connect().await.unwrap();
    let (recorder, session) = (Recorder::default(), client.session().unwrap());
    client.add_listener(recorder.clone()).unwrap();
    let path = unique("blocked");
    let create = client.create(&path).mode(CreateMode::Ephemeral);
    let created = create.await.unwrap();

    std::thread::sleep(2 * SHORT_SESSION + Duration::from_millis(500));

    assert!(session.is_valid());
    assert_eq!(at_once(session.lost()), None);
    assert_eq!(observer.exists(&path).await.unwrap(), Some(created.stat));
    assert_eq!(client.get_data(&path).await.unwrap().1, created.stat);
    assert!(recorder.states().is_empty(), "{:?}", recorder.states());
}
