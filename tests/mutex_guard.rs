//! What a guard of a mutex can do, where it may go, and how it learns that it holds no more.
//!
//! Serves Q5, Q6 and Q8.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};

use integration_tests::{
    LONG_SESSION, SHORT_SESSION, at_once, child_count, children, connect, end_session, proxy,
    server, soon, unique, until, watched,
};
use zookeeper_recipes::framework::LostReason;
use zookeeper_recipes::{Client, Error, HoldEnd, InterProcessMutex, MutexGuard, Owner};
use zookeeper_testing::Operation;

async fn client() -> Client {
    connect(&server().connect_string()).await
}

async fn held(client: &Client, name: &str) -> (InterProcessMutex, MutexGuard) {
    let mutex = InterProcessMutex::new(client, &unique(name)).unwrap();
    let guard = mutex.acquire(&Owner::new()).await.unwrap();
    (mutex, guard)
}

/// Unparks the thread that drives a future.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Drives a future without any runtime.
fn drive<T>(future: impl Future<Output = T>) -> T {
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[tokio::test]
async fn a_guard_is_released_by_another_task() {
    let client = client().await;
    let (mutex, guard) = held(&client, "task").await;

    let released = tokio::spawn(async move { guard.release().await });

    soon("the release", released).await.unwrap().unwrap();
    assert_eq!(children(&client, mutex.path()).await.len(), 0);
}

#[tokio::test]
async fn a_guard_is_dropped_on_a_thread_without_a_runtime() {
    let client = client().await;
    let (mutex, guard) = held(&client, "thread").await;

    thread::spawn(move || drop(guard)).join().unwrap();

    child_count(&client, mutex.path(), 0).await;
}

#[test]
fn a_mutex_needs_no_runtime_of_its_callers() {
    let builder = Client::builder(server().connect_string()).session_timeout(LONG_SESSION);
    let client = drive(builder.connect()).unwrap();
    let mutex = InterProcessMutex::new(&client, &unique("no-runtime")).unwrap();

    let guard = drive(mutex.acquire_timeout(&Owner::new(), LONG_SESSION)).unwrap();
    assert!(drive(mutex.try_acquire(&Owner::new())).unwrap().is_none());
    drive(guard.release()).unwrap();

    assert_eq!(drive(children(&client, mutex.path())).len(), 0);
    drive(client.close());
}

#[test]
fn a_guard_is_cleaned_up_after_its_runtime_is_gone() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (client, mutex, guard) = runtime.block_on(async {
        let client = client().await;
        let (mutex, guard) = held(&client, "runtime-gone").await;
        (client, mutex, guard)
    });
    drop(runtime);

    assert!(guard.is_held());
    drop(guard);

    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(child_count(&client, mutex.path(), 0));
}

#[tokio::test]
async fn a_guard_that_is_the_last_handle_of_its_client_deletes_its_node() {
    let observer = client().await;
    let client = client().await;
    let (mutex, guard) = held(&client, "last-handle").await;
    let path = mutex.path().to_owned();
    drop((client, mutex));
    assert!(guard.is_held());
    assert_eq!(children(&observer, &path).await.len(), 1);

    drop(guard);

    child_count(&observer, &path, 0).await;
}

#[tokio::test]
async fn a_release_that_is_dropped_unpolled_releases_all_the_same() {
    let client = client().await;
    let (mutex, guard) = held(&client, "unpolled").await;
    drop(guard.release());
    child_count(&client, mutex.path(), 0).await;

    let guard = mutex.acquire(&Owner::new()).await.unwrap();
    let mut release = Box::pin(guard.release());
    assert!(at_once(release.as_mut()).is_none());
    drop(release);
    child_count(&client, mutex.path(), 0).await;
}

