//! What a mutex costs: round trips to wait for, and requests to send.
//!
//! Serves Q2, Q3, Q4 and Q7.

use std::time::{Duration, Instant};

use integration_tests::{
    at_once, child_count, connect, proxy, requests, server, soon, unique, until, watched,
};
use tokio::task::JoinSet;
use zookeeper_recipes::{Client, InterProcessMutex, MutexGuard, Owner};
use zookeeper_testing::{Operation, Proxy};

const ONE_WAY: Duration = Duration::from_millis(25);
const ROUND_TRIP: Duration = Duration::from_millis(50);

/// What is one network wait takes less than this, also on a busy machine; what is two does not.
const ONE_WAIT: Duration = ROUND_TRIP.saturating_mul(3).checked_div(2).unwrap();

const SAMPLES: usize = 20;

/// A client far from its server, and a lock directory that exists and stays.
async fn far_away(name: &str) -> (Proxy, Client, InterProcessMutex) {
    let proxy = proxy();
    let client = connect(&proxy.connect_string()).await;
    let path = unique(name);
    client.create(&format!("{path}/kept")).with_parents().await.unwrap();
    let mutex = InterProcessMutex::new(&client, &path).unwrap();
    mutex.acquire(&Owner::new()).await.unwrap().release().await.unwrap();
    proxy.delay(ONE_WAY);
    (proxy, client, mutex)
}

async fn timed<T>(work: impl Future<Output = T>) -> (Duration, T) {
    let start = Instant::now();
    let output = work.await;
    (start.elapsed(), output)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Asserts that the median is one wait for the network, and neither less nor more.
fn is_one_wait(what: &str, times: Vec<Duration>) {
    let median = median(times);
    println!("{what}: {median:?}, {:.2} round trips", median.div_duration_f64(ROUND_TRIP));
    assert!((ROUND_TRIP..ONE_WAIT).contains(&median), "{what}: {median:?}");
}

#[tokio::test]
async fn acquire_and_release_are_one_round_trip_each() {
    let (_proxy, _client, mutex) = far_away("acquire").await;
    let (mut acquires, mut releases) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        let (time, guard) = timed(mutex.acquire(&Owner::new())).await;
        acquires.push(time);
        let (time, released) = timed(guard.unwrap().release()).await;
        releases.push(time);
        released.unwrap();
    }
    is_one_wait("acquire", acquires);
    is_one_wait("release", releases);
}

#[tokio::test]
async fn a_try_of_a_free_lock_is_one_round_trip() {
    let (_proxy, _client, mutex) = far_away("try").await;
    let mut tries = Vec::new();
    for _ in 0..SAMPLES {
        let (time, guard) = timed(mutex.try_acquire(&Owner::new())).await;
        tries.push(time);
        guard.unwrap().unwrap().release().await.unwrap();
    }
    is_one_wait("try_acquire", tries);
}

#[tokio::test]
async fn the_first_acquire_of_a_path_that_does_not_exist_is_one_round_trip() {
    let (_proxy, client, mutex) = far_away("first").await;
    let mut acquires = Vec::new();
    for number in 0..SAMPLES {
        let path = format!("{}/{number}/new/lock", mutex.path());
        let mutex = InterProcessMutex::new(&client, &path).unwrap();
        let (time, guard) = timed(mutex.acquire(&Owner::new())).await;
        acquires.push(time);
        guard.unwrap().release().await.unwrap();
    }
    is_one_wait("first acquire", acquires);
}

#[tokio::test]
async fn a_lone_cycle_is_a_create_a_list_and_a_delete() {
    let (proxy, client, mutex) = far_away("alone").await;
    proxy.delay(Duration::ZERO);
    let before = proxy.counts();

    let cycles = async {
        for _ in 0..SAMPLES {
            mutex.acquire(&Owner::new()).await.unwrap().release().await.unwrap();
        }
    };
    let (sent, ()) = requests(&proxy, &client, cycles).await;

    let counts = proxy.counts() - before;
    let cycles = SAMPLES as u64;
    assert_eq!(sent, 3 * cycles, "{counts:?}");
    for operation in [Operation::Create, Operation::GetChildren, Operation::Delete] {
        assert_eq!(counts.requests(operation), cycles, "{operation:?}");
    }
}

