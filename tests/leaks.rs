//! What is left of many acquisitions: nothing.
//!
//! Serves L1 and Q5. One test alone in its process, on a server of its own, so that everything
//! that is counted belongs to it.

use std::fs;
use std::time::Duration;

use integration_tests::{child_count, children, connect, eventually, soon, unique};
use tokio::runtime::Handle;
use zookeeper_recipes::{Client, Error, InterProcessMutex, Owner};
use zookeeper_testing::ZooKeeperServer;

const CYCLES: usize = 10_000;

/// From here on the memory must not grow any more.
const WARM_UP: usize = 2_000;

const TIMED_OUT: usize = 10_000;

/// Timed-out acquisitions that are under way at a time.
const AT_A_TIME: usize = 20;

/// What the process and the server have.
#[derive(Debug, PartialEq, Eq)]
struct Census {
    watches: u64,
    ephemerals: u64,
    threads: usize,
    tasks: usize,
}

impl Census {
    fn take(server: &ZooKeeperServer) -> Self {
        Self {
            watches: server.watch_count().unwrap(),
            ephemerals: server.ephemeral_count().unwrap(),
            threads: fs::read_dir("/proc/self/task").unwrap().count(),
            tasks: Handle::current().metrics().num_alive_tasks(),
        }
    }
}

/// The resident memory of this process, in KiB.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

async fn cycle(mutex: &InterProcessMutex, count: usize) {
    for _ in 0..count {
        mutex.acquire(&Owner::new()).await.unwrap().release().await.unwrap();
    }
}

/// Acquires in vain while another client holds the lock, some at a time.
async fn time_out(mutex: &InterProcessMutex, count: usize) {
    for round in 0..count / AT_A_TIME {
        // From less than a round trip to several.
        let timeout = Duration::from_micros(100 * (round as u64 % 50));
        let attempts = [(); AT_A_TIME].map(|()| {
            let mutex = mutex.clone();
            tokio::spawn(async move { mutex.acquire_timeout(&Owner::new(), timeout).await })
        });
        for attempt in attempts {
            let result = soon("an acquisition times out", attempt).await.unwrap();
            assert!(matches!(result, Err(Error::TimedOut { .. })), "{result:?}");
        }
    }
}

#[tokio::test]
async fn ten_thousand_cycles_and_ten_thousand_timeouts_leave_nothing() {
    let server = ZooKeeperServer::start().unwrap();
    let (client, stranger) = connect_both(&server).await;
    let path = unique("leaks");
    let mutex = InterProcessMutex::new(&client, &path).unwrap();
    let theirs = InterProcessMutex::new(&stranger, &path).unwrap();
    let before = Census::take(&server);

    cycle(&mutex, WARM_UP).await;
    let held = theirs.acquire(&Owner::new()).await.unwrap();
    time_out(&mutex, TIMED_OUT / 50).await;
    held.release().await.unwrap();
    let warm = resident();
    cycle(&mutex, CYCLES - WARM_UP).await;
    let held = theirs.acquire(&Owner::new()).await.unwrap();
    time_out(&mutex, TIMED_OUT).await;
    child_count(&client, &path, 1).await;
    held.release().await.unwrap();

    assert_eq!(children(&client, &path).await.len(), 0);
    eventually("all is as before", async || Census::take(&server) == before).await;
    let grown = resident().saturating_sub(warm);
    println!("grown by {grown} KiB from {warm} KiB");
    assert!(grown < 5 * 1024, "the memory has grown by {grown} KiB from {warm} KiB");
}

async fn connect_both(server: &ZooKeeperServer) -> (Client, Client) {
    let connect_string = server.connect_string();
    (connect(&connect_string).await, connect(&connect_string).await)
}
