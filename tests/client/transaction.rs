//! Transactions.

use integration_tests::{children, connect, proxy, server, unique};
use zookeeper_framework::{Client, CreateMode, ErrorKind, OperationResult, Outcome};
use zookeeper_testing::Operation;

async fn client_and_node() -> (Client, String) {
    let client = connect(&server().connect_string()).await;
    let path = unique("transaction");
    client.create(&path).data("old").await.unwrap();
    (client, path)
}

#[tokio::test]
async fn the_results_come_in_the_order_of_the_operations() {
    let (client, path) = client_and_node().await;
    let (child, queue) = (format!("{path}/child"), format!("{path}/q-"));
    let results = client
        .transaction()
        .check(&path, Some(0))
        .create(&child, "x", CreateMode::Persistent)
        .create(&queue, "", CreateMode::EphemeralSequential)
        .set_data(&path, "new", None)
        .delete(&child, Some(0))
        .commit()
        .await
        .unwrap();
    let [checked, created, numbered, set, deleted] = &results[..] else {
        panic!("five operations have five results: {results:?}");
    };
    assert_eq!(checked, &OperationResult::Checked);
    assert!(
        matches!(created, OperationResult::Created { path, .. } if *path == child),
        "{created:?}"
    );
    let OperationResult::Created { path: numbered, .. } = numbered else {
        panic!("not a create: {numbered:?}");
    };
    assert_eq!(*numbered, format!("{queue}0000000001"));
    assert!(matches!(set, OperationResult::DataSet(stat) if stat.version == 1), "{set:?}");
    assert_eq!(deleted, &OperationResult::Deleted);
    assert_eq!(children(&client, &path).await, ["q-0000000001"]);
    assert_eq!(client.get_data(&path).await.unwrap().0, b"new");
}

#[tokio::test]
async fn a_refused_operation_is_named_and_undoes_all_others() {
    let (client, path) = client_and_node().await;
    let missing = format!("{path}/missing");
    let error = client
        .transaction()
        .create(&format!("{path}/child"), "", CreateMode::Persistent)
        .set_data(&path, "new", None)
        .delete(&missing, None)
        .check(&missing, None)
        .commit()
        .await
        .unwrap_err();
    assert_eq!(error.index, Some(2));
    assert_eq!(error.error.kind(), ErrorKind::NoNode);
    assert_eq!(error.error.path(), Some(missing.as_str()));
    assert_eq!(error.error.outcome(), Outcome::NotApplied);
    let text = error.to_string();
    assert!(text.starts_with(&format!("operation 2 of the transaction: {missing}: ")), "{text}");
    assert!(children(&client, &path).await.is_empty());
    assert_eq!(client.get_data(&path).await.unwrap().0, b"old");
}

#[tokio::test]
async fn each_operation_can_be_the_one_that_is_refused() {
    let (client, path) = client_and_node().await;
    let missing = format!("{path}/missing");
    let begin = || client.transaction().check(&path, None);
    let cases = [
        (begin().check(&path, Some(9)), ErrorKind::BadVersion),
        (begin().check(&missing, None), ErrorKind::NoNode),
        (begin().create(&path, "", CreateMode::Persistent), ErrorKind::NodeExists),
        (begin().set_data(&path, "", Some(9)), ErrorKind::BadVersion),
        (begin().delete(&path, Some(9)), ErrorKind::BadVersion),
    ];
    for (transaction, kind) in cases {
        let error = transaction.commit().await.unwrap_err();
        assert_eq!((error.index, error.error.kind()), (Some(1), kind), "{error}");
    }
}

#[tokio::test]
async fn a_transaction_without_operations_sends_nothing() {
    let proxy = proxy();
    let client = connect(&proxy.connect_string()).await;
    assert!(client.transaction().commit().await.unwrap().is_empty());
    client.close().await;
    assert_eq!(proxy.counts().requests(Operation::Multi), 0);
}

#[tokio::test]
async fn a_transaction_of_a_session_is_sent_once_and_ends_with_it() {
    let (client, path) = client_and_node().await;
    let session = client.session().unwrap();
    let set = || session.transaction().set_data(&path, "new", None).commit();
    assert_eq!(set().await.unwrap().len(), 1);
    client.close().await;
    let error = set().await.unwrap_err();
    assert_eq!((error.index, error.error.kind()), (None, ErrorKind::Closed), "{error}");
}
