//! Who holds a mutex: re-entry, owners beside each other, and acquisitions of one owner that
//! overlap.
//!
//! Serves Q1, Q6, Q7 and Q11.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use integration_tests::{
    SHORT_SESSION, at_once, child_count, children, connect, end_session, proxy, requests, server,
    soon, unique,
};
use zookeeper_recipes::{Client, Error, HoldEnd, InterProcessMutex, MutexGuard, Owner, Result};

async fn client() -> Client {
    connect(&server().connect_string()).await
}

fn mutex(client: &Client, path: &str) -> InterProcessMutex {
    InterProcessMutex::new(client, path).unwrap()
}

/// Whatever needs no answer of the server is ready at its first poll.
fn re_enter(mutex: &InterProcessMutex, owner: &Owner) -> Result<MutexGuard> {
    at_once(mutex.acquire(owner)).expect("re-entry waits for nothing")
}

async fn bill(mutex: &InterProcessMutex, owner: &Owner) -> usize {
    let guard = mutex.acquire(owner).await.unwrap();
    let deepest = book(mutex, owner).await;
    guard.release().await.unwrap();
    deepest
}

async fn book(mutex: &InterProcessMutex, owner: &Owner) -> usize {
    let guard = mutex.acquire(owner).await.unwrap();
    let deepest = audit(mutex, owner).await;
    guard.release().await.unwrap();
    deepest
}

async fn audit(mutex: &InterProcessMutex, owner: &Owner) -> usize {
    let guard = mutex.acquire(owner).await.unwrap();
    let depth = guard.depth();
    guard.release().await.unwrap();
    depth
}

#[tokio::test]
async fn re_entry_three_levels_deep_by_argument_sends_no_request() {
    let proxy = proxy();
    let client = connect(&proxy.connect_string()).await;
    let (mutex, owner) = (mutex(&client, &unique("argument")), Owner::new());
    let outermost = mutex.acquire(&owner).await.unwrap();

    let (sent, deepest) = requests(&proxy, &client, bill(&mutex, &owner)).await;

    assert_eq!((sent, deepest), (0, 4));
    let (sent, released) = requests(&proxy, &client, outermost.release()).await;
    released.unwrap();
    assert_eq!(sent, 1, "the last release sends the delete and nothing else");
}

async fn bill_in_scope(mutex: &InterProcessMutex) -> usize {
    let guard = mutex.acquire(&Owner::current().unwrap()).await.unwrap();
    let deepest = book_in_scope(mutex).await;
    guard.release().await.unwrap();
    deepest
}

async fn book_in_scope(mutex: &InterProcessMutex) -> usize {
    let guard = mutex.acquire(&Owner::current().unwrap()).await.unwrap();
    let deepest = audit(mutex, &Owner::current().unwrap()).await;
    guard.release().await.unwrap();
    deepest
}

#[tokio::test]
async fn re_entry_three_levels_deep_by_scope_sends_no_request() {
    let proxy = proxy();
    let client = connect(&proxy.connect_string()).await;
    let (mutex, owner) = (mutex(&client, &unique("scope")), Owner::new());
    let outermost = mutex.acquire(&owner).await.unwrap();

    let nested = owner.scope(bill_in_scope(&mutex));
    let (sent, deepest) = requests(&proxy, &client, nested).await;

    assert_eq!((sent, deepest), (0, 4));
    outermost.release().await.unwrap();
}

#[tokio::test]
async fn every_way_to_acquire_re_enters_at_once() {
    let client = client().await;
    let (mutex, owner) = (mutex(&client, &unique("ways")), Owner::new());
    let first = mutex.acquire(&owner).await.unwrap();

    let second = re_enter(&mutex, &owner).unwrap();
    let third = at_once(mutex.try_acquire(&owner)).unwrap().unwrap().unwrap();
    let fourth = at_once(mutex.acquire_timeout(&owner, Duration::ZERO)).unwrap().unwrap();

    assert_eq!([&first, &second, &third, &fourth].map(MutexGuard::depth), [1, 2, 3, 4]);
    let nodes = [&first, &second, &third, &fourth].map(MutexGuard::node);
    assert_eq!(nodes, [first.node(); 4]);
    assert_eq!(children(&client, mutex.path()).await.len(), 1);
}

