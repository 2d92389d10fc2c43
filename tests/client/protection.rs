//! Protected creates, which leave one node or none whatever is lost. Serves C4, C5.

use std::future::IntoFuture;

use integration_tests::{
    PATIENCE, SHORT_SESSION, children, connect, eventually, proxy, soon, unique, until,
};
use zookeeper_framework::{Client, CreateMode, Created, Error, ErrorKind, Outcome, protection_of};
use zookeeper_testing::{Fault, Operation, Proxy};

use crate::{changes_below, impatient, next_session, observer, short_lived};

const MODES: [CreateMode; 5] = [
    CreateMode::Persistent,
    CreateMode::PersistentSequential,
    CreateMode::Ephemeral,
    CreateMode::EphemeralSequential,
    CreateMode::Container,
];

/// A persistent node, to which only the test adds children.
async fn parent(observer: &Client) -> String {
    let path = unique("protected");
    observer.create(&path).await.unwrap();
    path
}

async fn create(client: &Client, parent: &str, mode: CreateMode) -> Result<Created, Error> {
    let create = client.create(&format!("{parent}/n-")).mode(mode).data("x").protected();
    soon("a protected create ends", create.into_future()).await
}

/// `created` is the one child of `parent`, and there never was another.
async fn assert_only_child(observer: &Client, parent: &str, created: &Created) {
    let names = children(observer, parent).await;
    let paths: Vec<_> = names.iter().map(|name| format!("{parent}/{name}")).collect();
    assert_eq!(paths, [created.path.as_str()]);
    assert_eq!(observer.exists(&created.path).await.unwrap(), Some(created.stat));
    assert_eq!(changes_below(observer, parent).await, 1);
    assert!(protection_of(&names[0]).is_some(), "{} carries no uuid", created.path);
}

/// Each of the faults happens to the one create, which succeeds and leaves one node.
async fn assert_survives(mode: CreateMode, arm: impl FnOnce(&Proxy) -> Vec<Fault>) -> Proxy {
    let (proxy, observer) = (proxy(), observer().await);
    let client = connect(&proxy.connect_string()).await;
    let parent = parent(&observer).await;
    let faults = arm(&proxy);
    let created = create(&client, &parent, mode).await.unwrap();
    assert!(faults.iter().all(Fault::happened), "{mode:?}: {faults:?}");
    assert_only_child(&observer, &parent, &created).await;
    let number = created.path.rsplit('-').next().and_then(|digits| digits.parse().ok());
    assert_eq!(created.sequence, number.filter(|_| mode.is_sequential()), "{mode:?}");
    proxy
}

fn request_of(mode: CreateMode) -> Operation {
    match mode {
        CreateMode::Container => Operation::CreateContainer,
        _ => Operation::Create,
    }
}

#[tokio::test]
async fn a_lost_reply_leaves_one_node_of_any_mode() {
    for mode in MODES {
        let operation = request_of(mode);
        let proxy = assert_survives(mode, |proxy| vec![proxy.lose_reply(operation, 1)]).await;
        assert_eq!(proxy.counts().requests(operation), 1, "{mode:?} was found again");
    }
}

#[tokio::test]
async fn a_lost_request_leaves_one_node_of_any_mode() {
    for mode in MODES {
        let operation = request_of(mode);
        let proxy = assert_survives(mode, |proxy| vec![proxy.lose_request(operation, 1)]).await;
        assert_eq!(proxy.counts().requests(operation), 2, "{mode:?} was sent again");
    }
}

#[tokio::test]
async fn replies_lost_in_a_row_leave_one_node() {
    let proxy = assert_survives(CreateMode::EphemeralSequential, |proxy| {
        vec![
            proxy.lose_reply(Operation::Create, 1),
            proxy.lose_reply(Operation::GetChildren, 1),
            proxy.lose_reply(Operation::GetChildren, 2),
            proxy.lose_reply(Operation::Exists, 1),
        ]
    })
    .await;
    assert_eq!(proxy.counts().requests(Operation::Create), 1);
}

#[tokio::test]
async fn requests_and_replies_lost_in_turn_leave_one_node() {
    let proxy = assert_survives(CreateMode::EphemeralSequential, |proxy| {
        vec![
            proxy.lose_request(Operation::Create, 1),
            proxy.lose_request(Operation::GetChildren, 1),
            proxy.lose_request(Operation::Create, 2),
            proxy.lose_reply(Operation::Create, 1),
        ]
    })
    .await;
    assert_eq!(proxy.counts().requests(Operation::Create), 3);
}

