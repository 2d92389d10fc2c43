//! Watches that fire once. Serves C3.

use integration_tests::{SHORT_SESSION, connect, end_session, proxy, server, soon, unique, until};
use zookeeper_framework::{Client, ErrorKind, Watch, WatchEvent};
use zookeeper_testing::ZooKeeperServer;

use crate::observer;

async fn fired(watch: Watch) -> WatchEvent {
    soon("the watch fires", watch.fired()).await.unwrap()
}

#[tokio::test]
async fn a_watch_on_existence_fires_for_whatever_happens_to_the_node() {
    let (client, other) = (connect(&server().connect_string()).await, observer().await);
    let path = unique("exists");
    let (stat, watch) = client.watch_exists(&path).await.unwrap();
    assert_eq!(stat, None);
    let stat = other.create(&path).await.unwrap().stat;
    assert_eq!(fired(watch).await, WatchEvent::Created);

    let (seen, watch) = client.watch_exists(&path).await.unwrap();
    assert_eq!(seen, Some(stat));
    other.set_data(&path, "new", None).await.unwrap();
    assert_eq!(fired(watch).await, WatchEvent::DataChanged);

    let (_, watch) = client.watch_exists(&path).await.unwrap();
    other.delete(&path).await.unwrap();
    assert_eq!(fired(watch).await, WatchEvent::Deleted);
}

#[tokio::test]
async fn a_watch_on_data_fires_for_a_change_and_for_the_end() {
    let (client, other) = (connect(&server().connect_string()).await, observer().await);
    let path = unique("data");
    other.create(&path).data("old").await.unwrap();
    let ((data, _), watch) = client.watch_data(&path).await.unwrap();
    assert_eq!(data, b"old");
    other.set_data(&path, "new", None).await.unwrap();
    assert_eq!(fired(watch).await, WatchEvent::DataChanged);

    let ((data, _), watch) = client.watch_data(&path).await.unwrap();
    assert_eq!(data, b"new");
    other.delete(&path).await.unwrap();
    assert_eq!(fired(watch).await, WatchEvent::Deleted);
}

#[tokio::test]
async fn a_watch_on_children_fires_for_a_child_and_for_the_end() {
    let (client, other) = (connect(&server().connect_string()).await, observer().await);
    let path = unique("children");
    other.create(&path).await.unwrap();
    let child = format!("{path}/child");

    let ((names, _), watch) = client.watch_children(&path).await.unwrap();
    assert!(names.is_empty());
    other.create(&child).await.unwrap();
    assert_eq!(fired(watch).await, WatchEvent::ChildrenChanged);

    let ((names, _), watch) = client.watch_children(&path).await.unwrap();
    assert_eq!(names, ["child"]);
    other.delete(&child).await.unwrap();
    assert_eq!(fired(watch).await, WatchEvent::ChildrenChanged);

    let (_, watch) = client.watch_children(&path).await.unwrap();
    other.delete(&path).await.unwrap();
    assert_eq!(fired(watch).await, WatchEvent::Deleted);
}

/// One watch of each kind, in the order: existence of a missing node, data, children.
async fn watch_each(client: &Client, missing: &str, node: &str) -> [Watch; 3] {
    [
        client.watch_exists(missing).await.unwrap().1,
        client.watch_data(node).await.unwrap().1,
        client.watch_children(node).await.unwrap().1,
    ]
}

#[tokio::test]
async fn what_changed_during_an_outage_fires_a_watch_after_it() {
    let (proxy, other) = (proxy(), observer().await);
    let client = connect(&proxy.connect_string()).await;
    let (missing, node) = (unique("outage"), unique("outage"));
    other.create(&node).await.unwrap();
    let watches = watch_each(&client, &missing, &node).await;

    proxy.refuse();
    proxy.cut();
    other.create(&missing).await.unwrap();
    other.set_data(&node, "new", None).await.unwrap();
    other.create(&format!("{node}/child")).await.unwrap();
    proxy.accept();

    let expected = [WatchEvent::Created, WatchEvent::DataChanged, WatchEvent::ChildrenChanged];
    for (watch, event) in watches.into_iter().zip(expected) {
        assert_eq!(fired(watch).await, event);
    }
    assert_eq!(client.session().unwrap().epoch().get(), 1);
}

#[tokio::test]
async fn a_watch_set_before_a_reconnect_fires_for_a_change_after_it() {
    let (proxy, other) = (proxy(), observer().await);
    let client = connect(&proxy.connect_string()).await;
    let (missing, node) = (unique("reconnect"), unique("reconnect"));
    other.create(&node).await.unwrap();
    let watches = watch_each(&client, &missing, &node).await;
    proxy.cut();
    client.sync("/").await.unwrap();
    assert_eq!(proxy.counts().connections(), 2);

    other.create(&missing).await.unwrap();
    other.set_data(&node, "new", None).await.unwrap();
    other.create(&format!("{node}/child")).await.unwrap();
    let expected = [WatchEvent::Created, WatchEvent::DataChanged, WatchEvent::ChildrenChanged];
    for (watch, event) in watches.into_iter().zip(expected) {
        assert_eq!(fired(watch).await, event);
    }
}

#[tokio::test]
async fn a_dropped_watch_is_taken_back_from_the_server() {
    let server = ZooKeeperServer::start().unwrap();
    let client = connect(&server.connect_string()).await;
    client.create("/node").await.unwrap();
    let watches = watch_each(&client, "/missing", "/node").await;
    assert_eq!(server.watch_count().unwrap(), 3);
    drop(watches);
    until("no watch is left", || server.watch_count().unwrap() == 0).await;

    let (_, watch) = client.watch_data("/node").await.unwrap();
    assert_eq!(server.watch_count().unwrap(), 1);
    let waiting = tokio::spawn(watch.fired());
    tokio::task::yield_now().await;
    waiting.abort();
    until("nor the one that was waited for", || server.watch_count().unwrap() == 0).await;
}

#[tokio::test]
async fn a_watch_ends_with_its_session() {
    let (proxy, path) = (proxy(), unique("lost"));
    let builder = Client::builder(proxy.connect_string()).session_timeout(SHORT_SESSION);
    let client = builder.connect().await.unwrap();
    let session = client.session().unwrap();
    let (_, watch) = client.watch_exists(&path).await.unwrap();
    let (_, late) = client.watch_exists(&path).await.unwrap();
    let waiting = tokio::spawn(watch.fired());
    end_session(&proxy, &session).await;
    for ended in [waiting.await.unwrap(), soon("the watch ends", late.fired()).await] {
        let error = ended.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SessionLost);
        assert_eq!(error.epoch().unwrap().get(), 1);
    }
}

#[tokio::test]
async fn a_watch_ends_when_the_client_is_closed() {
    let client = connect(&server().connect_string()).await;
    let (_, watch) = client.watch_exists(&unique("closed")).await.unwrap();
    let waiting = tokio::spawn(watch.fired());
    client.close().await;
    let error = soon("the watch ends", waiting).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn a_watch_fires_for_a_change_of_the_same_client() {
    let client = connect(&server().connect_string()).await;
    let path = unique("own");
    let (_, watch) = client.watch_exists(&path).await.unwrap();
    client.create(&path).await.unwrap();
    assert_eq!(fired(watch).await, WatchEvent::Created);
}
