//! Many tasks of one process on one lock.
//!
//! Serves Q1, Q2, Q4, Q8.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use integration_tests::history::{Hold, assert_exclusive_and_in_order};
use integration_tests::line::Line;
use integration_tests::{child_count, connect, proxy, server, soon};
use tokio::task::JoinSet;
use zookeeper_framework::Client;
use zookeeper_recipes::{InterProcessMutex, Owner};
use zookeeper_testing::Operation;

const TASKS: usize = 64;
const CYCLES: usize = 5;
/// What one client may have in one directory.
const NODES_MAX: i32 = 1_000;
const WAITERS: usize = 1_050;

/// Acquires again and again, and gives the holds.
async fn cycle(mutex: InterProcessMutex, cycles: usize) -> Vec<Hold> {
    let owner = Owner::new();
    let mut holds = Vec::new();
    for _ in 0..cycles {
        let guard = mutex.acquire(&owner).await.expect("granted");
        let mut hold = Hold::begin(&guard);
        hold.extend();
        guard.release().await.expect("released");
        holds.push(hold);
    }
    holds
}

#[tokio::test]
async fn sixty_four_tasks_and_a_contender_of_another_process_take_strict_turns() {
    let proxy = proxy();
    let line = Line::lasting("crowd").await;
    let ours = line.mutex(&connect(&proxy.connect_string()).await);
    let theirs = line.mutex(&connect(&server().connect_string()).await);
    let first = line.hold(&ours).await;
    let before = proxy.counts();

    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        tasks.spawn(cycle(ours.clone(), CYCLES));
    }
    child_count(&line.onlooker, line.path(), 1 + TASKS).await;
    let contender = tokio::spawn(cycle(theirs, CYCLES));
    child_count(&line.onlooker, line.path(), 2 + TASKS).await;
    let mut holds = vec![Hold::begin(&first)];
    first.release().await.expect("released");
    while let Some(ours) = soon("a task ends", tasks.join_next()).await {
        holds.extend(ours.expect("no panic"));
    }
    let sent = proxy.counts() - before;
    let last_of_ours = holds.iter().map(|hold| hold.granted).max();
    let theirs = soon("the contender ends", contender).await.expect("no panic");
    let first_of_theirs = theirs.first().map(|hold| hold.granted);
    holds.extend(theirs);

    assert_eq!(holds.len(), 1 + TASKS * CYCLES + CYCLES);
    assert_exclusive_and_in_order(&holds);
    assert!(first_of_theirs < last_of_ours, "it had its turn only when ours were done");
    let sent = sent.total_requests_except(&[Operation::Sync]);
    let most = u64::try_from(TASKS * CYCLES * 5 / 2).expect("a small number");
    assert!(sent <= most, "{sent} requests, more than two and a half a hold");
}

/// Follows how many children a node has, until it is told to end; gives the most it saw.
async fn most_children(client: Client, path: String, end: Arc<AtomicBool>) -> i32 {
    let mut most = 0;
    while !end.load(Ordering::SeqCst) {
        let stat = client.exists(&path).await.expect("connected");
        most = most.max(stat.map_or(0, |stat| stat.num_children));
    }
    most
}

#[tokio::test]
async fn more_waiters_than_a_client_may_have_nodes_are_served_in_the_order_they_came() {
    let line = Line::new("bound").await;
    let ours = line.mutex(&connect(&server().connect_string()).await);
    let first = line.hold(&ours).await;
    let end = Arc::new(AtomicBool::new(false));
    let path = line.path().to_owned();
    let most = tokio::spawn(most_children(line.onlooker.clone(), path, Arc::clone(&end)));

    // The tasks of this runtime begin in the order in which they were spawned.
    let next = Arc::new(AtomicI32::new(0));
    let mut waiters = JoinSet::new();
    for _ in 0..WAITERS {
        let (ours, next) = (ours.clone(), Arc::clone(&next));
        let place = waiters.len();
        waiters.spawn(async move {
            let guard = ours.acquire(&Owner::new()).await.expect("granted");
            let hold = Hold::begin(&guard);
            let turn = next.fetch_add(1, Ordering::SeqCst);
            assert_eq!(usize::try_from(turn), Ok(place), "out of turn");
            guard.release().await.expect("released");
            hold
        });
    }
    let filled = usize::try_from(NODES_MAX).expect("positive");
    child_count(&line.onlooker, line.path(), filled).await;
    let mut holds = vec![Hold::begin(&first)];
    first.release().await.expect("released");
    while let Some(hold) = soon("a waiter is served", waiters.join_next()).await {
        holds.push(hold.expect("served in its turn"));
    }
    end.store(true, Ordering::SeqCst);

    assert_exclusive_and_in_order(&holds);
    assert_eq!(holds.len(), 1 + WAITERS);
    let most = soon("the count ends", most).await.expect("no panic");
    assert!(most <= NODES_MAX, "{most} nodes of one client");
}
