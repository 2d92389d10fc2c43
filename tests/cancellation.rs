//! An acquisition that is dropped, at any of its polls.
//!
//! For every k until the acquisition completes it is dropped twice: right after its k-th poll, and
//! when it is woken after it, which is when somebody has just decided something for it. Then the
//! nodes of the lock are exactly those of the live guards, whoever held still holds by the same
//! node, whoever waited behind is granted, and the next ones to come get the lock at once.
//!
//! Serves Q3, Q5, Q10, Q11.

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Duration;

use integration_tests::{
    Directory, LONG_SESSION, SHORT_SESSION, connect, proxy, server, soon, until,
};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use zookeeper_framework::{ErrorKind, RetryNTimes};
use zookeeper_recipes::{Client, InterProcessMutex, MutexGuard, Owner, Result};
use zookeeper_testing::{Direction, Proxy};

/// More polls than an acquisition needs in any situation.
const POLLS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Situation {
    Free,
    /// Another client, as another process would be, holds the lock.
    BehindAnotherClient,
    /// Another owner of the same client holds the lock.
    BehindAnotherOwner,
    /// Another owner of the same client holds the lock, and a third one waits behind us.
    BetweenOwners,
    /// The connection is gone, and comes back after the first poll.
    Reconnecting,
    /// Nothing gets through any more, until the session is over.
    SessionExpiring,
    /// Neither the directory nor the node above it was ever there.
    NeverMade,
    /// The directory was there, and has just been deleted.
    JustDeleted,
}

#[derive(Clone, Copy, Debug)]
enum DropPoint {
    AfterPoll(usize),
    WhenWokenAfterPoll(usize),
}

impl DropPoint {
    fn all() -> impl Iterator<Item = Self> {
        (1..=POLLS).flat_map(|k| [Self::AfterPoll(k), Self::WhenWokenAfterPoll(k)])
    }

    fn polls(self) -> usize {
        match self {
            Self::AfterPoll(polls) | Self::WhenWokenAfterPoll(polls) => polls,
        }
    }

    /// Whether the acquisition is dropped while whoever holds the lock still holds it.
    fn is_at_once(self) -> bool {
        matches!(self, Self::AfterPoll(1))
    }
}

#[tokio::test]
async fn a_free_lock_may_be_given_up_at_any_poll() {
    drop_at_every_poll(Situation::Free).await;
}

#[tokio::test]
async fn a_waiter_behind_another_client_may_give_up_at_any_poll() {
    drop_at_every_poll(Situation::BehindAnotherClient).await;
}

#[tokio::test]
async fn a_waiter_behind_another_owner_may_give_up_at_any_poll() {
    drop_at_every_poll(Situation::BehindAnotherOwner).await;
}

#[tokio::test]
async fn a_waiter_between_owners_may_give_up_at_any_poll() {
    drop_at_every_poll(Situation::BetweenOwners).await;
}

#[tokio::test]
async fn an_acquisition_may_be_given_up_at_any_poll_while_it_reconnects() {
    drop_at_every_poll(Situation::Reconnecting).await;
}

#[tokio::test]
async fn the_first_use_of_a_path_may_be_given_up_at_any_poll() {
    drop_at_every_poll(Situation::NeverMade).await;
}

#[tokio::test]
async fn an_acquisition_whose_directory_was_deleted_may_be_given_up_at_any_poll() {
    drop_at_every_poll(Situation::JustDeleted).await;
}

/// Each point waits for the end of a session, so all of them do so at the same time.
#[tokio::test]
async fn an_acquisition_may_be_given_up_at_any_poll_while_its_session_expires() {
    let attempt = |point| async move { (point, attempt(Situation::SessionExpiring, point).await) };
    let ends: Vec<_> = DropPoint::all().map(attempt).collect::<JoinSet<_>>().join_all().await;
    let acquired = ends.iter().filter(|(_, ended)| *ended == Ended::Acquired).count();
    // It is polled for the loss, and for each wait of the next attempt.
    assert!((1..=ends.len() - 4).contains(&acquired), "{ends:?}");
}

