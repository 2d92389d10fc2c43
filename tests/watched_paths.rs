//! A client that waits for very many locks keeps its session. Serves C1, Q3.
//!
//! The wire client loses a session that watches more than 128 KiB of paths when it reconnects.

use std::time::Duration;

use integration_tests::{connect, eventually, proxy, server, soon, unique};
use tokio::task::JoinSet;
use zookeeper_framework::{Client, ConnectionState, ErrorKind};
use zookeeper_recipes::{InterProcessMutex, Owner};
use zookeeper_testing::Operation;

/// With a name of this length the paths of all predecessors take about 170 KiB.
const LOCKS: usize = 600;
const NAME: usize = 200;

fn locks(client: &Client, root: &str) -> Vec<InterProcessMutex> {
    let padding = "x".repeat(NAME);
    (0..LOCKS)
        .map(|n| InterProcessMutex::new(client, &format!("{root}/{n}-{padding}")).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_waits_for_very_many_locks_survives_a_reconnect_and_gets_them_all() {
    let root = unique("watched");
    let holder = connect(&server().connect_string()).await;
    let owner = Owner::new();
    let mut guards = Vec::new();
    for lock in locks(&holder, &root) {
        guards.push(lock.acquire(&owner).await.unwrap());
    }

    let proxy = proxy();
    let waiter = connect(&proxy.connect_string()).await;
    let mut waiting = JoinSet::new();
    for lock in locks(&waiter, &root) {
        waiting.spawn(async move { lock.acquire(&Owner::new()).await.map(drop) });
    }
    eventually("everybody has looked at who is ahead", || async {
        let reads = proxy.counts().replies(Operation::GetData) as usize;
        reads >= LOCKS && server().watch_count().unwrap() as usize >= LOCKS / 2
    })
    .await;

    let connections = proxy.counts().connections();
    // As on a real network: everything is sent again before the first of it is answered.
    proxy.delay(Duration::from_millis(10));
    proxy.cut();
    soon("an answer on the next connection", waiter.sync("/")).await.unwrap();
    // A reconnect that sends too much is answered by another one, and so on.
    assert_eq!(proxy.counts().connections(), connections + 1);
    drop(guards);
    while let Some(done) = soon("every lock is granted", waiting.join_next()).await {
        done.unwrap().unwrap();
    }
    assert_eq!(waiter.state().epoch().map(|epoch| epoch.get()), Some(1), "the session was lost");
    assert!(matches!(waiter.state(), ConnectionState::Connected(_)));
}

#[tokio::test]
async fn a_watch_beyond_the_budget_is_refused_and_a_dropped_one_makes_room() {
    let client = connect(&server().connect_string()).await;
    let root = unique("budget");
    client.create(&root).await.unwrap();
    let padding = "x".repeat(NAME);
    let mut watches = Vec::new();
    let refused = loop {
        match client.watch_exists(&format!("{root}/{}-{padding}", watches.len())).await {
            Ok((_, watch)) => watches.push(watch),
            Err(error) => break error,
        }
        assert!(watches.len() < 1_000, "no watch is refused");
    };
    assert_eq!(refused.kind(), ErrorKind::WatchesFull);
    assert!(watches.len() > 400, "only {} watches", watches.len());
    watches.pop();
    let again = soon("room again", client.watch_exists(&root)).await;
    assert!(again.is_ok(), "{again:?}");
}
