//! The end of a session, for those that hold a lock by it and those that wait.
//!
//! Serves C2, H1, Q1, Q6, Q8.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;

use integration_tests::history::{held_until, now};
use integration_tests::line::Line;
use integration_tests::{
    SHORT_SESSION, at_once, child_count, connect, proxy, server, soon, unique, until,
};
use zookeeper_framework::{Client, Outcome};
use zookeeper_recipes::{Error, HoldEnd, MutexGuard, Owner};
use zookeeper_testing::{Direction, Operation, Proxy};

/// A client whose session ends soon after it is cut off.
async fn mortal(proxy: &Proxy) -> Client {
    let builder = Client::builder(proxy.connect_string()).session_timeout(SHORT_SESSION);
    builder.connect().await.expect("the server is up")
}

fn epoch(guard: &MutexGuard) -> u64 {
    guard.session().epoch().get()
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("not for centuries")
}

fn is_lost<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Lost { reason: HoldEnd::SessionLost(_), .. }))
}

#[tokio::test]
async fn a_waiter_whose_session_expires_is_granted_by_a_new_node_of_the_next_session() {
    let line = Line::new("expired-waiter").await;
    let proxy = proxy();
    let client = mortal(&proxy).await;
    let holder = line.hold(&line.mutex(&connect(&server().connect_string()).await)).await;
    let waiter = line.enter(&line.mutex(&client)).await;
    let old_node = waiter.node.clone();

    proxy.stall(Direction::Both);
    line.becomes(&[holder.node()]).await;
    assert!(waiter.is_waiting());
    proxy.resume();
    child_count(&line.onlooker, line.path(), 2).await;
    assert!(waiter.is_waiting() && holder.is_held());

    holder.release().await.expect("released");
    let waiter = waiter.granted().await;
    assert_eq!(epoch(&waiter), 2);
    assert_ne!(waiter.node(), old_node);
    line.becomes(&[waiter.node()]).await;
    let stat = line.onlooker.exists(waiter.node()).await.expect("connected").expect("it is there");
    assert_eq!(stat.ephemeral_owner, waiter.session().id());
    assert_eq!(stat.czxid, waiter.fencing_token());
}

/// A holder whose link goes dead at `cut`, and a contender that waits behind it.
struct Scene {
    line: Line,
    proxy: Proxy,
    client: Client,
    holder: Arc<MutexGuard>,
    owner: Owner,
}

impl Scene {
    async fn new(name: &str) -> Self {
        let line = Line::new(name).await;
        let proxy = proxy();
        let client = mortal(&proxy).await;
        let owner = Owner::new();
        let holder = line.mutex(&client).acquire(&owner).await.expect("granted");
        Self { line, proxy, client, holder: Arc::new(holder), owner }
    }

    /// Looks at the hold until it is over.
    fn watch(&self) -> JoinHandle<u64> {
        let holder = Arc::clone(&self.holder);
        held_until(move || holder.is_held())
    }

    /// Cuts the holder off. What it sends after the moment that this returns reaches nobody.
    fn cut(&self) -> u64 {
        self.proxy.stall(Direction::Both);
        now()
    }
}

#[tokio::test]
async fn a_holder_that_is_cut_off_holds_no_longer_than_a_session_timeout_and_then_no_more() {
    let scene = Scene::new("validity").await;
    let held_until = scene.watch();
    // By now its life depends on what was confirmed, not on when it was created.
    let confirmed = || scene.proxy.counts().replies(Operation::Sync) > 2;
    until("the session is confirmed", confirmed).await;
    let cut = scene.cut();
    let reason = soon("the hold is lost", scene.holder.lost()).await;
    assert!(matches!(reason, HoldEnd::SessionLost(_)), "{reason}");

    let held_until = held_until.join().expect("it ends");
    assert!(held_until < cut + nanos(SHORT_SESSION), "held for longer than the server promised");
    assert!(held_until > cut, "lost before anything had happened");
    scene.proxy.resume();
    soon("a new session", scene.client.wait_connected(Duration::MAX)).await.expect("connected");
    assert!(!scene.holder.is_held(), "a hold came back");
    assert!(!scene.line.mutex(&scene.client).is_owned_by(&scene.owner));
}