/// The two moments are right before the loss and at the wake that tells of it.
#[tokio::test]
async fn a_waiter_may_give_up_while_its_session_expires_and_disturbs_nobody() {
    for point in [DropPoint::AfterPoll(1), DropPoint::WhenWokenAfterPoll(1)] {
        let scene = Scene::new(Situation::SessionExpiring).await;
        let holder = acquire(&scene.theirs).await;
        let session = scene.client.session().unwrap();
        let attempt = Attempt::start(&scene.ours, point);
        let behind = match point {
            DropPoint::AfterPoll(_) => None,
            DropPoint::WhenWokenAfterPoll(_) => {
                Some(scene.put_behind(Situation::SessionExpiring).await)
            }
        };
        scene.proxy.stall(Direction::Both);
        assert!(attempt.outcome().await.is_none(), "acquired from a holder");
        soon("the session expires", session.lost()).await;
        scene.proxy.resume();

        scene.directory.eventually_shrinks_to(1 + usize::from(behind.is_some())).await;
        scene.directory.assert_held_by(&holder).await;
        holder.release().await.unwrap();
        if let Some(behind) = behind {
            let guard = soon("the one behind is granted", behind).await.unwrap().unwrap();
            scene.directory.eventually_holds(&[&guard]).await;
            guard.release().await.unwrap();
        }
        scene.directory.eventually_holds(&[]).await;
    }
}

/// Polls a future whenever it is woken, and drops it at `point`. Its output, if it was done before.
async fn drop_at<T>(
    point: DropPoint,
    polled: watch::Sender<usize>,
    future: impl Future<Output = T>,
) -> Option<T> {
    let mut future = Box::pin(future);
    poll_fn(|cx| {
        if *polled.borrow() == point.polls() {
            return Poll::Ready(None);
        }
        polled.send_modify(|polls| *polls += 1);
        let is_last = *polled.borrow() == point.polls();
        match (future.as_mut().poll(cx), point) {
            (Poll::Ready(output), _) => Poll::Ready(Some(output)),
            (Poll::Pending, DropPoint::AfterPoll(_)) if is_last => Poll::Ready(None),
            (Poll::Pending, _) => Poll::Pending,
        }
    })
    .await
}

/// An acquisition in a task of its own: no other wakes than its own get to it.
struct Attempt {
    polled: watch::Receiver<usize>,
    task: JoinHandle<Option<Result<MutexGuard>>>,
}

impl Attempt {
    fn start(mutex: &InterProcessMutex, point: DropPoint) -> Self {
        let mutex = mutex.clone();
        let acquisition = async move { mutex.acquire(&Owner::new()).await };
        let (sender, polled) = watch::channel(0);
        Self { polled, task: tokio::spawn(drop_at(point, sender, acquisition)) }
    }

    async fn first_poll(&mut self) {
        soon("the first poll", self.polled.wait_for(|polls| *polls > 0)).await.unwrap();
    }

    /// The guard, if it was acquired before it was dropped.
    async fn outcome(self) -> Option<MutexGuard> {
        let outcome = soon("the acquisition ends", self.task).await.unwrap();
        outcome.map(|acquired| acquired.unwrap())
    }
}

/// The lock of one attempt: ours through the proxy, theirs from another client.
struct Scene {
    proxy: Proxy,
    client: Client,
    directory: Directory,
    ours: InterProcessMutex,
    theirs: InterProcessMutex,
}

impl Scene {
    async fn new(situation: Situation) -> Self {
        let session = match situation {
            Situation::SessionExpiring => SHORT_SESSION,
            Situation::Free
            | Situation::BehindAnotherClient
            | Situation::BehindAnotherOwner
            | Situation::BetweenOwners
            | Situation::Reconnecting
            | Situation::NeverMade
            | Situation::JustDeleted => LONG_SESSION,
        };
        let proxy = proxy();
        let client = Client::builder(proxy.connect_string())
            .session_timeout(session)
            .retry_policy(RetryNTimes::new(8, Duration::from_millis(20)))
            .connect()
            .await
            .expect("the server is up");
        let observer = connect(&server().connect_string()).await;
        let directory = Directory::missing(&observer, "cancellation");
        let mutex = |client| InterProcessMutex::new(client, directory.path()).unwrap();
        let (ours, theirs) = (mutex(&client), mutex(&observer));
        if situation != Situation::NeverMade {
            acquire(&ours).await.release().await.unwrap();
        }
        if situation == Situation::JustDeleted {
            match observer.delete(directory.path()).await {
                Ok(()) => {}
                // The server has reaped it already.
                Err(error) => assert_eq!(error.kind(), ErrorKind::NoNode),
            }
        }
        Self { proxy, client, directory, ours, theirs }
    }

