//! How an acquisition ends: granted, not granted, in time, or with an error that says why.
//!
//! Serves Q5, Q10 and Q11.

use std::time::{Duration, Instant};

use integration_tests::{
    at_once, child_count, children, connect, eventually, proxy, server, soon, unique,
};
use zookeeper_recipes::framework::{ErrorKind, Outcome};
use zookeeper_recipes::{Client, Error, InterProcessMutex, MutexGuard, Owner, Result};
use zookeeper_testing::Direction;

/// What must happen at once may take this long on a busy machine.
const AT_ONCE: Duration = Duration::from_secs(5);

/// A mutex, and the same one in another client, which holds it.
struct Contended {
    client: Client,
    mutex: InterProcessMutex,
    held: MutexGuard,
}

impl Contended {
    async fn new(name: &str) -> Self {
        let (client, stranger) = (client().await, client().await);
        let path = unique(name);
        let mutex = InterProcessMutex::new(&client, &path).unwrap();
        let theirs = InterProcessMutex::new(&stranger, &path).unwrap();
        let held = theirs.acquire(&Owner::new()).await.unwrap();
        Self { client, mutex, held }
    }
}

async fn client() -> Client {
    connect(&server().connect_string()).await
}

fn timed_out<T: std::fmt::Debug>(result: Result<T>) {
    match result {
        Err(error @ Error::TimedOut { .. }) => assert_eq!(error.outcome(), Outcome::NotApplied),
        other => panic!("not timed out: {other:?}"),
    }
}

#[tokio::test]
async fn a_try_takes_a_free_lock() {
    let client = client().await;
    let mutex = InterProcessMutex::new(&client, &unique("free")).unwrap();

    let guard = mutex.try_acquire(&Owner::new()).await.unwrap().unwrap();

    assert!(guard.is_held());
    guard.release().await.unwrap();
    assert!(mutex.try_acquire(&Owner::new()).await.unwrap().is_some(), "it is free again");
}

#[tokio::test]
async fn a_try_does_not_wait_for_another_process_and_leaves_no_node() {
    let Contended { client, mutex, held } = Contended::new("try").await;

    let start = Instant::now();
    assert!(mutex.try_acquire(&Owner::new()).await.unwrap().is_none());

    assert!(start.elapsed() < AT_ONCE);
    child_count(&client, mutex.path(), 1).await;
    assert!(held.is_held());
}

