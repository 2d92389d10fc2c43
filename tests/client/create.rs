//! Creating nodes: modes, data, access control lists and ancestors.

use std::future::IntoFuture;
use std::sync::OnceLock;
use std::time::Duration;

use integration_tests::{children, connect, eventually, proxy, server, soon, unique, until};
use zookeeper_framework::{Acl, Client, CreateMode, ErrorKind, Permissions, describe_process};
use zookeeper_testing::{Operation, Proxy, ZooKeeperServer};

use crate::{impatient, observer};

async fn owner(observer: &Client, path: &str) -> i64 {
    let stat = observer.exists(path).await.unwrap();
    stat.unwrap_or_else(|| panic!("{path} does not exist")).ephemeral_owner
}

#[tokio::test]
async fn a_node_lives_as_its_mode_says() {
    let (client, observer) = (connect(&server().connect_string()).await, observer().await);
    let session = client.session().unwrap().id();
    let cases = [
        (CreateMode::Persistent, 0),
        (CreateMode::PersistentSequential, 0),
        (CreateMode::Ephemeral, session),
        (CreateMode::EphemeralSequential, session),
        (CreateMode::Container, 0),
    ];
    for (mode, expected) in cases {
        let created = client.create(&unique("mode")).mode(mode).await.unwrap();
        assert_eq!(created.stat.ephemeral_owner, expected, "{mode:?}");
        assert_eq!(owner(&observer, &created.path).await, expected, "{mode:?}");
        assert_eq!(created.sequence.is_some(), mode.is_sequential(), "{mode:?}");
    }
}

#[tokio::test]
async fn a_sequential_node_is_told_by_its_path_and_its_number() {
    let client = connect(&server().connect_string()).await;
    let parent = unique("sequential");
    client.create(&parent).await.unwrap();
    for mode in [CreateMode::PersistentSequential, CreateMode::EphemeralSequential] {
        let first = client.create(&format!("{parent}/n-")).mode(mode).await.unwrap();
        let second = client.create(&format!("{parent}/n-")).mode(mode).await.unwrap();
        let number = first.sequence.unwrap();
        assert_eq!(first.path, format!("{parent}/n-{number:010}"));
        assert_eq!(second.sequence, Some(number + 1));
        assert!(client.exists(&second.path).await.unwrap().is_some());
    }
    let nameless = client.create(&format!("{parent}/")).mode(CreateMode::PersistentSequential);
    assert_eq!(nameless.await.unwrap().path, format!("{parent}/0000000004"));
}

#[tokio::test]
async fn a_node_without_data_names_host_and_process() {
    let client = connect(&server().connect_string()).await;
    let path = unique("data");
    client.create(&path).await.unwrap();
    let (data, _) = client.get_data(&path).await.unwrap();
    let text = String::from_utf8(data).unwrap();
    assert_eq!(text, describe_process());
    assert!(text.ends_with(&format!(" pid {}", std::process::id())), "{text}");
    assert!(!text.starts_with(' '), "{text:?} names no host");
}

#[tokio::test]
async fn the_data_of_a_node_is_its_own_before_the_clients() {
    let builder = Client::builder(server().connect_string()).node_data("of the client");
    let client = builder.connect().await.unwrap();
    let (own, default, empty) = (unique("own"), unique("default"), unique("empty"));
    client.create(&own).data("of the node").await.unwrap();
    client.create(&default).await.unwrap();
    client.create(&empty).data("").await.unwrap();
    assert_eq!(client.get_data(&own).await.unwrap().0, b"of the node");
    assert_eq!(client.get_data(&default).await.unwrap().0, b"of the client");
    assert_eq!(client.get_data(&empty).await.unwrap().0, b"");
}

#[tokio::test]
async fn the_access_control_list_of_a_node_is_its_own_before_the_clients() {
    let builder = Client::builder(server().connect_string()).default_acl(Acl::anyone_read());
    let client = builder.connect().await.unwrap();
    let (own, default) = (unique("own"), unique("default"));
    client.create(&own).acl(Acl::anyone_all()).await.unwrap();
    client.create(&default).await.unwrap();
    client.set_data(&own, "new", None).await.unwrap();
    client.get_data(&default).await.unwrap();
    let refused = client.set_data(&default, "new", None).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NoAuth);
}