#[tokio::test]
async fn a_protected_create_that_fails_is_undone_in_the_background() {
    let (proxy, observer) = (proxy(), observer().await);
    let client = impatient(&proxy).await;
    for mode in MODES {
        let parent = parent(&observer).await;
        let lost = proxy.lose_reply(request_of(mode), 1);
        let error = create(&client, &parent, mode).await.unwrap_err();
        assert!(lost.happened());
        assert_eq!(error.kind(), ErrorKind::ConnectionLost, "{error}");
        assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
        eventually("the node, which was created, is deleted", async || {
            changes_below(&observer, &parent).await == 2
        })
        .await;
        assert!(children(&observer, &parent).await.is_empty(), "{mode:?}");
    }
}

#[tokio::test]
async fn a_definite_refusal_is_no_reason_to_look_for_a_node() {
    let proxy = proxy();
    let client = impatient(&proxy).await;
    let error = create(&client, &unique("missing"), CreateMode::Ephemeral).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::NoNode, Outcome::NotApplied));
    // The session is closed behind everything else that was sent.
    client.close().await;
    assert_eq!(proxy.counts().requests(Operation::GetChildren), 0);
}

#[tokio::test]
async fn a_protected_create_dropped_before_its_reply_is_undone() {
    let (proxy, observer) = (proxy(), observer().await);
    let client = connect(&proxy.connect_string()).await;
    let parent = parent(&observer).await;
    let hold = proxy.hold_reply(Operation::Create, 1);
    let path = format!("{parent}/n-");
    let create = tokio::spawn(client.create(&path).protected().into_future());
    until("the reply is on its way", || hold.happened()).await;
    assert_eq!(children(&observer, &parent).await.len(), 1);
    create.abort();
    assert!(create.await.unwrap_err().is_cancelled());
    hold.release();
    eventually("the node is deleted", async || changes_below(&observer, &parent).await == 2).await;
    assert!(children(&observer, &parent).await.is_empty());
}

#[tokio::test]
async fn a_protected_create_dropped_before_its_request_arrives_is_undone() {
    let (proxy, observer) = (proxy(), observer().await);
    let client = connect(&proxy.connect_string()).await;
    let parent = parent(&observer).await;
    let hold = proxy.hold_request(Operation::Create, 1);
    let path = format!("{parent}/n-");
    let create = tokio::spawn(client.create(&path).protected().into_future());
    until("the request is on its way", || hold.happened()).await;
    create.abort();
    assert!(create.await.unwrap_err().is_cancelled());
    hold.release();
    eventually("the node comes and goes", async || changes_below(&observer, &parent).await == 2)
        .await;
    assert!(children(&observer, &parent).await.is_empty());
}

/// What is not protected is left: the clean-up above is the protection's work.
#[tokio::test]
async fn a_plain_create_that_fails_leaves_its_node() {
    let (proxy, observer) = (proxy(), observer().await);
    let client = impatient(&proxy).await;
    let path = unique("plain");
    let lost = proxy.lose_reply(Operation::Create, 1);
    let error = client.create(&path).await.unwrap_err();
    assert!(lost.happened());
    assert_eq!(error.outcome(), Outcome::Unknown);
    client.wait_connected(PATIENCE).await.unwrap();
    client.close().await;
    assert!(observer.exists(&path).await.unwrap().is_some());
}

#[tokio::test]
async fn an_ephemeral_node_of_a_lost_session_is_made_anew_in_the_next() {
    let (proxy, observer) = (proxy(), observer().await);
    let builder = Client::builder(proxy.connect_string());
    let client = builder.session_timeout(SHORT_SESSION).connect().await.unwrap();
    let parent = parent(&observer).await;
    let hold = proxy.hold_reply(Operation::Create, 1);
    let path = format!("{parent}/n-");
    let create = client.create(&path).mode(CreateMode::Ephemeral).protected();
    let create = tokio::spawn(create.into_future());
    until("the node is created", || hold.happened()).await;
    let session = next_session(&proxy, &client).await;
    let created = soon("the create ends", create).await.unwrap().unwrap();
    assert_eq!(created.stat.ephemeral_owner, session.id());
    eventually("only the new node is left", async || children(&observer, &parent).await.len() == 1)
        .await;
    assert_eq!(observer.exists(&created.path).await.unwrap(), Some(created.stat));
    drop(hold);
}

#[tokio::test]
async fn a_persistent_node_of_unknown_outcome_is_undone_in_the_next_session() {
    let (proxy, observer) = (proxy(), observer().await);
    let client = short_lived(&proxy).await;
    let parent = parent(&observer).await;
    proxy.refuse();
    let lost = proxy.lose_reply(Operation::Create, 1);
    let error = create(&client, &parent, CreateMode::Persistent).await.unwrap_err();
    assert!(lost.happened());
    assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
    next_session(&proxy, &client).await;
    eventually("the node is deleted", async || changes_below(&observer, &parent).await == 2).await;
    assert!(children(&observer, &parent).await.is_empty());
}