#[tokio::test]
async fn a_try_does_not_wait_for_another_owner_of_the_process() {
    let client = client().await;
    let mutex = InterProcessMutex::new(&client, &unique("try-local")).unwrap();
    let guard = mutex.acquire(&Owner::new()).await.unwrap();

    assert!(mutex.try_acquire(&Owner::new()).await.unwrap().is_none());
    timed_out(mutex.acquire_timeout(&Owner::new(), Duration::ZERO).await);

    assert_eq!(children(&client, mutex.path()).await.len(), 1);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_timeout_of_zero_and_a_deadline_that_has_passed_try_once() {
    let Contended { client, mutex, held } = Contended::new("zero").await;
    let owner = Owner::new();
    let past = Instant::now();

    let start = Instant::now();
    timed_out(mutex.acquire_timeout(&owner, Duration::ZERO).await);
    timed_out(mutex.acquire_until(&owner, past).await);
    assert!(start.elapsed() < AT_ONCE);
    child_count(&client, mutex.path(), 1).await;

    held.release().await.unwrap();
    mutex.acquire_timeout(&owner, Duration::ZERO).await.unwrap().release().await.unwrap();
    mutex.acquire_until(&owner, past).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn timeouts_beyond_any_counter_wait_until_the_lock_is_free() {
    let Contended { client, mutex, held } = Contended::new("longest").await;
    let over_32_bits = Duration::from_millis(i32::MAX as u64 + 1);
    let waiting = [over_32_bits, Duration::from_secs(u64::MAX), Duration::MAX].map(|timeout| {
        let mutex = mutex.clone();
        tokio::spawn(async move {
            let guard = mutex.acquire_timeout(&Owner::new(), timeout).await?;
            guard.release().await
        })
    });
    child_count(&client, mutex.path(), 4).await;
    assert!(waiting.iter().all(|waiter| !waiter.is_finished()));

    held.release().await.unwrap();

    for waiter in waiting {
        soon("it is granted", waiter).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_timeout_of_less_than_a_millisecond_ends() {
    let Contended { client, mutex, held } = Contended::new("shortest").await;
    for nanoseconds in [1, 1_000, 999_999] {
        let timeout = Duration::from_nanos(nanoseconds);
        timed_out(soon("it ends", mutex.acquire_timeout(&Owner::new(), timeout)).await);
    }
    child_count(&client, mutex.path(), 1).await;
    assert!(held.is_held());
}

#[tokio::test]
async fn a_timed_out_acquisition_ends_in_time_and_leaves_no_node() {
    const TIMEOUT: Duration = Duration::from_millis(300);
    let Contended { client, mutex, held } = Contended::new("timeout").await;

    let start = Instant::now();
    let result = mutex.acquire_timeout(&Owner::new(), TIMEOUT).await;
    let elapsed = start.elapsed();

    timed_out(result);
    assert!((TIMEOUT..TIMEOUT + Duration::from_secs(1)).contains(&elapsed), "{elapsed:?}");
    child_count(&client, mutex.path(), 1).await;
    assert_eq!(held.fencing_token(), mutex.contenders().await.unwrap()[0].czxid);
}

#[tokio::test]
async fn a_dropped_acquisition_leaves_no_node_and_the_next_one_is_granted() {
    let Contended { client, mutex, held } = Contended::new("dropped").await;
    let (first, second) = (Owner::new(), Owner::new());
    let mut dropped = Box::pin(mutex.acquire(&first));
    assert!(at_once(dropped.as_mut()).is_none());
    child_count(&client, mutex.path(), 2).await;
    let mut waiting = Box::pin(mutex.acquire(&second));
    assert!(at_once(waiting.as_mut()).is_none());
    child_count(&client, mutex.path(), 3).await;

    drop(dropped);

    child_count(&client, mutex.path(), 2).await;
    held.release().await.unwrap();
    let guard = soon("the next one is granted", waiting).await.unwrap();
    guard.release().await.unwrap();
    assert_eq!(children(&client, mutex.path()).await.len(), 0);
}

#[tokio::test]
async fn closing_the_client_ends_every_waiter_at_once() {
    let (proxy, observer) = (proxy(), client().await);
    let client = connect(&proxy.connect_string()).await;
    let path = unique("closed");
    let theirs = InterProcessMutex::new(&observer, &path).unwrap();
    let held = theirs.acquire(&Owner::new()).await.unwrap();
    let mutex = InterProcessMutex::new(&client, &path).unwrap();
    let shared = Owner::new();
    // The last two are one acquisition.
    let owners = [Owner::new(), Owner::new(), Owner::new(), shared.clone(), shared];
    let waiting = owners.map(|owner| {
        let mutex = mutex.clone();
        tokio::spawn(async move { mutex.acquire(&owner).await })
    });
    child_count(&observer, &path, 5).await;

    // The server does not answer: `close` waits for it, the waiters must not.
    proxy.stall(Direction::Both);
    let start = Instant::now();
    let closed = tokio::spawn(async move { client.close().await });
    for waiter in waiting {
        let result = soon("a waiter ends", waiter).await.unwrap();
        assert!(matches!(result, Err(Error::Closed { .. })), "{result:?}");
    }
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
    assert!(!closed.is_finished());

    proxy.resume();
    soon("the client is closed", closed).await.unwrap();
    child_count(&observer, &path, 1).await;
    assert!(held.is_held());
}

#[tokio::test]
async fn a_closed_client_acquires_nothing() {
    let client = client().await;
    let mutex = InterProcessMutex::new(&client, &unique("closed-before")).unwrap();
    client.close().await;
    let owner = Owner::new();

    let results = [
        soon("acquire", mutex.acquire(&owner)).await.err(),
        soon("try", mutex.try_acquire(&owner)).await.err(),
        soon("timeout", mutex.acquire_timeout(&owner, Duration::from_secs(60))).await.err(),
        soon("contenders", mutex.contenders()).await.err(),
    ];

    for result in results {
        assert!(matches!(result, Some(Error::Closed { .. })), "{result:?}");
    }
}

#[tokio::test]
async fn a_mutex_works_under_a_chroot_that_does_not_exist_yet() {
    let root = unique("chroot");
    let client = connect(&format!("{}{root}/app", server().connect_string())).await;
    let observer = self::client().await;
    let mutex = InterProcessMutex::new(&client, "/locks/invoice").unwrap();

    let guard = mutex.acquire(&Owner::new()).await.unwrap();

    let name = guard.node().strip_prefix("/locks/invoice/").unwrap().to_owned();
    let full = format!("{root}/app/locks/invoice");
    assert_eq!(children(&observer, &full).await, [name]);
    let unrooted = InterProcessMutex::new(&observer, &full).unwrap();
    assert!(unrooted.try_acquire(&Owner::new()).await.unwrap().is_none());
    guard.transaction().check("/locks", None).commit().await.unwrap();
    guard.release().await.unwrap();
    eventually("the lock is free", async || {
        unrooted.try_acquire(&Owner::new()).await.unwrap().is_some()
    })
    .await;
}

#[tokio::test]
async fn a_bad_path_is_refused_at_construction_with_an_error_that_names_it() {
    let client = client().await;
    for path in ["", "a", "a/b", "/a/", "//", "//a", "/a//b", "/a\0b", "/.", "/a/..", "/a/./b"] {
        match InterProcessMutex::new(&client, path) {
            Err(Error::Framework(error)) => {
                assert_eq!(error.kind(), ErrorKind::InvalidArgument);
                assert!(error.to_string().contains(&format!("{path:?}")), "{path:?}: {error}");
            }
            other => panic!("{path:?} is taken: {other:?}"),
        }
    }
}

#[tokio::test]
async fn the_root_is_refused_as_a_lock() {
    let client = client().await;

    let refused = InterProcessMutex::new(&client, "/").unwrap_err();

    assert!(matches!(refused, Error::Refused { .. }), "{refused:?}");
    assert_eq!((refused.path(), refused.outcome()), (Some("/"), Outcome::NotApplied));
    assert_eq!(refused.to_string(), "/: the root cannot be a lock: name a node below it");
}