    async fn holder(&self, situation: Situation) -> Option<MutexGuard> {
        match situation {
            Situation::BehindAnotherClient => Some(acquire(&self.theirs).await),
            Situation::BehindAnotherOwner | Situation::BetweenOwners => {
                Some(acquire(&self.ours).await)
            }
            Situation::Free
            | Situation::Reconnecting
            | Situation::SessionExpiring
            | Situation::NeverMade
            | Situation::JustDeleted => None,
        }
    }

    /// Breaks the network as the situation wants it, and mends it after the first poll.
    async fn trouble(&self, situation: Situation, point: DropPoint) -> Attempt {
        match situation {
            Situation::Reconnecting => {
                self.proxy.refuse();
                self.proxy.cut();
                until("we are cut off", || !self.client.state().is_connected()).await;
                let mut attempt = Attempt::start(&self.ours, point);
                attempt.first_poll().await;
                self.proxy.accept();
                attempt
            }
            Situation::SessionExpiring => {
                let session = self.client.session().unwrap();
                self.proxy.stall(Direction::Both);
                let mut attempt = Attempt::start(&self.ours, point);
                attempt.first_poll().await;
                soon("the session expires", session.lost()).await;
                self.proxy.resume();
                attempt
            }
            Situation::Free
            | Situation::BehindAnotherClient
            | Situation::BehindAnotherOwner
            | Situation::BetweenOwners
            | Situation::NeverMade
            | Situation::JustDeleted => Attempt::start(&self.ours, point),
        }
    }

    /// Puts a contender behind the attempt: of another client, but between owners of ours.
    async fn put_behind(&self, situation: Situation) -> JoinHandle<Result<MutexGuard>> {
        self.directory.eventually_has(2).await;
        let mutex = match situation {
            Situation::BetweenOwners => self.ours.clone(),
            Situation::Free
            | Situation::BehindAnotherClient
            | Situation::BehindAnotherOwner
            | Situation::Reconnecting
            | Situation::SessionExpiring
            | Situation::NeverMade
            | Situation::JustDeleted => self.theirs.clone(),
        };
        let behind = tokio::spawn(async move { mutex.acquire(&Owner::new()).await });
        self.directory.eventually_has(3).await;
        behind
    }
}

async fn acquire(mutex: &InterProcessMutex) -> MutexGuard {
    soon("the lock is acquired", mutex.acquire(&Owner::new())).await.unwrap()
}

#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Dropped,
    Acquired,
}

async fn attempt(situation: Situation, point: DropPoint) -> Ended {
    let scene = Scene::new(situation).await;
    let directory = &scene.directory;
    let mut holder = scene.holder(situation).await;
    let attempt = scene.trouble(situation, point).await;
    let behind = match holder.take_if(|_| !point.is_at_once()) {
        Some(holder) => {
            let behind = scene.put_behind(situation).await;
            directory.assert_held_by(&holder).await;
            soon("the holder releases", holder.release()).await.unwrap();
            Some(behind)
        }
        None => None,
    };

    let ended = match attempt.outcome().await {
        None => Ended::Dropped,
        Some(guard) => {
            directory.assert_held_by(&guard).await;
            guard.release().await.unwrap();
            Ended::Acquired
        }
    };

    let next = match behind {
        Some(behind) => Some(soon("the one behind is granted", behind).await.unwrap().unwrap()),
        None => holder,
    };
    directory.eventually_holds(&next.iter().collect::<Vec<_>>()).await;
    if let Some(next) = next {
        directory.assert_held_by(&next).await;
        next.release().await.unwrap();
    }
    for mutex in [&scene.ours, &scene.theirs] {
        let guard = acquire(mutex).await;
        directory.eventually_holds(&[&guard]).await;
        guard.release().await.unwrap();
    }
    directory.eventually_holds(&[]).await;
    ended
}

/// Drops an acquisition at each of its polls, and insists that the last attempt was done before.
async fn drop_at_every_poll(situation: Situation) {
    let mut dropped = 0;
    for point in DropPoint::all() {
        println!("{situation:?}, {point:?}");
        match attempt(situation, point).await {
            Ended::Dropped => dropped += 1,
            Ended::Acquired => {
                assert!(dropped >= 2, "acquired at {point:?}");
                return;
            }
        }
    }
    panic!("not acquired within {POLLS} polls");
}
