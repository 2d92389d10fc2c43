//! Transactions of a guard: carried out while the lock is held, and never afterwards.
//!
//! Serves Q6 and Q8.

use integration_tests::{
    SHORT_SESSION, children, connect, end_session, proxy, requests, server, soon, unique,
};
use zookeeper_recipes::framework::{CreateMode, ErrorKind, OperationResult};
use zookeeper_recipes::{Client, Error, HoldEnd, InterProcessMutex, MutexGuard, Owner};

/// A lock that is held, and a node that it protects.
struct Protected {
    guard: MutexGuard,
    account: String,
}

impl Protected {
    async fn new(client: &Client, name: &str) -> Self {
        let path = unique(name);
        let account = format!("{path}-account");
        client.create(&account).data("old").await.unwrap();
        let mutex = InterProcessMutex::new(client, &path).unwrap();
        Self { guard: mutex.acquire(&Owner::new()).await.unwrap(), account }
    }
}

async fn client() -> Client {
    connect(&server().connect_string()).await
}

async fn data(client: &Client, path: &str) -> String {
    String::from_utf8(client.get_data(path).await.unwrap().0).unwrap()
}

#[tokio::test]
async fn a_transaction_is_carried_out_while_the_lock_is_held() {
    let proxy = proxy();
    let client = connect(&proxy.connect_string()).await;
    let Protected { guard, account } = Protected::new(&client, "carried-out").await;
    let entry = format!("{account}/entry-");

    let transaction = guard
        .transaction()
        .check(&account, Some(0))
        .set_data(&account, "new", Some(0))
        .create(&entry, "first", CreateMode::PersistentSequential)
        .delete(&format!("{entry}0000000000"), None)
        .create(&entry, "second", CreateMode::PersistentSequential)
        .commit();
    let (sent, results) = requests(&proxy, &client, transaction).await;

    assert_eq!(sent, 1);
    let results = results.unwrap();
    let [checked, set, created, deleted, again] = &results[..] else { panic!("{results:?}") };
    assert_eq!(*checked, OperationResult::Checked);
    assert!(matches!(set, OperationResult::DataSet(stat) if stat.version == 1), "{set:?}");
    let path = |result: &OperationResult| match result {
        OperationResult::Created { path, .. } => path.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(path(created), format!("{entry}0000000000"));
    assert_eq!(*deleted, OperationResult::Deleted);
    assert_eq!(path(again), format!("{entry}0000000001"));
    assert_eq!(data(&client, &account).await, "new");
    assert_eq!(children(&client, &account).await, ["entry-0000000001"]);
    assert!(guard.is_held());
}

#[tokio::test]
async fn the_transaction_of_an_inner_guard_goes_on_after_the_outer_one_is_released() {
    let client = client().await;
    let path = unique("inner");
    let (mutex, owner) = (InterProcessMutex::new(&client, &path).unwrap(), Owner::new());
    let outer = mutex.acquire(&owner).await.unwrap();
    let inner = mutex.acquire(&owner).await.unwrap();
    let of_outer = outer.transaction().set_data(inner.node(), "by the outer one", None);
    outer.release().await.unwrap();

    of_outer.commit().await.unwrap();
    let of_inner = inner.transaction().set_data(inner.node(), "by the inner one", None);
    of_inner.commit().await.unwrap();

    assert_eq!(data(&client, inner.node()).await, "by the inner one");
}

#[tokio::test]
async fn a_refused_operation_gives_its_own_error_and_nothing_is_changed() {
    let client = client().await;
    let Protected { guard, account } = Protected::new(&client, "refused").await;
    let missing = format!("{account}/missing");

    let version = guard.transaction().set_data(&account, "new", None).check(&account, Some(9));
    let absent = guard.transaction().set_data(&account, "new", None).delete(&missing, None);
    let bad_path = guard.transaction().set_data(&account, "new", None).delete("/bad/", None);

    let expected = [
        (version, 1, ErrorKind::BadVersion, Some(account.as_str())),
        (absent, 1, ErrorKind::NoNode, Some(missing.as_str())),
        (bad_path, 1, ErrorKind::InvalidArgument, None),
    ];
    for (transaction, at, kind, path) in expected {
        match transaction.commit().await {
            Err(Error::Transaction { index, error, .. }) => {
                assert_eq!((index, error.kind(), error.path()), (at, kind, path), "{error}");
            }
            other => panic!("{kind:?} is given as {other:?}"),
        }
    }
    assert_eq!(data(&client, &account).await, "old");
    assert!(guard.is_held());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_transaction_is_refused_after_the_node_was_deleted_by_hand() {
    let (client, operator) = (client().await, client().await);
    let Protected { guard, account } = Protected::new(&client, "deleted").await;
    operator.delete(guard.node()).await.unwrap();
    assert!(guard.is_held(), "nobody has told it yet");

    let refused = guard.transaction().set_data(&account, "new", None).commit().await;

    let is_lost = matches!(refused, Err(Error::Lost { reason: HoldEnd::NodeDeleted, .. }));
    assert!(is_lost, "{refused:?}");
    assert_eq!(data(&client, &account).await, "old");
    assert!(!guard.is_held());
    assert_eq!(soon("it is told", guard.lost()).await, HoldEnd::NodeDeleted);
}

#[tokio::test]
async fn a_transaction_is_refused_after_the_session_was_lost() {
    let proxy = proxy();
    let builder = Client::builder(proxy.connect_string()).session_timeout(SHORT_SESSION);
    let client = builder.connect().await.unwrap();
    let Protected { guard, account } = Protected::new(&client, "session").await;
    let begun_before = guard.transaction().set_data(&account, "new", None);
    end_session(&proxy, guard.session()).await;
    let begun_after = guard.transaction().set_data(&account, "new", None);

    for transaction in [begun_before, begun_after] {
        let refused = soon("the refusal", transaction.commit()).await;
        let is_lost = matches!(refused, Err(Error::Lost { reason: HoldEnd::SessionLost(_), .. }));
        assert!(is_lost, "{refused:?}");
    }
    assert_eq!(data(&client, &account).await, "old");
}

#[tokio::test]
async fn a_transaction_begun_before_the_release_is_refused_after_it() {
    let client = client().await;
    let Protected { guard, account } = Protected::new(&client, "released").await;
    let transaction = guard.transaction().set_data(&account, "new", None);
    guard.release().await.unwrap();

    let refused = transaction.commit().await;

    let is_lost = matches!(refused, Err(Error::Lost { reason: HoldEnd::Released, .. }));
    assert!(is_lost, "{refused:?}");
    assert_eq!(data(&client, &account).await, "old");
}

#[tokio::test]
async fn a_transaction_that_would_delete_the_lock_node_is_refused() {
    let client = client().await;
    let Protected { guard, account } = Protected::new(&client, "own-node").await;
    let node = guard.node().to_owned();

    let transaction = guard.transaction().set_data(&account, "last", None).delete(&node, None);
    let refused = transaction.commit().await;

    assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
    assert!(guard.is_held());
    assert_eq!(data(&client, &account).await, "old");
    guard.release().await.unwrap();
}