#[tokio::test]
async fn a_guard_is_shared_in_an_arc_until_its_last_user_is_gone() {
    let client = client().await;
    let (mutex, guard) = held(&client, "shared").await;
    let guard = Arc::new(guard);

    let users = [(); 4].map(|()| {
        let guard = Arc::clone(&guard);
        tokio::spawn(async move { guard.while_held(async { guard.fencing_token() }).await })
    });
    for user in users {
        assert_eq!(user.await.unwrap().unwrap(), guard.fencing_token());
    }

    assert_eq!(children(&client, mutex.path()).await.len(), 1);
    drop(guard);
    child_count(&client, mutex.path(), 0).await;
}

#[tokio::test]
async fn lost_tells_the_release() {
    let client = client().await;
    let (_, guard) = held(&client, "lost-release").await;
    let lost = tokio::spawn(guard.lost());
    let asked_later = guard.lost();
    assert!(!lost.is_finished());

    guard.release().await.unwrap();

    assert_eq!(soon("it is told", lost).await.unwrap(), HoldEnd::Released);
    assert_eq!(at_once(asked_later), Some(HoldEnd::Released));
}

#[tokio::test]
async fn a_hold_ends_here_before_its_delete_is_sent() {
    let proxy = proxy();
    let client = connect(&proxy.connect_string()).await;
    let (mutex, guard) = held(&client, "ends-here").await;
    let lost = guard.lost();
    let observer = self::client().await;
    let delete = proxy.hold_request(Operation::Delete, 1);

    let mut release = Box::pin(guard.release());
    assert!(at_once(release.as_mut()).is_none());

    assert_eq!(at_once(lost), Some(HoldEnd::Released));
    until("the delete is on its way", || delete.happened()).await;
    assert_eq!(children(&observer, mutex.path()).await.len(), 1);
    delete.release();
    soon("the release", release).await.unwrap();
}

#[tokio::test]
async fn lost_tells_the_end_of_the_session() {
    let proxy = proxy();
    let builder = Client::builder(proxy.connect_string()).session_timeout(SHORT_SESSION);
    let client = builder.connect().await.unwrap();
    let (_, guard) = held(&client, "lost-session").await;
    let lost = tokio::spawn(guard.lost());

    end_session(&proxy, guard.session()).await;

    let told = soon("it is told", lost).await.unwrap();
    assert_eq!(told, HoldEnd::SessionLost(LostReason::Unconfirmed));
    assert!(!guard.is_held());
    let released = at_once(guard.release()).expect("there is nothing to wait for");
    assert!(matches!(released, Err(Error::Lost { reason, .. }) if reason == told), "{released:?}");
}

#[tokio::test]
async fn lost_tells_the_close_of_the_client() {
    let client = client().await;
    let (_, guard) = held(&client, "lost-close").await;
    let lost = guard.lost();

    client.close().await;

    assert!(!guard.is_held());
    assert_eq!(at_once(lost), Some(HoldEnd::SessionLost(LostReason::Closed)));
}

#[tokio::test]
async fn a_watched_node_that_is_deleted_by_hand_is_learnt_at_once() {
    let (client, operator) = (client().await, client().await);
    let mutex = InterProcessMutex::new(&client, &unique("watched")).unwrap().watch_own_node();
    let guard = mutex.acquire(&Owner::new()).await.unwrap();
    until("the node is watched", || watched(guard.node()) == 1).await;
    assert!(guard.is_held());

    operator.delete(guard.node()).await.unwrap();

    assert_eq!(soon("it is told", guard.lost()).await, HoldEnd::NodeDeleted);
    assert!(!guard.is_held());
    let released = at_once(guard.release()).expect("there is nothing to wait for");
    assert!(matches!(released, Err(Error::Lost { reason: HoldEnd::NodeDeleted, .. })));
}

#[tokio::test]
async fn an_unwatched_node_that_is_deleted_by_hand_is_learnt_at_the_release() {
    let (client, operator) = (client().await, client().await);
    let (_, guard) = held(&client, "unwatched").await;
    operator.delete(guard.node()).await.unwrap();
    assert_eq!(watched(guard.node()), 0);
    assert!(guard.is_held());

    let released = soon("the release", guard.release()).await;

    let expected = matches!(released, Err(Error::Lost { reason: HoldEnd::NodeDeleted, .. }));
    assert!(expected, "{released:?}");
}

