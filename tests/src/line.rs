//! The queue of a lock, built up contender by contender, and seen by a client that looks on.

use std::time::Duration;

use tokio::task::JoinHandle;
use zookeeper_framework::Client;
use zookeeper_recipes::{Error, InterProcessMutex, MutexGuard, Owner, Result};

use crate::history::now;
use crate::{Directory, connect, eventually, server, soon};

/// The queue of one lock on the shared server.
pub struct Line {
    /// A client that takes no part.
    pub onlooker: Client,
    directory: Directory,
}

impl Line {
    /// The line of a lock that nobody has used.
    pub async fn new(name: &str) -> Self {
        let onlooker = connect(&server().connect_string()).await;
        let directory = Directory::missing(&onlooker, name);
        Self { onlooker, directory }
    }

    /// As [`new`](Self::new), in a directory that the server does not reap.
    pub async fn lasting(name: &str) -> Self {
        let onlooker = connect(&server().connect_string()).await;
        let directory = Directory::lasting(&onlooker, name).await;
        Self { onlooker, directory }
    }

    /// The path of the lock.
    pub fn path(&self) -> &str {
        self.directory.path()
    }

    /// The lock, for contenders of this client.
    pub fn mutex(&self, client: &Client) -> InterProcessMutex {
        InterProcessMutex::new(client, self.path()).expect("the path is good")
    }

    /// The paths of all nodes in the queue, in its order.
    pub async fn nodes(&self) -> Vec<String> {
        self.directory.nodes().await
    }

    /// Waits until exactly these nodes stand in the queue.
    pub async fn becomes(&self, nodes: &[&str]) {
        let what = format!("the queue is {nodes:?}");
        eventually(&what, async || self.nodes().await == nodes).await;
    }

    /// A contender comes, and has its node in the queue when this returns.
    pub async fn enter(&self, mutex: &InterProcessMutex) -> Waiter {
        self.enter_for(mutex, Duration::MAX).await
    }

    /// As [`enter`](Self::enter), with the time after which the contender gives up.
    pub async fn enter_for(&self, mutex: &InterProcessMutex, timeout: Duration) -> Waiter {
        let before = self.nodes().await;
        let mutex = mutex.clone();
        let task = tokio::spawn(async move {
            let guard = mutex.acquire_timeout(&Owner::new(), timeout).await?;
            Ok((guard, now()))
        });
        let new = async || self.nodes().await.into_iter().find(|node| !before.contains(node));
        eventually("a contender has its node", async || new().await.is_some()).await;
        let node = new().await.expect("it stays until its contender leaves");
        Waiter { node, task }
    }

    /// A contender comes into an empty queue and is granted.
    pub async fn hold(&self, mutex: &InterProcessMutex) -> MutexGuard {
        self.enter(mutex).await.granted().await
    }
}

/// A contender that waits, or has been granted meanwhile.
pub struct Waiter {
    /// The path of the node it entered with.
    pub node: String,
    task: JoinHandle<Result<(MutexGuard, u64)>>,
}

impl Waiter {
    /// Whether it has neither been granted nor given up.
    pub fn is_waiting(&self) -> bool {
        !self.task.is_finished()
    }

    /// Its guard, once it is granted.
    pub async fn granted(self) -> MutexGuard {
        self.granted_at().await.0
    }

    /// Its guard, once it is granted, and the moment of [`history`](crate::history) at which it
    /// was.
    pub async fn granted_at(self) -> (MutexGuard, u64) {
        self.outcome().await.expect("granted")
    }

    /// The error with which it gave up.
    pub async fn refused(self) -> Error {
        self.outcome().await.expect_err("not granted")
    }

    async fn outcome(self) -> Result<(MutexGuard, u64)> {
        soon("an acquisition ends", self.task).await.expect("acquiring does not panic")
    }

    /// Gives up, as a caller whose future is dropped.
    pub async fn cancel(self) {
        self.task.abort();
        let ended = soon("a task ends", self.task).await;
        assert!(ended.is_err_and(|end| end.is_cancelled()), "it was granted before it gave up");
    }
}