/// One hold of the lock, as its task saw it.
struct Held {
    token: i64,
    granted: Instant,
    released: Instant,
}

impl Held {
    /// Releases a guard that was granted just now.
    async fn until_released(guard: MutexGuard) -> Self {
        let (token, granted) = (guard.fencing_token(), Instant::now());
        let released = Instant::now();
        guard.release().await.unwrap();
        Self { token, granted, released }
    }
}

#[tokio::test]
async fn tasks_of_one_process_hand_the_lock_on_without_a_round_trip() {
    const TASKS: usize = 64;
    const CYCLES: usize = 10;
    let (proxy, client, mutex) = far_away("hand-off").await;

    let work = async {
        let mut tasks = JoinSet::new();
        for _ in 0..TASKS {
            let mutex = mutex.clone();
            tasks.spawn(async move {
                let mut holds = Vec::new();
                for _ in 0..CYCLES {
                    let guard = mutex.acquire(&Owner::new()).await.unwrap();
                    holds.push(Held::until_released(guard).await);
                }
                holds
            });
        }
        soon("all cycles are done", tasks.join_all()).await
    };
    let (sent, holds) = requests(&proxy, &client, work).await;

    let mut holds: Vec<_> = holds.into_iter().flatten().collect();
    holds.sort_by_key(|held| held.granted);
    assert_eq!(holds.len(), TASKS * CYCLES);
    assert!(holds.is_sorted_by(|one, next| one.token < next.token), "granted out of order");
    let gaps = holds.windows(2).map(|pair| pair[1].granted.duration_since(pair[0].released));
    let hand_off = median(gaps.collect());
    let cost = sent as f64 / (TASKS * CYCLES) as f64;
    println!("hand-off: {hand_off:?}, {cost:.2} requests a cycle");
    assert!(hand_off <= ROUND_TRIP / 10, "{hand_off:?}");
    assert!(cost <= 2.5, "{cost}");
}

/// What one departure from a queue costs all of its contenders together.
#[derive(Debug)]
struct Departure {
    requests: f64,
    notifications: f64,
    bytes: f64,
}

/// Lets a queue of `clients` × `tasks` waiters drain, each of which releases as soon as it is
/// granted, and counts what is sent from the first departure on.
async fn drain(clients: usize, tasks: usize) -> Departure {
    let proxy = proxy();
    let path = unique("drain");
    let holder = connect(&server().connect_string()).await;
    let mutex = InterProcessMutex::new(&holder, &path).unwrap();
    let held = mutex.acquire(&Owner::new()).await.unwrap();
    let mut waiters = JoinSet::new();
    for _ in 0..clients {
        let client = connect(&proxy.connect_string()).await;
        for _ in 0..tasks {
            let mutex = InterProcessMutex::new(&client, &path).unwrap();
            waiters.spawn(async move {
                mutex.acquire(&Owner::new()).await.unwrap().release().await.unwrap();
                // Its client is kept until all are done: an end of a session is no departure.
                mutex
            });
        }
    }
    let count = clients * tasks;
    child_count(&holder, &path, count + 1).await;
    // The first waiter of each client watches the node before it, and then nothing more is sent.
    until("each client watches", || watched(&path) == clients + 1).await;

    let before = proxy.counts();
    held.release().await.unwrap();
    let done = soon("all waiters are granted", waiters.join_all()).await;
    let sent = proxy.counts() - before;
    drop(done);

    let each = |total: u64| total as f64 / count as f64;
    Departure {
        requests: each(sent.total_requests_except(&[Operation::Sync])),
        notifications: each(sent.notifications()),
        bytes: each(sent.total_request_bytes() + sent.total_reply_bytes()),
    }
}

#[tokio::test]
async fn a_departure_costs_the_same_with_8_and_128_processes_waiting() {
    let (few, many) = (drain(8, 1).await, drain(128, 1).await);
    println!("processes: {few:?} of 8, {many:?} of 128");
    // The delete of the one that goes, and a list of the one that is told; the list has the names
    // of those that still wait.
    assert!(many.requests <= few.requests + 0.25, "{few:?}, {many:?}");
    assert!(many.requests <= 2.5, "{many:?}");
    // One to the next, and one to the client whose node it was.
    assert!(many.notifications <= 2.25, "{many:?}");
}