#[tokio::test]
async fn the_server_refuses_what_cannot_be_created() {
    let client = connect(&server().connect_string()).await;
    let path = unique("refused");
    client.create(&path).mode(CreateMode::Ephemeral).await.unwrap();
    let below = format!("{path}/child");
    let missing = format!("{}/child", unique("missing"));
    let unknown = Acl::new(Permissions::ALL, "nosuchscheme", "who");
    let cases = [
        (client.create(&path), ErrorKind::NodeExists),
        (client.create(&below), ErrorKind::NoChildrenForEphemerals),
        (client.create(&missing), ErrorKind::NoNode),
        (client.create(&unique("acl")).acl([unknown]), ErrorKind::InvalidAcl),
        (client.create("/"), ErrorKind::InvalidArgument),
    ];
    for (create, kind) in cases {
        let error = create.await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
    assert_eq!(observer().await.exists(&missing).await.unwrap(), None);
}

/// That the server deletes them is how containers are told from other nodes.
#[tokio::test]
async fn missing_ancestors_become_containers_without_data() {
    let (_proxy, client, observer) = reaping().await;
    observer.create("/kept").await.unwrap();
    client.create("/kept/a/b/node").data("x").with_parents().await.unwrap();
    for ancestor in ["/kept/a", "/kept/a/b"] {
        assert_eq!(observer.get_data(ancestor).await.unwrap().0, b"", "{ancestor}");
    }
    client.delete("/kept/a/b/node").await.unwrap();
    is_reaped(&observer, "/kept/a").await;
    assert!(observer.exists("/kept").await.unwrap().is_some(), "what exists is left as it is");
}

#[tokio::test]
async fn a_container_goes_after_its_last_child() {
    let (_proxy, client, observer) = reaping().await;
    client.create("/box").mode(CreateMode::Container).await.unwrap();
    client.create("/box/child").await.unwrap();
    client.delete("/box/child").await.unwrap();
    is_reaped(&observer, "/box").await;
}

/// Ancestors that exist cost nothing.
#[tokio::test]
async fn ancestors_are_only_asked_for_where_one_is_missing() {
    let proxy = proxy();
    let client = connect(&proxy.connect_string()).await;
    let root = unique("counted");
    client.create(&format!("{root}/a/first")).with_parents().await.unwrap();
    assert_eq!(proxy.counts().requests(Operation::CreateContainer), 2);
    client.create(&format!("{root}/a/second")).with_parents().await.unwrap();
    assert_eq!(proxy.counts().requests(Operation::CreateContainer), 2);
    assert_eq!(proxy.counts().requests(Operation::Create), 3);
}

/// A server that deletes empty containers at once.
fn reaper() -> &'static ZooKeeperServer {
    static REAPER: OnceLock<ZooKeeperServer> = OnceLock::new();
    REAPER.get_or_init(|| {
        let interval = Duration::from_millis(50);
        ZooKeeperServer::builder().container_check_interval(interval).start().unwrap()
    })
}

/// A proxy before the reaper, a client behind it that makes one attempt a call, and an observer.
async fn reaping() -> (Proxy, Client, Client) {
    let proxy = Proxy::start(reaper().address()).unwrap();
    let client = impatient(&proxy).await;
    (proxy, client, connect(&reaper().connect_string()).await)
}

async fn is_reaped(observer: &Client, path: &str) {
    eventually("the server reaps the empty container", async || {
        observer.exists(path).await.unwrap().is_none()
    })
    .await;
}

#[tokio::test]
async fn a_container_reaped_since_it_was_made_is_made_again() {
    let (proxy, client, observer) = reaping().await;
    let create = || client.create("/reaped/deep/node").with_parents().into_future();
    for round in 1..=3 {
        create().await.unwrap();
        assert_eq!(proxy.counts().requests(Operation::CreateContainer), 2 * round);
        client.delete("/reaped/deep/node").await.unwrap();
        is_reaped(&observer, "/reaped").await;
    }
}

/// The narrow race: the container goes between its own create and that of the node.
#[tokio::test]
async fn a_container_reaped_before_its_first_child_comes_is_made_again() {
    let (proxy, client, observer) = reaping().await;
    let hold = proxy.hold_request(Operation::Create, 2);
    let create = tokio::spawn(client.create("/race/deep/node").with_parents().into_future());
    until("the node's create is caught behind the containers", || hold.happened()).await;
    eventually("these are made", async || observer.exists("/race/deep").await.unwrap().is_some())
        .await;
    // A container that never had a child is not reaped.
    observer.create("/race/deep/other").await.unwrap();
    observer.delete("/race/deep/other").await.unwrap();
    is_reaped(&observer, "/race").await;
    hold.release();
    let created = soon("the create is answered", create).await.unwrap().unwrap();
    assert_eq!(created.path, "/race/deep/node");
    assert_eq!(children(&observer, "/race/deep").await, ["node"]);
    assert_eq!(proxy.counts().requests(Operation::Create), 3);
    assert_eq!(proxy.counts().requests(Operation::CreateContainer), 4);
}
