//! The end of a client. Serves Q10.

use std::future::{Future, IntoFuture, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use integration_tests::{
    LONG_SESSION, PATIENCE, at_once, connect, eventually, proxy, server, soon, unique, until,
};
use zookeeper_framework::{
    Client, CloseOutcome, CreateMode, Error, ErrorKind, LostReason, RetryPolicy, Session,
};
use zookeeper_testing::{Direction, Operation, Proxy};

use crate::{kept_out, observer};

#[tokio::test]
async fn ephemeral_nodes_are_gone_when_close_returns() {
    let (client, observer) = (connect(&server().connect_string()).await, observer().await);
    let (session, path) = (client.session().unwrap(), unique("closed"));
    client.create(&path).mode(CreateMode::Ephemeral).await.unwrap();
    assert_eq!(soon("close returns", client.close()).await, CloseOutcome::Confirmed);
    assert_eq!(observer.exists(&path).await.unwrap(), None);
    assert!(!session.is_valid());
    assert_eq!(session.lost_reason(), Some(LostReason::Closed));
    assert_eq!(at_once(session.lost()), Some(LostReason::Closed));
}

#[tokio::test]
async fn everything_asked_of_a_closed_client_is_refused_at_once() {
    let client = connect(&server().connect_string()).await;
    let session = client.session().unwrap();
    client.close().await;
    let refusals = [
        at_once(client.get_data("/")).unwrap().map(|_| ()),
        at_once(client.set_data("/", "", None)).unwrap().map(|_| ()),
        at_once(client.create("/x").into_future()).unwrap().map(|_| ()),
        at_once(client.create("/x").protected().into_future()).unwrap().map(|_| ()),
        at_once(client.delete("/x").guaranteed().into_future()).unwrap(),
        at_once(client.transaction().check("/", None).commit())
            .unwrap()
            .map(|_| ())
            .map_err(Error::from),
        at_once(client.wait_connected(PATIENCE)).unwrap().map(|_| ()),
        at_once(session.sync("/")).unwrap(),
    ];
    for refusal in refusals {
        assert_eq!(refusal.unwrap_err().kind(), ErrorKind::Closed);
    }
    assert!(client.session().is_none());
}

#[tokio::test]
async fn a_second_close_says_what_the_first_one_did() {
    let client = connect(&server().connect_string()).await;
    let other = client.clone();
    let (first, second) = tokio::join!(client.close(), other.close());
    assert_eq!((first, second), (CloseOutcome::Confirmed, CloseOutcome::Confirmed));
    assert_eq!(soon("a third", client.close()).await, CloseOutcome::Confirmed);

    let proxy = proxy();
    let builder = Client::builder(proxy.connect_string()).session_timeout(LONG_SESSION);
    let builder = builder.connection_timeout(Duration::from_millis(500));
    let client = builder.connect().await.unwrap();
    proxy.stall(Direction::Both);
    let other = client.clone();
    let (first, second) = tokio::join!(client.close(), other.close());
    assert_eq!((first, second), (CloseOutcome::Unconfirmed, CloseOutcome::Unconfirmed));
    assert_eq!(soon("a third", client.close()).await, CloseOutcome::Unconfirmed);
}

#[tokio::test]
async fn close_waits_for_a_silent_server_no_longer_than_the_connection_timeout() {
    let (proxy, timeout) = (proxy(), Duration::from_secs(1));
    let builder = Client::builder(proxy.connect_string()).session_timeout(LONG_SESSION);
    let client = builder.connection_timeout(timeout).connect().await.unwrap();
    proxy.stall(Direction::Both);
    let start = Instant::now();
    assert_eq!(client.close().await, CloseOutcome::Unconfirmed);
    let waited = start.elapsed();
    assert!(waited >= timeout && waited < timeout + Duration::from_secs(3), "{waited:?}");
}

#[tokio::test]
async fn a_client_that_never_connected_closes_at_once() {
    let proxy = proxy();
    let client = kept_out(&proxy);
    let start = Instant::now();
    assert_eq!(client.close().await, CloseOutcome::Confirmed);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

/// Polls a future once; it must have to wait.
async fn waits<F: Future + Unpin>(mut future: F) -> F
where
    F::Output: std::fmt::Debug,
{
    poll_fn(|cx| match Pin::new(&mut future).poll(cx) {
        Poll::Ready(output) => panic!("it did not wait: {output:?}"),
        Poll::Pending => Poll::Ready(()),
    })
    .await;
    future
}

/// A client that is cut off from the server and will not see it again before it is told so.
async fn cut_off() -> (Proxy, Client, Session) {
    let proxy = proxy();
    let client = connect(&proxy.connect_string()).await;
    let session = client.session().unwrap();
    (proxy, client, session)
}

#[tokio::test]
async fn close_wakes_whoever_waits_before_the_server_has_answered() {
    let (proxy, client, session) = cut_off().await;
    let (path, observer) = (unique("waiters"), observer().await);
    client.create(&path).mode(CreateMode::Ephemeral).await.unwrap();
    let (_, watch) = client.watch_exists(&unique("never")).await.unwrap();
    proxy.refuse();
    proxy.cut();
    until("it is suspended", || client.state().to_string() == "Suspended(1)").await;

    let read = waits(Box::pin(client.get_data("/"))).await;
    let create = waits(client.create("/x").protected().into_future()).await;
    let delete = waits(client.delete(&path).guaranteed().into_future()).await;
    let call = waits(session.get_data("/")).await;
    let connected = waits(Box::pin(client.wait_connected(Duration::MAX))).await;
    let fired = waits(Box::pin(watch.fired())).await;
    let lost = waits(session.lost()).await;
    let pause = waits(client.pause(Duration::from_secs(3600))).await;

    let closing = tokio::spawn({
        let client = client.clone();
        async move { client.close().await }
    });
    let kinds = [
        soon("a read is woken", read).await.unwrap_err().kind(),
        soon("a create is woken", create).await.unwrap_err().kind(),
        soon("a delete is woken", delete).await.unwrap_err().kind(),
        soon("a call is woken", call).await.unwrap_err().kind(),
        soon("who waits for a connection is woken", connected).await.unwrap_err().kind(),
        soon("who waits for a watch is woken", fired).await.unwrap_err().kind(),
    ];
    assert_eq!(kinds, [ErrorKind::Closed; 6]);
    assert_eq!(soon("who waits for the end is woken", lost).await, LostReason::Closed);
    assert!(!closing.is_finished(), "nobody can have answered yet");
    proxy.accept();
    assert_eq!(soon("close returns", closing).await.unwrap(), CloseOutcome::Confirmed);
    assert_eq!(observer.exists(&path).await.unwrap(), None);
    soon("a pause ends", pause).await;
}

#[tokio::test]
async fn a_call_under_way_is_woken_by_close() {
    let (proxy, client, _) = cut_off().await;
    let hold = proxy.hold_reply(Operation::GetData, 1);
    let read = tokio::spawn({
        let client = client.clone();
        async move { client.get_data("/").await }
    });
    until("the answer is on its way", || hold.happened()).await;
    let closing = tokio::spawn(async move { client.close().await });
    let error = soon("the read is woken", read).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    hold.release();
    assert_eq!(soon("close returns", closing).await.unwrap(), CloseOutcome::Confirmed);
}

#[tokio::test]
async fn a_close_that_is_dropped_goes_on() {
    let (proxy, client, session) = cut_off().await;
    let hold = proxy.hold_reply(Operation::CloseSession, 1);
    let closing = waits(Box::pin(client.close())).await;
    drop(closing);
    soon("the session ends here", session.lost()).await;
    until("the server was told", || hold.happened()).await;
    hold.release();
    until("the connection is gone", || proxy.open_connections() == 0).await;
    assert_eq!(client.close().await, CloseOutcome::Confirmed);
}

#[tokio::test]
async fn the_last_handle_closes_the_session() {
    let (proxy, client, session) = cut_off().await;
    let (path, observer) = (unique("dropped"), observer().await);
    client.create(&path).mode(CreateMode::Ephemeral).await.unwrap();
    let (clone, weak) = (client.clone(), client.downgrade());
    drop(client);
    clone.get_data(&path).await.unwrap();
    assert!(weak.upgrade().is_some());
    drop(clone);
    assert!(weak.upgrade().is_none());
    eventually("the node is gone", async || observer.exists(&path).await.unwrap().is_none()).await;
    until("the connection is gone", || proxy.open_connections() == 0).await;
    assert_eq!(proxy.counts().requests(Operation::CloseSession), 1);
    assert!(!session.is_valid());
    let error = session.sync("/").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn a_dropped_connect_leaves_no_connection() {
    let proxy = proxy();
    let hold = proxy.hold_reply(Operation::Connect, 1);
    let builder = Client::builder(proxy.connect_string()).session_timeout(LONG_SESSION);
    let connecting = waits(Box::pin(builder.connect())).await;
    until("the server has answered", || hold.happened()).await;
    drop(connecting);
    hold.release();
    until("the connection is gone", || proxy.open_connections() == 0).await;
    assert_eq!(proxy.counts().connections(), 1);
}

/// A policy of somebody who made a mistake.
struct Panics;

impl RetryPolicy for Panics {
    fn delays(&self) -> Box<dyn Iterator<Item = Duration> + Send> {
        panic!("a retry policy of the test's own panics");
    }
}

#[tokio::test]
async fn a_retry_policy_that_panics_closes_the_client_and_hangs_nobody() {
    let builder = Client::builder(server().connect_string()).retry_policy(Panics);
    let client = builder.start().unwrap();
    let mut states = client.watch_state();
    let error = soon("an answer", client.wait_connected(Duration::MAX)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    while soon("the states end", states.changed()).await.is_some() {}
    soon("close returns", client.close()).await;
}