#[tokio::test]
async fn a_holder_that_is_cut_off_has_lost_the_lock_before_the_next_contender_is_granted() {
    let scene = Scene::new("expired-holder").await;
    let theirs = scene.line.mutex(&connect(&server().connect_string()).await);
    let next = scene.line.enter(&theirs).await;
    let held_until = scene.watch();
    let (first_token, lost) = (scene.holder.fencing_token(), scene.holder.lost());

    scene.cut();
    let (next, granted_at) = next.granted_at().await;
    assert!(!scene.holder.is_held());
    assert!(at_once(lost).is_some(), "not told of the loss that another one profits from");
    assert!(held_until.join().expect("it ends") < granted_at, "two holders");
    assert!(next.fencing_token() > first_token);
    scene.line.becomes(&[next.node()]).await;
}

#[tokio::test]
async fn work_under_a_lost_lock_is_never_polled_again() {
    let scene = Scene::new("work").await;
    let theirs = scene.line.mutex(&connect(&server().connect_string()).await);
    let next = scene.line.enter(&theirs).await;
    let polled = AtomicU64::new(0);
    let mut ticks = tokio::time::interval(Duration::from_millis(1));
    let work = poll_fn(|cx| {
        polled.store(now(), Ordering::SeqCst);
        while ticks.poll_tick(cx).is_ready() {}
        Poll::<()>::Pending
    });

    let cut = scene.cut();
    let ended = soon("the work ends", scene.holder.while_held(work)).await;
    assert!(is_lost(&ended), "{ended:?}");
    let last_poll = polled.load(Ordering::SeqCst);
    assert!(last_poll > cut, "it was not at work");
    assert!(last_poll < cut + nanos(SHORT_SESSION), "polled without the lock");
    let (_next, granted_at) = next.granted_at().await;
    assert!(last_poll < granted_at, "two at work");

    let again = scene.holder.while_held(async { panic!("polled without the lock") }).await;
    assert!(is_lost::<()>(&again), "{again:?}");
}

#[tokio::test]
async fn a_transaction_under_a_lost_lock_is_refused() {
    let scene = Scene::new("transaction").await;
    let theirs = scene.line.mutex(&connect(&server().connect_string()).await);
    let next = scene.line.enter(&theirs).await;
    let target = unique("target");
    let onlooker = &scene.line.onlooker;
    onlooker.create(&target).data("before").await.expect("the path is new");
    let write = |text: &'static str| scene.holder.transaction().set_data(&target, text, None);
    write("held").commit().await.expect("it is held");

    scene.cut();
    // One is on its way when the session ends, one is begun before, and one after.
    let sent = tokio::spawn(write("on its way").commit());
    let begun = write("begun");
    let next = next.granted().await;
    for late in [begun, write("late")] {
        let refused = late.commit().await;
        assert!(is_lost(&refused), "{refused:?}");
    }
    scene.proxy.resume();
    let sent = soon("a transaction ends", sent).await.expect("no panic").expect_err("cut off");
    assert_eq!(sent.outcome(), Outcome::Unknown, "{sent}");

    soon("a new session", scene.client.wait_connected(Duration::MAX)).await.expect("connected");
    scene.client.sync("/").await.expect("connected");
    let (data, _) = onlooker.get_data(&target).await.expect("it is there");
    assert_eq!(data, b"held");
    assert!(next.is_held());
}

#[tokio::test]
async fn a_blocked_runtime_loses_no_lock() {
    let proxy = proxy();
    let client = mortal(&proxy).await;
    let mutex = Line::new("blocked").await.mutex(&client);
    let guard = mutex.acquire(&Owner::new()).await.expect("it is free");
    let node = guard.node().to_owned();

    // The runtime of this test has one thread, and this is it.
    std::thread::sleep(2 * SHORT_SESSION + SHORT_SESSION / 4);

    assert!(guard.is_held() && at_once(guard.lost()).is_none());
    let contenders = mutex.contenders().await.expect("connected");
    assert_eq!(contenders.iter().map(|one| &one.node).collect::<Vec<_>>(), [&node]);
    assert_eq!(epoch(&guard), 1);
    guard.release().await.expect("released");
}