#[tokio::test]
async fn while_held_gives_the_value_of_its_work() {
    let client = client().await;
    let (_, guard) = held(&client, "value").await;

    let read = guard.while_held(client.get_data(guard.node())).await.unwrap();

    assert_eq!(read.unwrap().1.czxid, guard.fencing_token());
    assert!(guard.is_held());
}

/// Counts its polls, and would be ready at the second one.
async fn ready_at_second_poll(polls: &Cell<usize>) {
    poll_fn(|_| {
        polls.set(polls.get() + 1);
        if polls.get() < 2 { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
}

#[tokio::test]
async fn work_is_polled_again_while_the_lock_is_held() {
    let client = client().await;
    let (_, guard) = held(&client, "polled").await;
    let polls = Cell::new(0);
    let mut work = pin!(guard.while_held(ready_at_second_poll(&polls)));
    assert!(at_once(work.as_mut()).is_none());

    assert!(matches!(at_once(work.as_mut()), Some(Ok(()))));
    assert_eq!(polls.get(), 2);
}

#[tokio::test]
async fn work_is_never_polled_again_after_the_session_was_lost() {
    let proxy = proxy();
    let builder = Client::builder(proxy.connect_string()).session_timeout(SHORT_SESSION);
    let client = builder.connect().await.unwrap();
    let (_, guard) = held(&client, "work-session").await;
    let polls = Cell::new(0);
    let mut work = pin!(guard.while_held(ready_at_second_poll(&polls)));
    assert!(at_once(work.as_mut()).is_none());
    end_session(&proxy, guard.session()).await;

    let ended = at_once(work.as_mut());
    let begun_late = at_once(guard.while_held(ready_at_second_poll(&polls)));

    for ended in [ended, begun_late] {
        let lost = matches!(ended, Some(Err(Error::Lost { reason: HoldEnd::SessionLost(_), .. })));
        assert!(lost, "{ended:?}");
    }
    assert_eq!(polls.get(), 1);
}

#[tokio::test]
async fn work_is_never_polled_again_after_the_node_was_deleted() {
    let (client, operator) = (client().await, client().await);
    let mutex = InterProcessMutex::new(&client, &unique("work-node")).unwrap().watch_own_node();
    let guard = mutex.acquire(&Owner::new()).await.unwrap();
    let polls = Cell::new(0);
    let mut work = pin!(guard.while_held(ready_at_second_poll(&polls)));
    assert!(at_once(work.as_mut()).is_none());
    operator.delete(guard.node()).await.unwrap();
    assert_eq!(soon("it is told", guard.lost()).await, HoldEnd::NodeDeleted);

    // A task that has used up its turn is told "not yet" by everything of the runtime that it
    // asks. The guard must tell the loss all the same.
    let ended = poll_fn(|cx| {
        while pin!(tokio::task::consume_budget()).poll(cx).is_ready() {}
        Poll::Ready(work.as_mut().poll(cx))
    })
    .await;

    assert_eq!(polls.get(), 1);
    let lost = matches!(ended, Poll::Ready(Err(Error::Lost { reason: HoldEnd::NodeDeleted, .. })));
    assert!(lost, "{ended:?}");
}

#[tokio::test]
async fn tokens_rise_over_owners_clients_and_directories() {
    let clients = [client().await, client().await];
    let path = unique("tokens");
    let mut tokens = Vec::new();
    for round in 0..3 {
        for client in &clients {
            let mutex = InterProcessMutex::new(client, &path).unwrap();
            for _ in 0..2 {
                let guard = mutex.acquire(&Owner::new()).await.unwrap();
                let stat = client.exists(guard.node()).await.unwrap().unwrap();
                assert_eq!(guard.fencing_token(), stat.czxid);
                tokens.push(guard.fencing_token());
                guard.release().await.unwrap();
            }
        }
        // The numbers of the nodes begin anew, those of the tokens must not.
        let gone = clients[round % 2].delete(&path).await;
        assert!(gone.is_ok() || children(&clients[0], &path).await.is_empty(), "{gone:?}");
    }
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
}
