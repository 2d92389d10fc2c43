//! A client that lives below a node: what it says and what the server sees.

use integration_tests::{children, proxy, server, soon, unique};
use zookeeper_framework::{Client, CreateMode, ErrorKind, OperationResult, WatchEvent};
use zookeeper_testing::Operation;

use crate::observer;

/// A client whose chroot, two levels deep, does not exist.
async fn rooted() -> (Client, String) {
    let chroot = format!("{}/app", unique("chroot"));
    let client = Client::builder(format!("{}{chroot}", server().connect_string()));
    (client.connect().await.unwrap(), chroot)
}

#[tokio::test]
async fn a_missing_chroot_is_a_missing_node_and_no_more() {
    let (client, chroot) = rooted().await;
    assert_eq!(client.exists("/").await.unwrap(), None);
    assert_eq!(client.exists("/node").await.unwrap(), None);
    client.sync("/").await.unwrap();
    let (_, watch) = client.watch_exists("/node").await.unwrap();
    for path in ["/", "/node"] {
        let error = client.get_data(path).await.unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::NoNode, Some(path)));
    }
    let error = client.create("/node").await.unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::NoNode, Some("/node")));
    assert_eq!(observer().await.exists(&chroot).await.unwrap(), None, "nothing makes it unasked");
    client.create("/node").with_parents().await.unwrap();
    assert_eq!(soon("the watch fires", watch.fired()).await.unwrap(), WatchEvent::Created);
}

#[tokio::test]
async fn the_chroot_is_made_like_any_ancestor() {
    let (client, chroot) = rooted().await;
    let created = client.create("/a/node").data("x").with_parents().await.unwrap();
    assert_eq!(created.path, "/a/node");
    let observer = observer().await;
    let full = format!("{chroot}/a/node");
    assert_eq!(client.full_path("/a/node"), full);
    assert_eq!(client.full_path("/"), chroot);
    assert_eq!(observer.get_data(&full).await.unwrap(), (b"x".to_vec(), created.stat));
    assert_eq!(children(&client, "/").await, ["a"]);
}

#[tokio::test]
async fn every_operation_speaks_of_paths_below_the_chroot() {
    let (client, chroot) = rooted().await;
    let numbered = client.create("/q-").mode(CreateMode::PersistentSequential).with_parents();
    assert_eq!(numbered.await.unwrap().path, "/q-0000000000");
    let protected = client.create("/p").protected().await.unwrap().path;
    assert!(protected.starts_with("/_c_") && protected.ends_with("-p"), "{protected}");

    let results = client
        .transaction()
        .check("/", None)
        .create("/t-", "", CreateMode::EphemeralSequential)
        .set_data("/q-0000000000", "new", None)
        .commit()
        .await
        .unwrap();
    let OperationResult::Created { path, .. } = &results[1] else { panic!("{results:?}") };
    assert_eq!(path, "/t-0000000002");
    assert_eq!(client.get_data("/q-0000000000").await.unwrap().0, b"new");
    let refused = client.transaction().delete("/none", None).commit().await.unwrap_err();
    assert_eq!(refused.error.path(), Some("/none"));
    assert!(!refused.to_string().contains(&chroot), "{refused}");

    let ((_, _), watch) = client.watch_children("/").await.unwrap();
    client.delete("/q-0000000000").await.unwrap();
    client.delete(&protected).guaranteed().await.unwrap();
    assert_eq!(soon("the watch fires", watch.fired()).await.unwrap(), WatchEvent::ChildrenChanged);
    assert_eq!(children(&observer().await, &chroot).await, ["t-0000000002"]);
}

#[tokio::test]
async fn a_lost_reply_is_found_again_below_the_chroot() {
    let proxy = proxy();
    let chroot = format!("{}/app", unique("chroot"));
    let builder = Client::builder(format!("{}{chroot}", proxy.connect_string()));
    let client = builder.connect().await.unwrap();
    client.create("/locks/first").with_parents().await.unwrap();
    let lost = proxy.lose_reply(Operation::Create, 1);
    let create = client.create("/locks/n-").mode(CreateMode::EphemeralSequential).protected();
    let created = create.await.unwrap();
    assert!(lost.happened());
    assert!(created.path.starts_with("/locks/_c_"), "{}", created.path);
    let names = children(&observer().await, &format!("{chroot}/locks")).await;
    assert_eq!(names.len(), 2);
    assert_eq!(client.exists(&created.path).await.unwrap(), Some(created.stat));
}
