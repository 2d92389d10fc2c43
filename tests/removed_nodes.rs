//! An operator clears a lock's directory by hand while contenders of several processes wait.
//!
//! Serves Q3, Q5 and, from one round trip after the clearing on, Q1.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use integration_tests::{Directory, connect, server, soon};
use tokio::task::JoinSet;
use zookeeper_recipes::{InterProcessMutex, Owner};

const PROCESSES: usize = 6;

/// Much longer than a round trip to the server.
const MOMENT: Duration = Duration::from_millis(200);

/// Takes a turn: acquires until it has a hold that is still one a moment later.
async fn take_turn(mutex: InterProcessMutex, is_busy: Arc<AtomicBool>) {
    loop {
        let guard = mutex.acquire(&Owner::new()).await.expect("granted");
        tokio::time::sleep(MOMENT).await;
        if guard.is_held() {
            assert!(!is_busy.swap(true, Ordering::SeqCst), "two hold at one time");
            tokio::time::sleep(MOMENT / 4).await;
            is_busy.store(false, Ordering::SeqCst);
            guard.release().await.expect("released");
            return;
        }
    }
}

#[tokio::test]
async fn when_all_nodes_are_removed_one_contender_holds_and_everybody_gets_a_turn() {
    let onlooker = connect(&server().connect_string()).await;
    let directory = Directory::missing(&onlooker, "cleared");
    let holder = InterProcessMutex::new(&onlooker, directory.path()).expect("the path is good");
    let held = holder.acquire(&Owner::new()).await.expect("it is free");
    let (is_busy, mut turns) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
    for count in 2..=PROCESSES {
        let client = connect(&server().connect_string()).await;
        let mutex = InterProcessMutex::new(&client, directory.path()).expect("the path is good");
        turns.spawn(take_turn(mutex, Arc::clone(&is_busy)));
        directory.eventually_has(count).await;
    }
    for node in directory.nodes().await {
        onlooker.delete(&node).await.expect("it is there");
    }
    while let Some(turn) = soon("everybody gets a turn", turns.join_next()).await {
        turn.expect("no two at one time");
    }
    drop(held);
    directory.eventually_holds(&[]).await;
}