#[tokio::test]
async fn a_departure_costs_the_same_with_8_and_128_tasks_waiting() {
    let (few, many) = (drain(1, 8).await, drain(1, 128).await);
    println!("tasks: {few:?} of 8, {many:?} of 128");
    // The delete, and nothing else.
    assert!(many.requests <= 1.25, "{many:?}");
    assert!(many.notifications <= few.notifications, "{few:?}, {many:?}");
    assert!(many.bytes <= few.bytes * 1.25, "{few:?}, {many:?}");
}

/// The same lock in several processes, far from their server.
async fn processes(proxy: &Proxy, count: usize) -> Vec<InterProcessMutex> {
    let path = unique("processes");
    let mut mutexes = Vec::new();
    for _ in 0..count {
        let client = connect(&proxy.connect_string()).await;
        mutexes.push(InterProcessMutex::new(&client, &path).unwrap());
    }
    proxy.delay(ONE_WAY);
    mutexes
}

/// Lets the first process hold the lock and the others queue up behind it, then hands it on from
/// one to the next; gives the time from each release to the grant that follows it.
async fn hand_over(mutexes: &[InterProcessMutex]) -> Vec<Duration> {
    let (first, others) = mutexes.split_first().unwrap();
    let observer = connect(&server().connect_string()).await;
    let held = first.acquire(&Owner::new()).await.unwrap();
    let mut waiters = Vec::new();
    for mutex in others {
        let mutex = mutex.clone();
        waiters.push(tokio::spawn(async move {
            Held::until_released(mutex.acquire(&Owner::new()).await.unwrap()).await
        }));
        child_count(&observer, first.path(), waiters.len() + 1).await;
    }
    until("each one watches", || watched(first.path()) == others.len() + 1).await;

    let mut released = Held::until_released(held).await.released;
    let mut gaps = Vec::new();
    for waiter in waiters {
        let held = soon("it is granted", waiter).await.unwrap();
        gaps.push(held.granted.duration_since(released));
        released = held.released;
    }
    gaps
}

#[tokio::test]
async fn a_lock_goes_to_the_next_process_in_one_round_trip() {
    let proxy = proxy();
    let mutexes = processes(&proxy, 2).await;
    let mut gaps = Vec::new();
    for _ in 0..SAMPLES {
        gaps.extend(hand_over(&mutexes).await);
    }
    is_one_wait("hand-over to the next process", gaps);
}

#[tokio::test]
async fn a_lock_goes_down_a_long_queue_in_two_round_trips_each() {
    let proxy = proxy();
    let mutexes = processes(&proxy, SAMPLES + 1).await;

    let gaps = hand_over(&mutexes).await;

    let (median, longest) = (median(gaps.clone()), *gaps.iter().max().unwrap());
    println!("hand-over in a queue: {median:?}, at most {longest:?}");
    assert!(median < 2 * ROUND_TRIP + ROUND_TRIP / 2, "{gaps:?}");
}

#[tokio::test]
async fn a_waiter_that_only_waits_sends_nothing() {
    let (proxy, client, mutex) = far_away("quiet").await;
    let held = mutex.acquire(&Owner::new()).await.unwrap();
    let other = connect(&proxy.connect_string()).await;
    let theirs = InterProcessMutex::new(&other, mutex.path()).unwrap();
    let owner = Owner::new();
    let mut waiting = Box::pin(theirs.acquire(&owner));
    assert!(at_once(waiting.as_mut()).is_none());
    child_count(&client, mutex.path(), 3).await;
    until("it watches", || watched(mutex.path()) == 2).await;

    let quiet = async {
        // Twenty round trips of somebody else pass.
        for _ in 0..SAMPLES {
            client.get_children(mutex.path()).await.unwrap();
        }
    };
    let (sent, ()) = requests(&proxy, &client, quiet).await;

    assert_eq!(sent, SAMPLES as u64);
    held.release().await.unwrap();
    soon("it is granted", waiting).await.unwrap().release().await.unwrap();
}
