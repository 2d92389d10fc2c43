//! Reading and setting data, and what an error tells.

use integration_tests::{connect, server, unique};
use zookeeper_framework::{ErrorKind, Outcome};

use crate::observer;

#[tokio::test]
async fn a_node_reads_as_it_was_written() {
    let client = connect(&server().connect_string()).await;
    let path = unique("node");
    assert_eq!(client.exists(&path).await.unwrap(), None);
    let created = client.create(&path).data("first").await.unwrap().stat;
    assert_eq!(client.exists(&path).await.unwrap(), Some(created));
    assert_eq!(client.get_data(&path).await.unwrap(), (b"first".to_vec(), created));

    let set = client.set_data(&path, "second", Some(0)).await.unwrap();
    assert_eq!((set.version, set.data_length, set.czxid), (1, 6, created.czxid));
    assert!(set.mzxid > created.mzxid);
    assert_eq!(client.get_data(&path).await.unwrap(), (b"second".to_vec(), set));
}

#[tokio::test]
async fn data_is_set_only_in_the_version_that_was_asked_for() {
    let client = connect(&server().connect_string()).await;
    let path = unique("version");
    client.create(&path).data("old").await.unwrap();
    let error = client.set_data(&path, "new", Some(1)).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::BadVersion, Outcome::NotApplied));
    assert_eq!(client.get_data(&path).await.unwrap().0, b"old");
    client.set_data(&path, "new", None).await.unwrap();
    assert_eq!(client.get_data(&path).await.unwrap().0, b"new");
}

#[tokio::test]
async fn children_are_the_names_below_a_node() {
    let client = connect(&server().connect_string()).await;
    let path = unique("children");
    for name in ["b", "a", "c d"] {
        client.create(&format!("{path}/{name}")).with_parents().await.unwrap();
    }
    let (mut names, stat) = client.get_children(&path).await.unwrap();
    names.sort();
    assert_eq!(names, ["a", "b", "c d"]);
    assert_eq!(stat.num_children, 3);
    assert!(client.get_children(&format!("{path}/a")).await.unwrap().0.is_empty());
}

#[tokio::test]
async fn a_read_after_a_sync_sees_what_another_client_wrote_before() {
    let (client, writer) = (connect(&server().connect_string()).await, observer().await);
    let path = unique("sync");
    for round in 0..20_i32 {
        writer.create(&path).await.unwrap();
        client.sync(&path).await.unwrap();
        assert!(client.exists(&path).await.unwrap().is_some(), "round {round}");
        writer.delete(&path).await.unwrap();
        client.sync(&path).await.unwrap();
        assert!(client.exists(&path).await.unwrap().is_none(), "round {round}");
    }
}

#[tokio::test]
async fn an_error_names_reason_path_and_epoch_in_one_line() {
    let client = connect(&server().connect_string()).await;
    let path = unique("missing");
    let errors = [
        client.get_data(&path).await.unwrap_err(),
        client.set_data(&path, "", None).await.unwrap_err(),
        client.get_children(&path).await.unwrap_err(),
        client.watch_data(&path).await.unwrap_err(),
        client.watch_children(&path).await.unwrap_err(),
        client.delete(&path).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::NoNode);
        assert_eq!(error.path(), Some(path.as_str()));
        assert_eq!(error.epoch().unwrap().get(), 1);
        assert_eq!(error.outcome(), Outcome::NotApplied);
        assert!(!error.is_retryable());
        assert_eq!(error.to_string(), format!("{path}: no such node (session epoch 1)"));
    }
}
