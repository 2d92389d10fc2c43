//! What only processes can show: many that contend, one that is stopped, one that is killed.
//!
//! Serves Q1, Q2, Q6, Q8.

use std::time::{Duration, Instant};

use integration_tests::history::{Hold, assert_exclusive_and_in_order};
use integration_tests::line::Line;
use integration_tests::worker::Worker;
use integration_tests::{SHORT_SESSION, connect, server, soon, unique};
use rustix::process::Signal;
use zookeeper_testing::ZooKeeperCluster;

const WORKER: &str = env!("CARGO_BIN_EXE_worker");

const PROCESSES: usize = 5;
/// In each process, so that the lock is handed on within processes and between them.
const TASKS: usize = 4;
const CYCLES: usize = 25;

/// All holds that a worker tells of until it ends.
async fn holds_of(mut worker: Worker) -> Vec<Hold> {
    let mut holds = Vec::new();
    while let Some(line) = worker.line().await {
        holds.push(line.parse().expect("a worker tells of holds"));
    }
    holds
}

#[tokio::test]
async fn five_processes_with_a_hundred_holds_each_count_to_five_hundred_without_a_fence() {
    let cluster = match ZooKeeperCluster::start(3) {
        Ok(cluster) => cluster,
        Err(error) => panic!("{error}\nrun scripts/test, which installs what is missing"),
    };
    let servers = cluster.connect_string();
    let client = connect(&servers).await;
    let (lock, counter) = (unique("count"), unique("counter"));
    // No container: the server would delete it, and count from zero, if all left at one moment.
    client.create(&lock).await.expect("the path is new");
    client.create(&counter).data("0").await.expect("the path is new");

    let (tasks, cycles) = (TASKS.to_string(), CYCLES.to_string());
    let arguments = ["count", &servers, &lock, &counter, &tasks, &cycles];
    let workers = (0..PROCESSES).map(|_| Worker::start(WORKER, &arguments));
    let telling: Vec<_> = workers.map(|worker| tokio::spawn(holds_of(worker))).collect();
    let mut holds = Vec::new();
    for worker in telling {
        let told = soon("a worker ends", worker).await.expect("it ends well");
        assert_eq!(told.len(), TASKS * CYCLES);
        holds.extend(told);
    }

    assert_exclusive_and_in_order(&holds);
    client.sync(&counter).await.expect("connected");
    let (count, _) = client.get_data(&counter).await.expect("it is there");
    assert_eq!(String::from_utf8(count).as_deref(), Ok("500"));
    let (left, _) = client.get_children(&lock).await.expect("it is there");
    assert_eq!(left, [""; 0]);
}

/// A worker that holds the lock by a short session, and the moment at which it said so.
async fn holder(line: &Line, target: &str) -> (Worker, u64) {
    let session = SHORT_SESSION.as_millis().to_string();
    let servers = server().connect_string();
    let mut worker = Worker::start(WORKER, &["hold", &servers, line.path(), target, &session]);
    let [granted_at] = worker.told("held").await;
    (worker, moment(&granted_at))
}

fn moment(field: &str) -> u64 {
    field.parse().expect("a moment in nanoseconds")
}

#[tokio::test]
async fn a_process_that_was_stopped_finds_its_lock_lost_before_it_does_anything() {
    let line = Line::new("stopped").await;
    let target = unique("target");
    line.onlooker.create(&target).data("before").await.expect("the path is new");
    let (mut worker, granted_at) = holder(&line, &target).await;
    let mutex = line.mutex(&connect(&server().connect_string()).await);
    let next = line.enter(&mutex).await;

    worker.signal(Signal::STOP);
    let (next, next_at) = next.granted_at().await;
    let data = next.transaction().set_data(&target, "next", None).commit().await;
    data.expect("it is held");
    worker.signal(Signal::CONT);

    let [held_until, polled_until, late] = worker.told("lost").await;
    for last in [held_until, polled_until].map(|last| moment(&last)) {
        assert!(granted_at <= last && last < next_at, "{last} is not in {granted_at}..{next_at}");
    }
    assert_eq!(late, "refused");
    assert!(next.is_held());
    let (data, _) = line.onlooker.get_data(&target).await.expect("it is there");
    assert_eq!(data, b"next");
}

#[tokio::test]
async fn the_lock_of_a_process_that_was_killed_is_granted_when_its_session_times_out() {
    let line = Line::new("killed").await;
    let (worker, _) = holder(&line, "/unused").await;
    let mutex = line.mutex(&connect(&server().connect_string()).await);
    let next = line.enter(&mutex).await;

    let killed = Instant::now();
    worker.signal(Signal::KILL);
    let next = next.granted().await;
    // The server last heard of it a third of the timeout ago at most, and counts in ticks.
    assert!(killed.elapsed() > SHORT_SESSION / 2, "granted while the session might be alive");
    assert!(killed.elapsed() < SHORT_SESSION + Duration::from_secs(5), "granted late");
    line.becomes(&[next.node()]).await;
}