#[tokio::test]
async fn mutexes_of_one_client_on_one_path_are_one_lock() {
    let client = client().await;
    let (path, owner) = (unique("one-lock"), Owner::new());
    let guard = mutex(&client, &path).acquire(&owner).await.unwrap();

    let other = mutex(&client.clone(), &path);

    assert!(other.is_owned_by(&owner));
    assert_eq!(re_enter(&other, &owner).unwrap().depth(), 2);
    assert!(other.try_acquire(&Owner::new()).await.unwrap().is_none());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn another_owner_in_the_same_process_waits() {
    let client = client().await;
    let mutex = mutex(&client, &unique("owners"));
    let (first, second) = (Owner::named("same"), Owner::named("same"));
    let guard = mutex.acquire(&first).await.unwrap();

    let waiting = tokio::spawn({
        let (mutex, second) = (mutex.clone(), second.clone());
        async move { mutex.acquire(&second).await }
    });
    child_count(&client, mutex.path(), 2).await;

    assert!(!waiting.is_finished());
    assert!(mutex.is_owned_by(&first) && !mutex.is_owned_by(&second));
    guard.release().await.unwrap();
    let guard = soon("the other owner is next", waiting).await.unwrap().unwrap();
    assert!(mutex.is_owned_by(&second) && !mutex.is_owned_by(&first));
    assert_eq!(guard.depth(), 1);
}

#[tokio::test]
async fn branches_of_one_join_with_owners_of_their_own_exclude_each_other() {
    let client = client().await;
    let mutex = mutex(&client, &unique("join"));
    let inside = AtomicUsize::new(0);
    let branch = async || {
        for _ in 0..10 {
            let guard = mutex.acquire(&Owner::new()).await.unwrap();
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two branches hold the lock");
            client.exists(guard.node()).await.unwrap();
            inside.fetch_sub(1, Ordering::SeqCst);
            guard.release().await.unwrap();
        }
    };

    soon("both branches finish", async { tokio::join!(branch(), branch()) }).await;
}

#[tokio::test]
async fn overlapping_acquisitions_of_one_owner_are_one() {
    let proxy = proxy();
    let client = connect(&proxy.connect_string()).await;
    let (mutex, owner) = (mutex(&client, &unique("overlap")), Owner::new());
    // The directory is made first, and kept, so that what is counted is the acquisition alone.
    client.create(&format!("{}/kept", mutex.path())).with_parents().await.unwrap();
    mutex.acquire(&owner).await.unwrap().release().await.unwrap();

    let both = async { tokio::join!(mutex.acquire(&owner), mutex.acquire(&owner)) };
    let (sent, (first, second)) = requests(&proxy, &client, both).await;

    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(sent, 2, "one create and one list");
    assert_eq!((first.depth(), second.depth()), (1, 2));
    assert_eq!(first.node(), second.node());
    assert_eq!(children(&client, mutex.path()).await.len(), 2, "one node and the kept one");
}

#[tokio::test]
async fn an_acquisition_goes_on_by_itself_when_the_one_it_joined_is_dropped() {
    let (client, stranger) = (client().await, client().await);
    let (path, owner) = (unique("leader-dropped"), Owner::new());
    let mutex = mutex(&client, &path);
    let held = self::mutex(&stranger, &path).acquire(&Owner::new()).await.unwrap();

    let mut first = Box::pin(mutex.acquire(&owner));
    let mut second = pin!(mutex.acquire(&owner));
    assert!(at_once(first.as_mut()).is_none());
    assert!(at_once(second.as_mut()).is_none());
    child_count(&client, &path, 2).await;
    drop(first);
    child_count(&client, &path, 1).await;

    assert!(at_once(second.as_mut()).is_none());
    child_count(&client, &path, 2).await;
    held.release().await.unwrap();
    let guard = soon("the other one is granted", second).await.unwrap();
    assert_eq!(guard.depth(), 1);
    assert_eq!(children(&client, &path).await.len(), 1);
}

#[tokio::test]
async fn an_acquisition_goes_on_by_itself_when_the_one_it_joined_fails() {
    let (client, stranger) = (client().await, client().await);
    let (path, owner) = (unique("leader-failed"), Owner::new());
    let mutex = mutex(&client, &path);
    let held = self::mutex(&stranger, &path).acquire(&Owner::new()).await.unwrap();

    let mut first = pin!(mutex.acquire_timeout(&owner, Duration::from_millis(300)));
    let mut second = pin!(mutex.acquire(&owner));
    assert!(at_once(first.as_mut()).is_none());
    assert!(at_once(second.as_mut()).is_none());
    let failed = soon("the first one times out", first).await;

    assert!(matches!(failed, Err(Error::TimedOut { .. })), "{failed:?}");
    assert!(at_once(second.as_mut()).is_none());
    child_count(&client, &path, 2).await;
    held.release().await.unwrap();
    let guard = soon("the other one is granted", second).await.unwrap();
    assert_eq!(guard.depth(), 1);
}

#[tokio::test]
async fn an_acquisition_that_joined_another_keeps_its_own_deadline() {
    let (client, stranger) = (client().await, client().await);
    let (path, owner) = (unique("follower"), Owner::new());
    let mutex = mutex(&client, &path);
    let held = self::mutex(&stranger, &path).acquire(&Owner::new()).await.unwrap();
    let mut first = pin!(mutex.acquire(&owner));
    assert!(at_once(first.as_mut()).is_none());

    let tried = at_once(mutex.try_acquire(&owner)).expect("a try waits for nobody").unwrap();
    let timed = mutex.acquire_timeout(&owner, Duration::from_millis(50));
    let timed = soon("the second one times out", timed).await;

    assert!(tried.is_none());
    assert!(matches!(timed, Err(Error::TimedOut { .. })), "{timed:?}");
    held.release().await.unwrap();
    soon("the first one is granted", first).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn the_node_goes_with_the_last_guard_in_whatever_order() {
    const ORDERS: [[usize; 3]; 6] =
        [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let proxy = proxy();
    let client = connect(&proxy.connect_string()).await;
    let (mutex, owner) = (mutex(&client, &unique("order")), Owner::new());
    for order in ORDERS {
        let mut guards = [None, None, None];
        for guard in &mut guards {
            *guard = Some(mutex.acquire(&owner).await.unwrap());
        }
        let [one, other, last] = order.map(|index| guards[index].take().unwrap());

        let inner = async { [at_once(one.release()), at_once(other.release())] };
        let (sent, released) = requests(&proxy, &client, inner).await;

        assert_eq!(sent, 0, "{order:?}");
        assert!(released.iter().all(|one| matches!(one, Some(Ok(())))), "{order:?}: {released:?}");
        assert!(last.is_held() && mutex.is_owned_by(&owner), "{order:?}");
        assert_eq!(children(&client, mutex.path()).await.len(), 1, "{order:?}");
        last.release().await.unwrap();
        assert!(!mutex.is_owned_by(&owner), "{order:?}");
        assert_eq!(children(&client, mutex.path()).await.len(), 0, "{order:?}");
    }
}

#[tokio::test]
async fn re_entry_is_refused_while_a_guard_of_a_lost_hold_lives() {
    let proxy = proxy();
    let builder = Client::builder(proxy.connect_string()).session_timeout(SHORT_SESSION);
    let client = builder.connect().await.unwrap();
    let (mutex, owner) = (mutex(&client, &unique("lost")), Owner::new());
    let outer = mutex.acquire(&owner).await.unwrap();
    let inner = mutex.acquire(&owner).await.unwrap();
    end_session(&proxy, outer.session()).await;
    let is_lost = |error| matches!(error, Error::Lost { reason: HoldEnd::SessionLost(_), .. });

    assert!(!mutex.is_owned_by(&owner));
    assert!(is_lost(re_enter(&mutex, &owner).unwrap_err()));
    assert!(is_lost(at_once(inner.release()).unwrap().unwrap_err()));
    let tried = at_once(mutex.try_acquire(&owner)).expect("it is lost already");
    assert!(is_lost(tried.unwrap_err()), "one lost guard is still alive");

    drop(outer);
    let again = soon("a new session", mutex.acquire(&owner)).await.unwrap();
    assert_eq!((again.depth(), again.session().epoch().get()), (1, 2));
    assert!(mutex.is_owned_by(&owner));
    again.release().await.unwrap();
}

#[tokio::test]
async fn a_mutex_is_owned_only_by_who_holds_it_now() {
    let (client, stranger) = (client().await, client().await);
    let (path, owner) = (unique("owned"), Owner::new());
    let (mutex, theirs) = (mutex(&client, &path), mutex(&stranger, &path));
    assert!(!mutex.is_owned_by(&owner));

    let guard = mutex.acquire(&owner).await.unwrap();
    assert!(mutex.is_owned_by(&owner.clone()));
    assert!(!mutex.is_owned_by(&Owner::new()));
    assert!(!theirs.is_owned_by(&owner), "an owner holds by one client");

    let mut waiting = pin!(theirs.acquire(&owner));
    assert!(at_once(waiting.as_mut()).is_none());
    child_count(&client, &path, 2).await;
    assert!(!theirs.is_owned_by(&owner), "it only waits");
    guard.release().await.unwrap();
    let guard = soon("the other client is next", waiting).await.unwrap();
    assert!(!mutex.is_owned_by(&owner) && theirs.is_owned_by(&owner));
    drop(guard);
    assert!(!theirs.is_owned_by(&owner));
}
