//! The operations of a session: sent when they are called, in the order of the calls.

use std::time::{Duration, Instant};

use integration_tests::{children, connect, eventually, proxy, unique, until};
use zookeeper_framework::{Acl, Client, CreateMode, ErrorKind, Session};
use zookeeper_testing::{Operation, Proxy};

use crate::observer;

async fn behind_a_proxy() -> (Proxy, Client, Session, String) {
    let proxy = proxy();
    let client = connect(&proxy.connect_string()).await;
    let parent = unique("session");
    client.create(&parent).await.unwrap();
    let session = client.session().unwrap();
    (proxy, client, session, parent)
}

#[tokio::test]
async fn calls_are_sent_in_their_order_without_being_polled() {
    let (_proxy, _client, session, parent) = behind_a_proxy().await;
    for round in 0..100_i32 {
        let child = format!("{parent}/{round}");
        let create = session.create(&child, b"", CreateMode::Persistent, Acl::anyone_all());
        let list = session.get_children(&parent);
        let delete = session.delete(&child, None);
        let empty = session.get_children(&parent);
        // Asked for in the opposite order.
        assert!(empty.await.unwrap().0.is_empty(), "round {round}");
        delete.await.unwrap();
        assert_eq!(list.await.unwrap().0, [round.to_string()]);
        create.await.unwrap();
    }
}

/// The second request does not wait for the answer of the first.
#[tokio::test]
async fn calls_made_back_to_back_travel_together() {
    let (proxy, _client, session, parent) = behind_a_proxy().await;
    let hold = proxy.hold_reply(Operation::Create, 1);
    let child = format!("{parent}/child");
    let create = session.create(&child, b"", CreateMode::Persistent, Acl::anyone_all());
    let list = session.get_children(&parent);
    until("the first answer is caught", || hold.happened()).await;
    until("the second request has come", || proxy.counts().requests(Operation::GetChildren) == 1)
        .await;
    hold.release();
    create.await.unwrap();
    assert_eq!(list.await.unwrap().0, ["child"]);
}

#[tokio::test]
async fn a_flight_of_calls_takes_one_round_trip() {
    let (proxy, _client, session, parent) = behind_a_proxy().await;
    let round_trip = Duration::from_millis(400);
    proxy.delay(round_trip / 2);
    let start = Instant::now();
    let create =
        session.create(&format!("{parent}/c"), b"", CreateMode::Persistent, Acl::anyone_all());
    let (list, stat) = (session.get_children(&parent), session.exists(&parent));
    create.await.unwrap();
    list.await.unwrap();
    stat.await.unwrap();
    let took = start.elapsed();
    assert!(took >= round_trip && took < 2 * round_trip, "{took:?}");
}

#[tokio::test]
async fn a_dropped_call_is_not_taken_back() {
    let (_proxy, _client, session, parent) = behind_a_proxy().await;
    for name in ["a", "b"] {
        let path = format!("{parent}/{name}");
        drop(session.create(&path, b"", CreateMode::Persistent, Acl::anyone_all()));
    }
    drop(session.delete(&format!("{parent}/a"), None));
    let observer = observer().await;
    session.sync("/").await.unwrap();
    assert_eq!(children(&observer, &parent).await, ["b"]);
}

#[tokio::test]
async fn a_call_made_while_the_connection_is_down_waits_for_the_next_one() {
    let (proxy, client, session, parent) = behind_a_proxy().await;
    proxy.refuse();
    proxy.cut();
    until("it is suspended", || !client.state().is_connected()).await;
    let path = format!("{parent}/later");
    let create = session.create(&path, b"", CreateMode::Persistent, Acl::anyone_all());
    let dropped = format!("{parent}/dropped");
    drop(session.create(&dropped, b"", CreateMode::Persistent, Acl::anyone_all()));
    proxy.accept();
    create.await.unwrap();
    let observer = observer().await;
    eventually("the dropped one arrives too", async || {
        children(&observer, &parent).await.len() == 2
    })
    .await;
}

#[tokio::test]
async fn a_call_is_one_attempt() {
    let (proxy, client, session, parent) = behind_a_proxy().await;
    let lost = proxy.lose_reply(Operation::GetData, 1);
    let error = session.get_data(&parent).await.unwrap_err();
    assert!(lost.happened());
    assert_eq!(error.kind(), ErrorKind::ConnectionLost);
    assert_eq!(error.path(), Some(parent.as_str()));
    assert_eq!(error.epoch(), Some(session.epoch()));
    client.sync("/").await.unwrap();
    assert_eq!(proxy.counts().requests(Operation::GetData), 1);
    session.get_data(&parent).await.unwrap();
}
