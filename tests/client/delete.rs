//! Deleting nodes: versions, and deletes that are guaranteed. Serves C4.

use std::future::IntoFuture;

use integration_tests::{PATIENCE, connect, eventually, proxy, server, soon, unique, until};
use zookeeper_framework::{Client, ErrorKind, Outcome};
use zookeeper_testing::{Operation, Proxy};

use crate::{impatient, next_session, observer, short_lived};

async fn gone(observer: &Client, path: &str) {
    eventually("the node is deleted", async || observer.exists(path).await.unwrap().is_none())
        .await;
}

#[tokio::test]
async fn a_delete_minds_version_and_children() {
    let client = connect(&server().connect_string()).await;
    let path = unique("delete");
    client.create(&format!("{path}/child")).with_parents().await.unwrap();
    client.set_data(&path, "new", None).await.unwrap();
    let refused = [
        (client.delete(&path), ErrorKind::NotEmpty),
        (client.delete(&format!("{path}/other")), ErrorKind::NoNode),
        (client.delete(&format!("{path}/child")).version(7), ErrorKind::BadVersion),
    ];
    for (delete, kind) in refused {
        let error = delete.await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (kind, Outcome::NotApplied), "{error}");
    }
    client.delete(&format!("{path}/child")).version(0).await.unwrap();
    client.delete(&path).version(1).await.unwrap();
    assert_eq!(client.exists(&path).await.unwrap(), None);
}

#[tokio::test]
async fn a_guaranteed_delete_is_refused_like_any_other() {
    let client = connect(&server().connect_string()).await;
    let path = unique("refused");
    let error = client.delete(&path).guaranteed().await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::NoNode, Outcome::NotApplied));
    client.create(&path).await.unwrap();
    let error = client.delete(&path).version(3).guaranteed().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadVersion);
    assert!(client.exists(&path).await.unwrap().is_some());
}

/// A node, a client behind a proxy that has created it, and an observer of it.
async fn node(connect: impl AsyncFnOnce(&Proxy) -> Client) -> (Proxy, Client, Client, String) {
    let (proxy, observer) = (proxy(), observer().await);
    let client = connect(&proxy).await;
    let path = unique("guaranteed");
    client.create(&path).await.unwrap();
    (proxy, client, observer, path)
}

async fn patient(proxy: &Proxy) -> Client {
    connect(&proxy.connect_string()).await
}

#[tokio::test]
async fn a_guaranteed_delete_succeeds_over_a_lost_reply() {
    let (proxy, client, observer, path) = node(patient).await;
    let lost = proxy.lose_reply(Operation::Delete, 1);
    client.delete(&path).guaranteed().await.unwrap();
    assert!(lost.happened());
    assert_eq!(observer.exists(&path).await.unwrap(), None);
    assert_eq!(proxy.counts().requests(Operation::Delete), 2);
}

#[tokio::test]
async fn a_guaranteed_delete_succeeds_over_a_lost_request() {
    let (proxy, client, observer, path) = node(patient).await;
    let lost = proxy.lose_request(Operation::Delete, 1);
    client.delete(&path).guaranteed().await.unwrap();
    assert!(lost.happened());
    assert_eq!(observer.exists(&path).await.unwrap(), None);
    assert_eq!(proxy.counts().requests(Operation::Delete), 2);
}

#[tokio::test]
async fn a_guaranteed_delete_goes_on_after_the_policy_has_given_up() {
    let (proxy, client, observer, path) = node(impatient).await;
    proxy.refuse();
    let lost = proxy.lose_request(Operation::Delete, 1);
    let error = client.delete(&path).guaranteed().await.unwrap_err();
    assert!(lost.happened());
    assert_eq!(error.kind(), ErrorKind::ConnectionLost);
    assert_eq!(error.outcome(), Outcome::Unknown);
    assert!(observer.exists(&path).await.unwrap().is_some());
    proxy.accept();
    gone(&observer, &path).await;
}

#[tokio::test]
async fn a_guaranteed_delete_goes_on_after_its_future_was_dropped() {
    let (proxy, client, observer, path) = node(patient).await;
    let hold = proxy.hold_request(Operation::Delete, 1);
    let delete = tokio::spawn(client.delete(&path).guaranteed().into_future());
    until("the request is on its way", || hold.happened()).await;
    delete.abort();
    assert!(delete.await.unwrap_err().is_cancelled());
    // The request is lost with its connection.
    drop(hold);
    gone(&observer, &path).await;
}

/// What is not guaranteed is not repeated: the deletes above are the guarantee's work.
#[tokio::test]
async fn a_plain_delete_of_unknown_outcome_is_not_sent_again() {
    let (proxy, client, observer, path) = node(patient).await;
    let lost = proxy.lose_request(Operation::Delete, 1);
    let error = client.delete(&path).await.unwrap_err();
    assert!(lost.happened());
    assert_eq!(error.outcome(), Outcome::Unknown);
    client.wait_connected(PATIENCE).await.unwrap();
    client.close().await;
    assert!(observer.exists(&path).await.unwrap().is_some());
    assert_eq!(proxy.counts().requests(Operation::Delete), 1);
}

/// A name without a uuid may belong to somebody else by the time of the next session.
#[tokio::test]
async fn only_a_protected_name_is_deleted_in_the_next_session() {
    let (proxy, client, observer, plain) = node(short_lived).await;
    let protected = client.create(&unique("named")).protected().await.unwrap().path;
    proxy.refuse();
    let hold = proxy.hold_request(Operation::Delete, 1);
    let deletes = [&plain, &protected]
        .map(|path| tokio::spawn(client.delete(path).guaranteed().into_future()));
    until("a request is on its way", || hold.happened()).await;
    drop(hold);
    for delete in deletes {
        let error = soon("a delete ends", delete).await.unwrap().unwrap_err();
        assert!(error.is_retryable(), "{error}");
    }
    next_session(&proxy, &client).await;
    gone(&observer, &protected).await;
    // Had the plain one been sent, it would have been first.
    client.sync("/").await.unwrap();
    assert!(observer.exists(&plain).await.unwrap().is_some());
}
