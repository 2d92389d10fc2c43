//! A lock's directory, seen by a client that takes no part in the lock.

use std::time::{Duration, Instant};

use zookeeper_framework::Client;
use zookeeper_recipes::MutexGuard;

use crate::{children, eventually, unique};

/// How long a node may stay that nobody stands behind any more. The product promises a second once
/// the link is back; the rest is for a machine with other things to do.
const CLEAN_UP: Duration = Duration::from_secs(6);

/// The directory of one lock.
pub struct Directory {
    observer: Client,
    path: String,
}

impl Directory {
    /// The directory of a lock that was never used: neither it nor the node above it exists.
    pub fn missing(observer: &Client, name: &str) -> Self {
        Self { observer: observer.clone(), path: format!("{}/lock", unique(name)) }
    }

    /// A directory that the server does not reap, so that its counter is never set back.
    pub async fn lasting(observer: &Client, name: &str) -> Self {
        let directory = Self::missing(observer, name);
        observer.create(&directory.path).with_parents().await.expect("the path is new");
        directory
    }

    /// The path of the lock.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The paths of the nodes in the order of the queue.
    pub async fn nodes(&self) -> Vec<String> {
        let mut names = children(&self.observer, &self.path).await;
        names.sort_by_key(|name| number(name));
        names.into_iter().map(|name| format!("{}/{name}", self.path)).collect()
    }

    /// How many nodes were ever created in this directory.
    pub async fn created(&self) -> i32 {
        let stat = self.observer.exists(&self.path).await.expect("the server is up");
        let stat = stat.expect("the directory exists");
        // The server counts creations and deletions alike.
        (stat.cversion + stat.num_children) / 2
    }

    /// Waits until at least so many nodes are in the queue.
    pub async fn eventually_has(&self, count: usize) {
        let what = format!("{count} nodes in {}", self.path);
        eventually(&what, || async { self.nodes().await.len() >= count }).await;
    }

    /// Waits until so many nodes are left, in time.
    pub async fn eventually_shrinks_to(&self, count: usize) {
        self.in_time(|nodes| nodes.len() == count, &format!("{count} nodes")).await;
    }

    /// Waits until the nodes are exactly those of the guards, in time.
    pub async fn eventually_holds(&self, guards: &[&MutexGuard]) {
        let expected: Vec<_> = guards.iter().map(|guard| guard.node()).collect();
        self.in_time(|nodes| nodes == expected, &format!("{expected:?}")).await;
    }

    async fn in_time(&self, is_expected: impl Fn(&[String]) -> bool, expected: &str) {
        let start = Instant::now();
        loop {
            let nodes = self.nodes().await;
            if is_expected(&nodes) {
                return;
            }
            let is_in_time = start.elapsed() < CLEAN_UP;
            assert!(is_in_time, "after {CLEAN_UP:?} the nodes are {nodes:?}, not {expected}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Insists that this guard is the one that holds.
    pub async fn assert_held_by(&self, guard: &MutexGuard) {
        let nodes = self.nodes().await;
        assert_eq!(nodes.first().map(String::as_str), Some(guard.node()), "of {nodes:?}");
        assert!(guard.is_held(), "{guard:?}");
    }
}

/// The number in the name of a sequential node: the creations in its directory before it.
pub fn number(node: &str) -> i32 {
    let digits = node.len().checked_sub(10).map(|start| &node[start..]);
    let number = digits.and_then(|digits| digits.parse().ok());
    number.unwrap_or_else(|| panic!("{node} is no sequential node"))
}
